package snowflake

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
)

// keeper holds the family in force: it renews the lease before its ceiling is
// reached, and takes another worker id when the lease is lost or a rollback
// policy asks for it. One goroutine does all of that, one thing after the other,
// so that a limit is never raised after its family was sealed; mu lets a caller
// who switches take its place in that order.
type keeper struct {
	g      *Generator
	family atomic.Pointer[family]

	wake   chan struct{} // asks for a renewal now; holds one
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended

	working sync.Mutex // held while a lease is renewed, changed or handed back
	heir    *family    // of a family whose lease is lost, leased but not open yet; guarded by working

	mu      sync.Mutex
	change  chan struct{} // closed and replaced when limit or family change
	last    error         // of the newest renewal; when it succeeded, its remark or nil
	counts  keygen.Stats  // reservations: leases acquired and renewed
	retired int64         // ids of former families
}

func newKeeper(g *Generator, f *family) *keeper {
	k := &keeper{g: g, wake: make(chan struct{}, 1), done: make(chan struct{}), change: make(chan struct{})}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.family.Store(f)
	k.last = f.remark
	return k
}

const (
	// renewals is how often a lease is renewed within its term, so that two
	// renewals may fail before the ceiling is reached.
	renewals = 3

	callTimeout = 3 * time.Second // of one renewal, acquisition or release

	// After a renewal the keeper rests, however many callers want another one;
	// after failures it rests longer each time.
	firstRest = 50 * time.Millisecond
	lastRest  = 2 * time.Second
)

func (k *keeper) run() {
	defer close(k.done)
	for failures := 0; ; {
		if !k.await(failures) {
			return
		}
		if k.renew() == nil {
			failures = 0
		} else {
			failures++
		}
		if !k.rest(failures) {
			return
		}
	}
}

// await returns true when the lease is to be renewed, and false when the keeper
// is closed.
func (k *keeper) await(failures int) bool {
	if failures > 0 {
		return k.ctx.Err() == nil
	}
	var due <-chan time.Time
	if w, ok := k.family.Load().lease.(keygen.Window); ok {
		timer := time.NewTimer(w.Term() / renewals)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
		return true
	case <-k.wake:
		return true
	case <-k.ctx.Done():
		return false
	}
}

// rest returns false when the keeper is closed meanwhile.
func (k *keeper) rest(failures int) bool {
	rest := min(firstRest<<min(failures, 10), lastRest)
	timer := time.NewTimer(rest/2 + rand.N(rest/2)) // processes that lost the database together do not return together
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-k.ctx.Done():
		return false
	}
}

// renew raises the limit, or takes another worker id when this one is lost.
func (k *keeper) renew() error {
	k.working.Lock()
	defer k.working.Unlock()
	f := k.family.Load()
	if _, ok := f.lease.(keygen.Window); !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(k.ctx, callTimeout)
	defer cancel()
	begin := time.Now()
	var err error
	if !f.lost {
		err = k.extend(ctx, f)
	}
	if f.lost {
		err = k.replace(ctx, f)
	}
	k.record(time.Since(begin), k.family.Load().remark, err)
	return err
}

// extend renews the lease of f and raises its limit.
func (k *keeper) extend(ctx context.Context, f *family) error {
	begin := time.Now()
	ceiling, err := f.lease.(keygen.Window).Renew(ctx)
	f.lost = errors.Is(err, keygen.ErrWorkerLost)
	if err != nil {
		return err
	}
	if limit := k.g.before(ceiling); limit > f.limit.Load() {
		f.raise(limit)
		f.remark = k.g.follow(f, begin)
	}
	now := k.g.clock.Tick()
	if f.highest() < k.g.before(now+k.g.ahead) {
		f.ahead.Store(k.g.ahead) // the clock has caught up
	}
	if ceiling <= now {
		return fmt.Errorf("%w: the ledger's. By it worker id %d is leased up to %v, and this process reads %v; correct the clock that is wrong",
			keygen.ErrClockRollback, f.lease.ID(), k.g.layout.At(ceiling), k.g.layout.At(now))
	}
	return nil
}

