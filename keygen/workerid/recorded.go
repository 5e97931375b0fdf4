// SPDX-License-Identifier: Apache-2.0

package workerid

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/shardid/shardid/internal/nilness"
	"github.com/shardid/shardid/internal/statefile"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/clock"
)

// Recorded adds a record to a worker id that another assigner gives without one: a local file
// that says up to which time ids may have been issued. The file is written and synced before
// the ids are issued. After a restart, even after kill -9 or with a clock that was set back,
// ids go on above that time. While one process holds the file, no other can.
//
// It is as reliable as the file: the record is lost if the disk is lost, restored from a backup
// or copied to another machine. Delete the file only when no process has used the worker id for
// at least a few seconds and the clock is right. The file is written by the system's clock. A
// generator whose Config.Now is ahead of that by more than 1.5 seconds uses the system's time.
//
// When the clock was fast and is corrected, the file knows how far ids went. The time in it
// then rises at half the speed of the clock until the clock has caught up; the ids of a process
// that starts meanwhile begin there, in the future.
//
// When the file is damaged, in use, or belongs to another worker id or layout (with
// keygen.ErrLayout), the error of Acquire wraps [ErrRecord]. A file that a version without
// stored layouts wrote gets the layout of its next process.
func Recorded(file string, from keygen.Assigner) keygen.Assigner {
	return recorded{file, from, time.Now}
}

// ErrRecord: the file of a recorded worker id, or of a lease, cannot be used. The
// error says which file, and what to do.
var ErrRecord = errors.New("workerid: unusable record")

// recordTerm is how far ahead the file is written. After kill -9, ids start at most so far in
// the future.
const recordTerm = 3 * time.Second

type recorded struct {
	file string
	from keygen.Assigner
	wall func() time.Time
}

// Acquire takes the worker id and its file.
func (r recorded) Acquire(ctx context.Context, l keygen.Layout) (keygen.Lease, error) {
	if nilness.Is(r.from) {
		return nil, fmt.Errorf("%w: the assigner of Recorded is nil", keygen.ErrNoWorker)
	}
	if r.file == "" {
		return nil, fmt.Errorf("%w: the file name of Recorded is empty; name a file on a local disk", ErrRecord)
	}
	if recordTerm < 3*l.Unit {
		return nil, fmt.Errorf("%w: the layout's unit, %v, is too long for Recorded", ErrRecord, l.Unit)
	}
	lease, err := r.from.Acquire(ctx, l)
	if err != nil {
		return nil, err
	}
	if _, ok := lease.(keygen.Window); ok {
		return nil, fmt.Errorf("%w %s: the worker id is leased already; use LeasedConfig.File instead of Recorded", ErrRecord, r.file)
	}
	lock, err := statefile.Lock(r.file + ".lock")
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrRecord, r.file, err)
	}
	w := &recordedWindow{Lease: lease, file: r.file, wall: r.wall, layout: l, lock: lock}
	if err := w.open(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return w, nil
}

// recordedWindow is a worker id with its file. Its generator calls one method at
// a time.
type recordedWindow struct {
	keygen.Lease

	file               string
	wall               func() time.Time
	layout             keygen.Layout
	lock               *os.File // nil once released
	notBefore, ceiling int64
	raised             time.Time // when ceiling was written
}

var _ keygen.Window = (*recordedWindow)(nil)

// record is the file's content. Ceiling is a tick.
type record struct {
	Worker  int64     `json:"worker"`
	Epoch   time.Time `json:"epoch"`
	Unit    string    `json:"unit"`
	Layout  string    `json:"layout,omitempty"` // "" if a version wrote the file that stored none
	Ceiling int64     `json:"ceiling"`
	Written time.Time `json:"written"` // for people
	Sum     uint32    `json:"sum"`     // CRC-32 of the other fields
}

func (w *recordedWindow) record(ceiling int64) record {
	return record{Worker: w.ID(), Epoch: w.layout.Epoch.UTC(), Unit: w.layout.Unit.String(), Layout: w.layout.Fingerprint(), Ceiling: ceiling, Written: time.Now().UTC()}.summed()
}

func (r record) summed() record {
	r.Sum = 0
	r.Sum = statefile.Sum(r)
	return r
}

