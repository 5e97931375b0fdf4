// SPDX-License-Identifier: Apache-2.0

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

// renewer holds the current lease. It renews the lease before its ceiling is reached, and
// acquires another worker id when the lease is lost or a rollback policy asks for it. One
// goroutine does all of that in sequence, so that a limit is never raised after its leaseState
// was sealed. A caller that switches the worker id holds working meanwhile, and so takes part
// in that sequence.
type renewer struct {
	g          *Generator
	leaseState atomic.Pointer[leaseState]

	wake   chan struct{} // a message asks for a renewal now; capacity 1
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended

	working   chan struct{} // capacity 1: who sent its element may renew, change or release a lease
	successor *leaseState   // replaces a lost lease once its first tick is reached; guarded by working

	releases sync.WaitGroup // releases of worker ids that were switched, which may outlast the calls that did it

	mu      sync.Mutex
	change  chan struct{} // closed and replaced when the limit or the lease changes
	last    error         // error of the newest renewal; after a success its clockWarning or nil
	counts  keygen.Stats  // reservations: leases acquired and renewed
	retired int64         // ids issued under former leases
}

func newRenewer(g *Generator, f *leaseState) *renewer {
	k := &renewer{g: g, wake: make(chan struct{}, 1), done: make(chan struct{}), working: make(chan struct{}, 1), change: make(chan struct{})}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.leaseState.Store(f)
	k.last = f.clockWarning
	return k
}

const (
	// renewals is the number of renewals within the term of a lease. Two of them may fail
	// before the ceiling is reached.
	renewals = 3

	callTimeout = 3 * time.Second // bounds one renewal, acquisition or release

	// After each renewal the renewer pauses, however many callers want another one; after
	// failures the pauses double from the first to the last.
	firstRetryPause = 50 * time.Millisecond
	lastRetryPause  = 2 * time.Second
)

func (k *renewer) run() {
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
		if !k.pauseAfter(failures) {
			return
		}
	}
}