// replace puts a family with another worker id in the place of f, whose lease
// cannot be renewed any more. What was leased before stays f's, so that it goes
// on up to its limit as long as the other one's time has not come.
func (k *keeper) replace(ctx context.Context, f *family) error {
	if err := k.succeed(ctx); err != nil {
		return err
	}
	if !k.heir.open() {
		return fmt.Errorf("worker id %d was leased for later", k.heir.lease.ID())
	}
	f.seal()
	k.install(f, k.heir)
	k.heir = nil
	return nil
}

// succeed takes a worker id for the heir, or renews the lease on the one that it
// has.
func (k *keeper) succeed(ctx context.Context) (err error) {
	if k.heir != nil {
		if err := k.extend(ctx, k.heir); !k.heir.lost {
			return err
		}
	}
	k.heir, err = k.g.acquire(ctx, k.g.cfg.Worker)
	return err
}

// switchFrom takes another worker id because the clock is behind f's last id. It
// seals f before the other one's first id can be issued. Whoever comes second
// finds that it is done.
func (k *keeper) switchFrom(ctx context.Context, f *family, to keygen.Assigner) error {
	k.working.Lock()
	defer k.working.Unlock()
	if k.family.Load() != f || k.g.isClosed() {
		return nil
	}
	begin := time.Now()
	next, err := k.g.acquire(ctx, to)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	last := f.seal()
	k.install(f, next)
	k.record(took, next.remark, k.release(f, last))
	return nil
}

func (k *keeper) install(old, next *family) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.retired += old.issued()
	k.family.Store(next)
}

// record notes the outcome of a change and wakes those who wait for it, or who
// would wait in vain.
func (k *keeper) record(took time.Duration, remark, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last, k.counts.LastReservation = err, took
	if err == nil {
		k.last = remark
		k.counts.Reservations++
	} else {
		k.counts.FailedReserves++
		if !permanent(err) {
			return
		}
	}
	close(k.change)
	k.change = make(chan struct{})
}

// hurry asks for a renewal before it is due.
func (k *keeper) hurry() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// changed returns a channel that is closed at the next change.
func (k *keeper) changed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.change
}

func (k *keeper) lastError() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

func (k *keeper) describe(s *keygen.Stats) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.family.Load()
	s.Issued, s.Worker = k.retired+f.issued(), f.lease.ID()
	s.Reservations, s.FailedReserves = k.counts.Reservations, k.counts.FailedReserves
	s.LastReservation, s.LastError = k.counts.LastReservation, k.last
	if _, windowed := f.lease.(keygen.Window); windowed {
		s.LeasedUntil = k.g.layout.At(k.g.tick(f.limit.Load()) + 1)
	}
	if s.LastError == nil {
		s.LastError = k.unremembered(f, f.highest())
	}
}

// unremembered says that last, the last state of a family, is in the future and
// that nothing but this process knows, nil when that is not so.
func (k *keeper) unremembered(f *family, last int64) error {
	_, windowed := f.lease.(keygen.Window)
	if windowed || f.lease.NotBefore() == 0 {
		return nil
	}
	g := k.g
	if g.ticks != nil {
		last = min(last, f.allowed.Load())
	}
	ahead := g.layout.At(g.tick(last)).Sub(g.clock.Time())
	if ahead <= time.Duration(g.ahead)*g.layout.Unit {
		return nil
	}
	return fmt.Errorf("snowflake: %w: it was set back, and ids are %v ahead of it. A process that starts with worker id %d before it has caught up repeats them: wait, and let workerid.Recorded or a lease remember the next time", keygen.ErrClockRollback, ahead, f.lease.ID())
}

// release hands a sealed family's worker id back, used up to last.
func (k *keeper) release(f *family, last int64) error {
	lease, ok := f.lease.(keygen.Returnable)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if err := lease.Release(ctx, last>>k.g.seqBits+1); err != nil {
		return fmt.Errorf("snowflake: hand worker id %d back (the next holder waits until the lease ends): %w", f.lease.ID(), err)
	}
	return nil
}

// close ends the goroutine, then seals the family and hands its worker id back.
func (k *keeper) close() error {
	k.cancel()
	<-k.done
	return k.end()
}

func (k *keeper) end() error {
	k.working.Lock()
	defer k.working.Unlock()
	f := k.family.Load()
	last := f.seal()
	err := errors.Join(k.release(f, last), k.unremembered(f, last))
	if k.heir != nil {
		err = errors.Join(err, k.release(k.heir, k.heir.seal()))
	}
	return err
}
