// SPDX-License-Identifier: Apache-2.0

package workerid

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/shardid/shardid/internal/statefile"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/clock"
)

// leaseFile is the file of LeasedConfig.File. It stores the newest lease of the process, and
// how much of it may be used: the process uses its window in pieces, and writes each piece to
// the file before it uses the first tick of it. No other holder uses the unused rest, because
// the ledger makes every later holder start above the ceiling. So the next process that holds
// the lock may use it, provided that the file is the one that the former process wrote last. To
// prove that, the lock file contains the number of the newest note.
type leaseFile struct {
	file string
	now  func() time.Time

	mu   sync.Mutex // held while the file is read or written; guards the fields below
	lock *os.File   // nil while no lease is stored
	of   *fileLease
}

// leaseNote is the file's content. NotBefore and Ceiling bound the ticks that may still be
// used.
type leaseNote struct {
	Place      string    `json:"place"`
	Number     string    `json:"number"` // random
	Namespace  string    `json:"namespace"`
	Owner      string    `json:"owner"` // empty when the lease was returned
	Worker     int64     `json:"worker"`
	Generation int64     `json:"generation"`
	Epoch      time.Time `json:"epoch"`
	Unit       string    `json:"unit"`
	Layout     string    `json:"layout,omitempty"` // "" if a version wrote the file that stored none
	NotBefore  int64     `json:"not_before"`
	Ceiling    int64     `json:"ceiling"`
	Written    time.Time `json:"written"` // for people
	Sum        uint32    `json:"sum"`     // CRC-32 of the other fields
}

func (n leaseNote) summed() leaseNote {
	n.Sum = 0
	n.Sum = statefile.Sum(n)
	return n
}

// piecesPerTerm is the number of pieces of a window in a term.
const piecesPerTerm = 3

// fileLease is a lease of which only the part that the file allows may be used.
type fileLease struct {
	*window

	leaseFile *leaseFile
	notBefore int64
	pieceEnd  int64     // the end of the current piece
	written   time.Time // when pieceEnd was written
	failed    error     // the error of the newest renewal in the ledger
}

var _ keygen.Window = (*fileLease)(nil)

// acquire takes a lease and stores it. When the ledger cannot be reached, it continues with the
// rest of the lease in the file.
func (m *leaseFile) acquire(ctx context.Context, l Ledger, c Claim) (keygen.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	where, err := m.acquireLock()
	if err != nil {
		return nil, err
	}
	r, err := m.take(ctx, l, c, where)
	if err == nil {
		err = m.writePiece(r, max(m.tick(r), r.notBefore)+r.piece())
	}
	if err != nil {
		return nil, errors.Join(err, m.releaseLock())
	}
	m.of = r
	return r, nil
}

// acquireLock locks the file and returns its identity.
func (m *leaseFile) acquireLock() (where string, err error) {
	if m.lock == nil {
		m.lock, err = statefile.Lock(m.file + ".lock")
	}
	if err == nil {
		where, err = fileIdentity(m.lock)
	}
	if err != nil {
		return "", fmt.Errorf("%w %s: %w", ErrRecord, m.file, errors.Join(err, m.releaseLock()))
	}
	return where, nil
}

// releaseLock unlocks the file unless it stores a lease.
func (m *leaseFile) releaseLock() (err error) {
	if m.of == nil && m.lock != nil {
		err, m.lock = m.lock.Close(), nil
	}
	return err
}

func (m *leaseFile) take(ctx context.Context, l Ledger, c Claim, where string) (*fileLease, error) {
	old, err := m.read()
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrRecord, m.file, err)
	}
	r := &fileLease{window: &window{ledger: l, claim: c, now: m.now}, leaseFile: m}
	limited, cancel := m.limited(ctx, old, r, where)
	defer cancel()
	entry, err := l.Take(limited, c)
	switch {
	case err == nil:
		r.entry = entry
	case m.of != nil || !unreachable(err): // this process uses the file's lease, or the ledger has answered
		return nil, err
	default:
		if why := old.mismatch(r, where); why != nil {
			return nil, fmt.Errorf("%w; and no lease can be resumed from %s: %w", err, m.file, why)
		}
		r.entry, r.failed = Entry{old.Worker, old.Generation, old.NotBefore, old.Ceiling}, err
		r.claim.Owner = old.Owner
	}
	r.raised = m.now()
	r.ceiling, r.notBefore = r.entry.Ceiling, r.entry.NotBefore
	return r, nil
}

