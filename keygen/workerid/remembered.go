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

// memory is the file of LeasedConfig.File. It holds the newest lease of the
// process, and how much of it may be used up: the window is spent in pieces, each
// written down before its first tick is used. What is not spent belongs to nobody
// else before the ledger has another holder start above the ceiling, whenever
// that is; so it is still there for the next process that holds the lock, as long
// as the file is the very one that the former process wrote last. The lock's file
// tells which that is: it holds the number of the newest note.
type memory struct {
	file string
	now  func() time.Time

	mu   sync.Mutex // held while the file is read or written
	lock *os.File   // nil while no lease is remembered
	of   *remembered
}

// note is the file's content. NotBefore and Ceiling are the bounds of what may be
// used yet.
type note struct {
	Place      string    `json:"place"`
	Number     string    `json:"number"` // random
	Namespace  string    `json:"namespace"`
	Owner      string    `json:"owner"` // empty when the lease was handed back
	Worker     int64     `json:"worker"`
	Generation int64     `json:"generation"`
	Epoch      time.Time `json:"epoch"`
	Unit       string    `json:"unit"`
	Layout     string    `json:"layout,omitempty"` // "" of versions that noted none
	NotBefore  int64     `json:"not_before"`
	Ceiling    int64     `json:"ceiling"`
	Written    time.Time `json:"written"` // for people
	Sum        uint32    `json:"sum"`     // CRC-32 of the others
}

func (n note) summed() note {
	n.Sum = 0
	n.Sum = statefile.Sum(n)
	return n
}

// pieces is how many pieces of a window make up a term.
const pieces = 3

// remembered is a lease of which no more may be used than the file says.
type remembered struct {
	*window

	memory    *memory
	notBefore int64
	spent     int64     // the end of the piece in use
	written   time.Time // when spent was
	failed    error     // of the newest renewal in the ledger
}

var _ keygen.Window = (*remembered)(nil)

// acquire takes a lease and notes it. When the ledger is out of reach, it goes on
// with what is left of the lease in the file.
func (m *memory) acquire(ctx context.Context, l Ledger, c Claim) (keygen.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	where, err := m.hold()
	if err != nil {
		return nil, err
	}
	r, err := m.take(ctx, l, c, where)
	if err == nil {
		err = m.spend(r, max(m.tick(r), r.notBefore)+r.piece())
	}
	if err != nil {
		return nil, errors.Join(err, m.letGo())
	}
	m.of = r
	return r, nil
}

// hold locks the file and returns where it is.
func (m *memory) hold() (where string, err error) {
	if m.lock == nil {
		m.lock, err = statefile.Lock(m.file + ".lock")
	}
	if err == nil {
		where, err = place(m.lock)
	}
	if err != nil {
		return "", fmt.Errorf("%w %s: %w", ErrRecord, m.file, errors.Join(err, m.letGo()))
	}
	return where, nil
}

// letGo unlocks the file unless a lease is remembered.
func (m *memory) letGo() (err error) {
	if m.of == nil && m.lock != nil {
		err, m.lock = m.lock.Close(), nil
	}
	return err
}

func (m *memory) take(ctx context.Context, l Ledger, c Claim, where string) (*remembered, error) {
	old, err := m.read()
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrRecord, m.file, err)
	}
	r := &remembered{window: &window{ledger: l, claim: c, now: m.now}, memory: m}
	entry, err := l.Take(ctx, c)
	switch {
	case err == nil:
		r.entry = entry
	case m.of != nil || !outage(err): // what is in the file is in use, or the ledger has answered
		return nil, err
	default:
		if why := old.refusal(r, where); why != nil {
			return nil, fmt.Errorf("%w; and no lease can be resumed from %s: %w", err, m.file, why)
		}
		r.entry, r.failed = Entry{old.Worker, old.Generation, old.NotBefore, old.Ceiling}, err
		r.claim.Owner = old.Owner
	}
	r.raised = m.now()
	r.ceiling, r.notBefore = r.entry.Ceiling, r.entry.NotBefore
	return r, nil
}

// outage tells whether a ledger may just be out of reach, or in the middle of a
// fail-over.
func outage(err error) bool {
	if errors.Is(err, keygen.ErrReadOnly) {
		return true
	}
	var setup *keygen.SetupError
	return !errors.As(err, &setup) && !errors.Is(err, keygen.ErrNoWorker) && !errors.Is(err, keygen.ErrLayout)
}

// read returns the note, an empty one when there is none.
func (m *memory) read() (n note, err error) {
	text, err := os.ReadFile(m.file)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err == nil && (json.Unmarshal(text, &n) != nil || n.summed().Sum != n.Sum) {
		err = errors.New("it is damaged; delete it, which loses nothing but the chance to start while the database is down")
	}
	return n, err
}