// open reads the file, if there is one, and writes the first ceiling.
func (w *recordedWindow) open() error {
	now := w.layout.Tick(w.wall())
	// The first process of a worker id may follow one that kept no record.
	w.notBefore = now + 2
	text, err := os.ReadFile(w.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("%w: %w", ErrRecord, err)
	default:
		old, err := w.parse(text)
		if err != nil {
			return fmt.Errorf("%w %s: %w", ErrRecord, w.file, err)
		}
		w.notBefore = max(old.Ceiling, now)
	}
	_, err = w.write(max(now, w.notBefore) + w.ticks())
	return err
}

func (w *recordedWindow) parse(text []byte) (record, error) {
	var r record
	if err := json.Unmarshal(text, &r); err != nil || r.summed().Sum != r.Sum {
		return r, errors.New("the file is damaged; when no process has used the worker id for a few seconds and the clock is right, delete it")
	}
	want := w.record(0)
	if r.Worker != want.Worker {
		return r, fmt.Errorf("the file belongs to worker id %d, but this process has %d; give each its own file", r.Worker, want.Worker)
	}
	if r.Layout == "" && r.Epoch.Equal(want.Epoch) && r.Unit == want.Unit {
		r.Layout = want.Layout // none is stored, and its former process has ended
	}
	if r.Layout != want.Layout {
		return r, fmt.Errorf("%w: the file belongs to the layout %q (units of %s since %v), but that of this process is %q, and ids of the two can be equal; package workerid says how to change layouts",
			keygen.ErrLayout, r.Layout, r.Unit, r.Epoch, want.Layout)
	}
	return r, nil
}

func (w *recordedWindow) ticks() int64 { return int64(recordTerm / w.layout.Unit) }

// keepLock locks the file anew if its lock file was deleted or replaced: by a program that cleans
// up, say. Another process may have locked the new one meanwhile, and written a higher ceiling.
func (w *recordedWindow) keepLock() error {
	if statefile.Holds(w.lock) {
		return nil
	}
	lock, err := statefile.Lock(w.lock.Name())
	if err != nil {
		return fmt.Errorf("its lock file was deleted or replaced; restart this process with a worker id of its own: %w", err)
	}
	if err := w.unchanged(); err != nil {
		return errors.Join(err, lock.Close())
	}
	w.lock, lock = lock, w.lock
	return lock.Close()
}

// unchanged returns an error if another process has written the file since this one did.
func (w *recordedWindow) unchanged() error {
	text, err := os.ReadFile(w.file)
	if err != nil {
		return err
	}
	r, err := w.parse(text)
	if err == nil && r.Ceiling != w.ceiling {
		err = errors.New("another process has used it since its lock file was deleted or replaced; restart this one")
	}
	return err
}

// write puts a ceiling into the file.
func (w *recordedWindow) write(ceiling int64) (int64, error) {
	if err := w.keepLock(); err != nil {
		return 0, fmt.Errorf("%w %s: %w", ErrRecord, w.file, err)
	}
	text, err := json.Marshal(w.record(ceiling))
	if err == nil {
		err = statefile.Replace(w.file, text)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	w.ceiling, w.raised = ceiling, time.Now()
	return ceiling, nil
}

func (w *recordedWindow) NotBefore() int64    { return w.notBefore }
func (w *recordedWindow) Ceiling() int64      { return w.ceiling }
func (w *recordedWindow) Term() time.Duration { return recordTerm }

func (w *recordedWindow) Renew(context.Context) (int64, error) {
	if w.lock == nil {
		return 0, fmt.Errorf("%w: the record of worker id %d was released", keygen.ErrWorkerLost, w.ID())
	}
	// Ids must go on after the wall clock was set back: they advance at half the speed of time
	// until the wall clock has caught up.
	next := max(w.layout.Tick(w.wall())+w.ticks(), w.ceiling+int64(clock.Slewed(time.Since(w.raised))/w.layout.Unit))
	if next <= w.ceiling {
		return w.ceiling, nil
	}
	return w.write(next)
}

func (w *recordedWindow) Release(_ context.Context, end int64) error {
	if w.lock == nil {
		return nil
	}
	_, err := w.write(max(end, w.notBefore))
	err = errors.Join(err, w.lock.Close())
	w.lock = nil
	return err
}