// maxTake is how long the ledger may take to answer when something waits for that.
const maxTake = 3 * time.Second

// limited returns ctx with a limit, because a ledger that is down may not answer at all. If r can
// continue with the lease in the file, the limit leaves time on that. If another generator of
// this process has it, its renewals wait meanwhile.
func (m *leaseFile) limited(ctx context.Context, old leaseNote, r *fileLease, where string) (context.Context, context.CancelFunc) {
	switch {
	case m.of != nil:
		return context.WithTimeout(ctx, maxTake)
	case old.mismatch(r, where) != nil:
		return ctx, func() {}
	}
	left := r.claim.Layout.At(old.Ceiling).Sub(m.now())
	return context.WithTimeout(ctx, min(left/2, maxTake))
}

// unreachable returns true when the error may mean that the ledger cannot be reached, or is in
// a fail-over.
func unreachable(err error) bool {
	if errors.Is(err, keygen.ErrReadOnly) {
		return true
	}
	var setup *keygen.SetupError
	return !errors.As(err, &setup) && !errors.Is(err, keygen.ErrNoWorker) && !errors.Is(err, keygen.ErrLayout)
}

// read returns the file's note, an empty one when there is none.
func (m *leaseFile) read() (n leaseNote, err error) {
	text, err := os.ReadFile(m.file)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err == nil && (json.Unmarshal(text, &n) != nil || n.summed().Sum != n.Sum) {
		err = errors.New("the file is damaged; delete it: without it, a start only needs the database")
	}
	return n, err
}

// mismatch returns the reason why r cannot continue with the lease of a note, nil if it can.
func (n leaseNote) mismatch(r *fileLease, where string) error {
	now := r.leaseFile.tick(r)
	switch {
	case n.Owner == "":
		return errors.New("the file contains no lease")
	case n.Number != r.leaseFile.newestNumber():
		return errors.New("the file's content is not the one that was written last")
	case n.Place != where:
		return errors.New("the file was written on another machine, or before this one was started, or is a copy")
	case n.Namespace != r.claim.Namespace || !n.Epoch.Equal(r.claim.Layout.Epoch) || n.Unit != r.claim.Layout.Unit.String() || n.Worker > r.claim.Most:
		return fmt.Errorf("the file belongs to namespace %q with units of %s since %v", n.Namespace, n.Unit, n.Epoch)
	case n.Layout == "" && !n.of(r.claim):
		return fmt.Errorf("a version that stores no layout wrote the file; if you know that its layout was %q, set LeasedConfig.Former to that", r.claim.Layout.Fingerprint())
	case !n.of(r.claim):
		return fmt.Errorf("the file belongs to the layout %q, but that of this process is %q", n.Layout, r.claim.Layout.Fingerprint())
	case max(n.NotBefore, now) >= n.Ceiling:
		return fmt.Errorf("the lease on worker id %d is used up, or has ended", n.Worker)
	}
	return nil
}

// of returns true when the lease of a note has the claim's layout.
func (n leaseNote) of(c Claim) bool {
	s := c.Relation(n.Layout)
	return s == Own || s == Stated
}

func (m *leaseFile) tick(r *fileLease) int64 { return r.claim.Layout.Tick(m.now()) }

// writePiece stores that r uses its window up to a tick. A lease that is not the newest is not
// in a file, so all of its window may be used.
func (m *leaseFile) writePiece(r *fileLease, upTo int64) error {
	upTo = min(upTo, r.ceiling)
	if m.of == r || r.written.IsZero() {
		if err := m.write(r, upTo, r.claim.Owner); err != nil {
			return err
		}
	}
	r.pieceEnd, r.written = upTo, m.now()
	return nil
}