// refusal says why r cannot go on with the lease of a note.
func (n note) refusal(r *remembered, where string) error {
	now := r.memory.tick(r)
	switch {
	case n.Owner == "":
		return errors.New("none is in it")
	case n.Number != r.memory.newest():
		return errors.New("it is not what was written there last")
	case n.Place != where:
		return errors.New("it was written on another machine, before this one was started, or is a copy")
	case n.Namespace != r.claim.Namespace || !n.Epoch.Equal(r.claim.Layout.Epoch) || n.Unit != r.claim.Layout.Unit.String() || n.Worker > r.claim.Most:
		return fmt.Errorf("it is about namespace %q in units of %s since %v", n.Namespace, n.Unit, n.Epoch)
	case n.Layout == "" && !n.of(r.claim):
		return fmt.Errorf("it is of a version that notes no layout; set LeasedConfig.Former to its layout if you know that it is this one's, %q", r.claim.Layout.Fingerprint())
	case !n.of(r.claim):
		return fmt.Errorf("it is about ids of %q, and this process makes those of %q", n.Layout, r.claim.Layout.Fingerprint())
	case max(n.NotBefore, now) >= n.Ceiling:
		return fmt.Errorf("the one of worker id %d is used up, or has ended", n.Worker)
	}
	return nil
}

// of tells whether the lease of a note is one of the claim's layout.
func (n note) of(c Claim) bool {
	s := c.Standing(n.Layout)
	return s == Own || s == Stated
}

func (m *memory) tick(r *remembered) int64 { return r.claim.Layout.Tick(m.now()) }

// spend notes that r uses its window up to a tick. A lease that is not the newest
// is in no file, and so its window is all its own.
func (m *memory) spend(r *remembered, upTo int64) error {
	upTo = min(upTo, r.ceiling)
	if m.of == r || r.written.IsZero() {
		if err := m.write(r, upTo, r.claim.Owner); err != nil {
			return err
		}
	}
	r.spent, r.written = upTo, m.now()
	return nil
}

// write puts a note in the place of the one before. It is the newest once the
// lock's file says so, which need not outlast the machine's run, as no note does.
func (m *memory) write(r *remembered, notBefore int64, owner string) error {
	where, err := place(m.lock)
	if err != nil {
		return fmt.Errorf("%w %s: %w", ErrRecord, m.file, err)
	}
	n := note{
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

// newest returns the number of the newest note, nothing when there is none.
func (m *memory) newest() string {
	number := make([]byte, len(rand.Text()))
	if _, err := m.lock.ReadAt(number, 0); err != nil {
		return ""
	}
	return string(number)
}

func (r *remembered) NotBefore() int64    { return r.notBefore }
func (r *remembered) Ceiling() int64      { return r.spent }
func (r *remembered) Term() time.Duration { return r.claim.Term / pieces }
func (r *remembered) piece() int64        { return int64(r.Term() / r.claim.Layout.Unit) }

// Renew begins the next piece, for which it renews the lease when that is due.
// The ledger's error shows once it leaves no room for another piece.
func (r *remembered) Renew(ctx context.Context) (int64, error) {
	m := r.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	next := max(m.tick(r)+r.piece(), r.spent+int64(clock.Slewed(m.now().Sub(r.written))/r.claim.Layout.Unit))
	if r.failed != nil || next > r.ceiling || m.now().Sub(r.raised) >= r.Term() {
		if _, r.failed = r.window.Renew(ctx); errors.Is(r.failed, keygen.ErrWorkerLost) {
			return 0, r.failed
		}
	}
	if min(next, r.ceiling) <= r.spent {
		return r.spent, r.failed
	}
	if err := m.spend(r, next); err != nil {
		return 0, err
	}
	return r.spent, nil
}

// Release forgets the lease before it hands it back, as the next holder begins
// below the ceiling that is in the file. When the ledger is out of reach, the rest
// stays in the file instead, for a process that starts before the ledger is back.
func (r *remembered) Release(ctx context.Context, end int64) error {
	if err := r.forget(max(end, r.notBefore)); err != nil {
		return err
	}
	return r.window.Release(ctx, end)
}

func (r *remembered) forget(end int64) error {
	m := r.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of != r {
		return nil
	}
	owner, failed := "", r.failed
	switch {
	case errors.Is(failed, keygen.ErrWorkerLost):
		failed = nil // there is nothing to hand back
	case failed != nil:
		owner = r.claim.Owner
		failed = fmt.Errorf("workerid: worker id %d stays leased, for the next process with the file %s: %w", r.entry.Worker, m.file, failed)
	}
	err := m.write(r, end, owner)
	m.of = nil
	return errors.Join(failed, err, m.letGo())
}