// await returns true when the lease must be renewed, and false when the renewer is closed.
func (k *renewer) await(failures int) bool {
	if failures > 0 {
		return k.ctx.Err() == nil
	}
	var due <-chan time.Time
	if w, ok := k.leaseState.Load().lease.(keygen.Window); ok {
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

// pauseAfter returns false when the renewer is closed during the pause.
func (k *renewer) pauseAfter(failures int) bool {
	pause := min(firstRetryPause<<min(failures, 10), lastRetryPause)
	timer := time.NewTimer(pause/2 + rand.N(pause/2)) // random, so that processes that lost the database together do not retry together
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-k.ctx.Done():
		return false
	}
}

// renew raises the limit, or acquires another worker id when this one is lost.
func (k *renewer) renew() error {
	k.working <- struct{}{}
	defer k.finish()
	f := k.leaseState.Load()
	if _, ok := f.lease.(keygen.Window); !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(k.ctx, callTimeout)
	defer cancel()
	begin := time.Now()
	var err error
	if !f.lost {
		err = k.renewLease(ctx, f)
	}
	if f.lost {
		err = k.replace(ctx, f)
	}
	k.record(time.Since(begin), k.leaseState.Load().clockWarning, err)
	return err
}

// renewLease renews the lease of f and raises its limit.
func (k *renewer) renewLease(ctx context.Context, f *leaseState) error {
	begin := time.Now()
	ceiling, err := f.lease.(keygen.Window).Renew(ctx)
	f.lost = errors.Is(err, keygen.ErrWorkerLost)
	if err != nil {
		return err
	}
	if limit := k.g.before(ceiling); limit > f.limit.Load() {
		f.raise(limit)
		f.clockWarning = k.g.follow(f, begin)
	}
	now := k.g.clock.Tick()
	if f.highest() < k.g.before(now+k.g.ahead) {
		f.ahead.Store(k.g.ahead) // the clock has caught up
	}
	if ceiling <= now {
		return fmt.Errorf("%w: the ledger's clock is behind: the lease on worker id %d ends at %v, but the clock of this process reads %v; correct the wrong clock",
			keygen.ErrClockRollback, f.lease.ID(), k.g.layout.At(ceiling), k.g.layout.At(now))
	}
	return nil
}

// replace replaces f, whose lease was lost, by the lease on another worker id. The generator
// goes on with f up to its limit until the other lease begins.
func (k *renewer) replace(ctx context.Context, f *leaseState) error {
	if err := k.acquireSuccessor(ctx); err != nil {
		return err
	}
	if !k.successor.open() {
		return fmt.Errorf("the lease on worker id %d has not begun yet", k.successor.lease.ID())
	}
	f.seal()
	k.install(f, k.successor)
	k.successor = nil
	return nil
}

// acquireSuccessor acquires a worker id for the successor, or renews the lease that the
// successor has.
func (k *renewer) acquireSuccessor(ctx context.Context) (err error) {
	if k.successor != nil {
		if err := k.renewLease(ctx, k.successor); !k.successor.lost {
			return err
		}
	}
	k.successor, err = k.g.acquire(ctx, k.g.cfg.Worker)
	return err
}

// switchFrom acquires another worker id because the clock is behind f's last id. It seals f
// before the first id of the other one can be issued. A second caller finds that the switch is
// done.
func (k *renewer) switchFrom(ctx context.Context, f *leaseState, to keygen.Assigner) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stop := context.AfterFunc(k.ctx, cancel) // Close waits for this call
	defer stop()
	select {
	case k.working <- struct{}{}:
		defer k.finish()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", keygen.ErrStarved, ctx.Err())
	}
	if k.leaseState.Load() != f || k.g.isClosed() {
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
	k.record(took, next.clockWarning, nil)
	released := make(chan struct{})
	k.releases.Go(func() {
		defer close(released)
		if err := k.release(f, last); err != nil {
			k.record(took, next.clockWarning, err)
		}
	})
	select {
	case <-released: // so that a backup worker id is one again
	case <-ctx.Done():
	}
	return nil
}

// finish ends work on the leases.
func (k *renewer) finish() { <-k.working }

func (k *renewer) install(old, next *leaseState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.retired += old.issued()
	k.leaseState.Store(next)
}

// record stores the outcome of a change and wakes the callers that wait for it, also when an
// error means that waiting is useless.
func (k *renewer) record(took time.Duration, clockWarning, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last, k.counts.LastReservation = err, took
	if err == nil {
		k.last = clockWarning
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

// renewNow asks for a renewal before it is due.
func (k *renewer) renewNow() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// changed returns a channel that is closed at the next change.
func (k *renewer) changed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.change
}

func (k *renewer) lastError() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

func (k *renewer) describe(s *keygen.Stats) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.leaseState.Load()
	s.Issued, s.Worker = k.retired+f.issued(), f.lease.ID()
	s.Reservations, s.FailedReserves = k.counts.Reservations, k.counts.FailedReserves
	s.LastReservation, s.LastError = k.counts.LastReservation, k.last
	if _, windowed := f.lease.(keygen.Window); windowed {
		s.LeasedUntil = k.g.layout.At(k.g.tick(f.limit.Load()) + 1)
	}
	if s.LastError == nil {
		s.LastError = k.unrecorded(f, f.highest())
	}
}

// unrecorded returns an error when last, the last state of a lease, is in the future and no
// record outside of this process says so; nil otherwise.
func (k *renewer) unrecorded(f *leaseState, last int64) error {
	_, windowed := f.lease.(keygen.Window)
	if windowed || f.lease.NotBefore() == 0 {
		return nil
	}
	g := k.g
	switch {
	case g.ticks != nil:
		last = min(last, f.allowed.Load())
	case g.cfg.Now == nil: // a caller that waits for the clock owns a state that no id has yet
		_, most := g.clock.Read()
		last = min(last, g.limit(f, most))
	}
	ahead := g.layout.At(g.tick(last)).Sub(g.clock.Time())
	if ahead <= time.Duration(g.ahead)*g.layout.Unit {
		return nil
	}
	return fmt.Errorf("snowflake: %w: it was set back, and ids are %v ahead of it. A process that starts with worker id %d before the clock has caught up repeats ids: wait, and use workerid.Recorded or a lease in future", keygen.ErrClockRollback, ahead, f.lease.ID())
}

// release releases the worker id of a sealed leaseState, which was used up to last.
func (k *renewer) release(f *leaseState, last int64) error {
	lease, ok := f.lease.(keygen.Returnable)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if err := lease.Release(ctx, last>>k.g.seqBits+1); err != nil {
		return fmt.Errorf("snowflake: release worker id %d (the next holder has to wait until the lease ends): %w", f.lease.ID(), err)
	}
	return nil
}

// close ends the goroutine, and then seals and releases the lease.
func (k *renewer) close() error {
	k.cancel()
	<-k.done
	return k.end()
}

func (k *renewer) end() error {
	k.working <- struct{}{}
	defer k.finish()
	k.releases.Wait()
	f := k.leaseState.Load()
	last := f.seal()
	err := errors.Join(k.release(f, last), k.unrecorded(f, last))
	if k.successor != nil {
		err = errors.Join(err, k.release(k.successor, k.successor.seal()))
	}
	return err
}
