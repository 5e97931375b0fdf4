// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/shardid/shardid/keygen"
)

// workerLease is the lease on a worker id and the result of its newest renewal. It is
// immutable; a renewal replaces it.
type workerLease struct {
	lease  keygen.Lease
	window keygen.Window // the lease, nil when it has no ceiling
	idPart int64         // the bits of an id that hold the worker id

	first        int64 // the first tick of the lease
	ceiling      int64 // the first tick after the lease
	lead         int64 // by how many ticks ids may be ahead of the clock
	err          error // the error of the newest renewal
	clockWarning error // set by the newest renewal that raised the ceiling, when the clocks differ

	lost      bool         // another process has the worker id
	successor *workerLease // the lease that replaces a lost one, once its first tick is reached
}

const callTimeout = 3 * time.Second // bounds one renewal, acquisition or release

// acquire takes a worker id.
func (g *Generator) acquire(ctx context.Context) (*workerLease, error) {
	l, begin := g.cfg.Layout, time.Now()
	lease, err := g.cfg.Worker.Acquire(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("acquire a worker id: %w", err)
	}
	t := &workerLease{lease: lease, idPart: workerPart(l, lease.ID()), ceiling: math.MaxInt64, lead: g.cfg.ticks() - 1}
	if w, ok := lease.(keygen.Window); ok {
		// Ids start in the future when the ledger's clock is ahead of ours, or when the ledger
		// must let a time pass that another process may have been promised.
		t.window, t.first, t.ceiling = w, w.NotBefore(), w.Ceiling()
		t.clockWarning = g.follow(w, begin)
		t.lead += max(t.first-g.maker.clock.Tick(), 0)
	}
	if err := g.check(t); err != nil {
		return nil, errors.Join(err, t.release(ctx, t.first))
	}
	return t, nil
}

func (g *Generator) check(t *workerLease) error {
	most := int64(1)<<g.cfg.Layout.WorkerBits() - 1
	if id := t.lease.ID(); id < 0 || id > most {
		return fmt.Errorf("%w: the assigner gave worker id %d, but the layout has only 0 to %d", keygen.ErrNoWorker, id, most)
	}
	if first := t.lease.NotBefore(); first < 0 || first > 0 && t.window == nil {
		return fmt.Errorf("Config.Worker (%T) gave a worker id that may have been used before, without a record of up to which time; after a restart the generator would repeat ids that were made ahead: use a store's WorkerNode or workerid.NewLeased, or wrap the assigner in workerid.Recorded", t.lease)
	}
	if t.window != nil && t.window.Term() < renewals*g.cfg.length() {
		return fmt.Errorf("Config.BoostPower is %d: the ring reaches %v into the future, and the lease's term of %v (with a File, a third of LeasedConfig.Term) must be at least %d times as long; lower BoostPower or lengthen the term", g.cfg.BoostPower, g.cfg.length(), t.window.Term(), renewals)
	}
	return nil
}

// follow passes the ledger's time to the clock, after the ledger granted or renewed a lease at
// some time since begin. It returns an error that describes the difference when the clocks
// differ, nil otherwise.
func (g *Generator) follow(w keygen.Window, begin time.Time) error {
	if ahead := g.maker.clock.Follow(w.Ceiling(), w.Term(), begin); ahead > 0 {
		return fmt.Errorf("cached: %w: the clock of this process is %v ahead of the ledger's, which granted worker id %d; ids have the ledger's time until somebody corrects the wrong clock", keygen.ErrClockRollback, ahead, w.ID())
	}
	return nil
}

func workerPart(l keygen.Layout, id int64) int64 {
	var p keygen.Parts
	l.SplitWorker(&p, id)
	return p.Datacenter<<l.Shift(keygen.Datacenter) | p.Worker<<l.Shift(keygen.Worker)
}

// renew returns the successor of t: t with a higher ceiling or with the error of the renewal,
// or the lease on another worker id when t is lost.
func (g *Generator) renew(ctx context.Context, t *workerLease) *workerLease {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	next := *t
	if !t.lost {
		g.extendWindow(ctx, &next)
	}
	if next.lost {
		return g.replaceLost(ctx, &next)
	}
	return &next
}

// extendWindow raises the ceiling of t, a copy that no other goroutine sees, or stores the
// error in it.
func (g *Generator) extendWindow(ctx context.Context, t *workerLease) {
	begin := time.Now()
	ceiling, err := t.window.Renew(ctx)
	t.err, t.lost = err, errors.Is(err, keygen.ErrWorkerLost)
	if t.lost {
		return
	}
	if ceiling > t.ceiling {
		t.ceiling, t.clockWarning = ceiling, g.follow(t.window, begin)
	}
	if now := g.maker.clock.Tick(); err == nil && t.ceiling <= now {
		t.err = fmt.Errorf("%w: the ledger's clock is behind; the clock of this process reads %v, past the lease's ceiling: correct the wrong clock", keygen.ErrClockRollback, g.cfg.Layout.At(now))
	}
}

// replaceLost returns the lease on another worker id for t, which is lost. It returns t as long
// as the other lease has not begun: ids of t below its ceiling are still safe.
func (g *Generator) replaceLost(ctx context.Context, t *workerLease) *workerLease {
	if t.successor != nil {
		t.successor = g.renew(ctx, t.successor)
	} else if t.successor, t.err = g.acquire(ctx); t.err != nil {
		return t
	}
	if t.successor.first < t.successor.ceiling {
		return t.successor
	}
	t.err = t.successor.err
	return t
}

// exhausted returns the reason why the lease allows no further ids.
func (t *workerLease) exhausted(l keygen.Layout) error {
	switch {
	case t.successor != nil && t.err == nil:
		return fmt.Errorf("the lease on worker id %d begins only at %v", t.successor.lease.ID(), l.At(t.successor.first))
	case t.err != nil:
		return fmt.Errorf("the lease on worker id %d ends at %v and cannot be renewed: %w", t.lease.ID(), l.At(t.ceiling), t.err)
	}
	return fmt.Errorf("the lease on worker id %d ends at %v, and its renewal is under way", t.lease.ID(), l.At(t.ceiling))
}

// release releases a leased worker id, which was used up to, not including, the tick end.
func (t *workerLease) release(ctx context.Context, end int64) error {
	if t.successor != nil {
		return t.successor.release(ctx, t.successor.first)
	}
	if t.window == nil || t.lost {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := t.window.Release(ctx, end); err != nil {
		return fmt.Errorf("cached: release worker id %d (the next holder has to wait until the lease ends): %w", t.lease.ID(), err)
	}
	return nil
}