// write replaces the file's note. The note is valid once the lock file contains its number. The
// lock file need not survive a reboot, because no note does.
func (m *leaseFile) write(r *fileLease, notBefore int64, owner string) error {
	where, err := fileIdentity(m.lock)
	if err != nil {
		return fmt.Errorf("%w %s: %w", ErrRecord, m.file, err)
	}
	n := leaseNote{
		Place: where, Number: rand.Text(),
		Namespace: r.claim.Namespace, Owner: owner, Worker: r.entry.Worker, Generation: r.entry.Generation,
		Epoch: r.claim.Layout.Epoch.UTC(), Unit: r.claim.Layout.Unit.String(), Layout: r.claim.Layout.Fingerprint(),
		NotBefore: notBefore, Ceiling: r.ceiling, Written: m.now().UTC(),
	}.summed()
	text, err := json.Marshal(n)
	if err == nil {
		err = statefile.Replace(m.file, text)
	}
	if err == nil {
		_, err = m.lock.WriteAt([]byte(n.Number), 0)
	}
	if err != nil {
		return fmt.Errorf("%w %s: %w", ErrRecord, m.file, err)
	}
	return nil
}

// newestNumber returns the number of the newest note, "" when there is none.
func (m *leaseFile) newestNumber() string {
	number := make([]byte, len(rand.Text()))
	if _, err := m.lock.ReadAt(number, 0); err != nil {
		return ""
	}
	return string(number)
}

func (r *fileLease) NotBefore() int64    { return r.notBefore }
func (r *fileLease) Ceiling() int64      { return r.pieceEnd }
func (r *fileLease) Term() time.Duration { return r.claim.Term / piecesPerTerm }
func (r *fileLease) piece() int64        { return int64(r.Term() / r.claim.Layout.Unit) }

// Renew begins the next piece, and renews the lease in the ledger when that is due. It returns
// the ledger's error only when no further piece is left.
func (r *fileLease) Renew(ctx context.Context) (int64, error) {
	m := r.leaseFile
	m.mu.Lock()
	defer m.mu.Unlock()
	next := max(m.tick(r)+r.piece(), r.pieceEnd+int64(clock.Slewed(m.now().Sub(r.written))/r.claim.Layout.Unit))
	if r.failed != nil || next > r.ceiling || m.now().Sub(r.raised) >= r.Term() {
		if _, r.failed = r.window.Renew(ctx); errors.Is(r.failed, keygen.ErrWorkerLost) {
			return 0, r.failed
		}
	}
	if min(next, r.ceiling) <= r.pieceEnd {
		return r.pieceEnd, r.failed
	}
	if err := m.writePiece(r, next); err != nil {
		return 0, err
	}
	return r.pieceEnd, nil
}

// Release removes the lease from the file before it returns it to the ledger, because the next
// holder begins below the ceiling in the file. When the ledger cannot be reached, the rest
// stays in the file for a process that starts before the ledger is back.
func (r *fileLease) Release(ctx context.Context, end int64) error {
	if err := r.clearFile(max(end, r.notBefore)); err != nil {
		return err
	}
	return r.window.Release(ctx, end)
}

func (r *fileLease) clearFile(end int64) error {
	m := r.leaseFile
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of != r {
		return nil
	}
	owner, failed := "", r.failed
	switch {
	case errors.Is(failed, keygen.ErrWorkerLost):
		failed = nil // another process holds the worker id
	case failed != nil:
		owner = r.claim.Owner
		failed = fmt.Errorf("workerid: worker id %d stays leased, for the next process with the file %s: %w", r.entry.Worker, m.file, failed)
	}
	err := m.write(r, end, owner)
	m.of = nil
	return errors.Join(failed, err, m.releaseLock())
}
