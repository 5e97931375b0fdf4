package cached

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/shardid/shardid/keygen"
)

// tenure is the right to a worker id, as it stood when it was looked at last. It
// is never changed, only replaced.
type tenure struct {
	lease  keygen.Lease
	window keygen.Window // the lease, when it has an end
	part   int64         // the worker id in its place in an id

	first   int64 // the first tick that is ours
	ceiling int64 // the first tick that is not
	lead    int64 // how many ticks ahead of the clock ids may be
	err     error // of the last renewal
	remark  error // of the last one that raised the ceiling: the clocks differ

	lost bool    // the lease cannot be renewed any more
	heir *tenure // of a lost one, leased but for later
}

const callTimeout = 3 * time.Second // of one renewal, acquisition or release

// acquire takes a worker id.
func (g *Generator) acquire(ctx context.Context) (*tenure, error) {
	l, begin := g.cfg.Layout, time.Now()
	lease, err := g.cfg.Worker.Acquire(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("acquire a worker id: %w", err)
	}
	t := &tenure{lease: lease, part: workerPart(l, lease.ID()), ceiling: math.MaxInt64, lead: g.cfg.ticks() - 1}
	if w, ok := lease.(keygen.Window); ok {
		// Where the ledger's clock is ahead of ours, or has to let time pass that
		// may have been promised to somebody else, ids start in the future.
		t.window, t.first, t.ceiling = w, w.NotBefore(), w.Ceiling()
		t.remark = g.follow(w, begin)
		t.lead += max(t.first-g.maker.clock.Tick(), 0)
	}
	if err := g.check(t); err != nil {
		return nil, errors.Join(err, t.release(ctx, t.first))
	}
	return t, nil
}

func (g *Generator) check(t *tenure) error {
	most := int64(1)<<g.cfg.Layout.WorkerBits() - 1
	if id := t.lease.ID(); id < 0 || id > most {
		return fmt.Errorf("%w: the assigner gave %d, and the layout has 0 to %d", keygen.ErrNoWorker, id, most)
	}
	if first := t.lease.NotBefore(); first < 0 || first > 0 && t.window == nil {
		return fmt.Errorf("Config.Worker gave a worker id that may have been used before and does not remember how far (%T); ids made ahead of time would come again after a restart: give a store's WorkerNode or workerid.NewLeased, or wrap it in workerid.Recorded", t.lease)
	}
	if t.window != nil && t.window.Term() < renewals*g.cfg.length() {
		return fmt.Errorf("Config.BoostPower is %d, so that the ring reaches %v into the future; the lease's term of %v (with a File, a third of LeasedConfig.Term) must be %d times that at least", g.cfg.BoostPower, g.cfg.length(), t.window.Term(), renewals)
	}
	return nil
}

// follow lets the clock know what the ledger of a lease reads, after the lease was
// given or renewed at some time since begin. It returns what is to be said when the
// clocks differ.
func (g *Generator) follow(w keygen.Window, begin time.Time) error {
	if ahead := g.maker.clock.Follow(w.Ceiling(), w.Term(), begin); ahead > 0 {
		return fmt.Errorf("cached: %w: this process reads %v more than the ledger of worker id %d; ids have the ledger's time until the clock that is wrong is corrected", keygen.ErrClockRollback, ahead, w.ID())
	}
	return nil
}

func workerPart(l keygen.Layout, id int64) int64 {
	var p keygen.Parts
	l.SplitWorker(&p, id)
	return p.Datacenter<<l.Shift(keygen.Datacenter) | p.Worker<<l.Shift(keygen.Worker)
}

// renew returns what comes after t: the same with a higher ceiling or with the
// error, or another worker id when this one is lost.
func (g *Generator) renew(ctx context.Context, t *tenure) *tenure {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	next := *t
	if !t.lost {
		g.extendWindow(ctx, &next)
	}
	if next.lost {
		return g.succeed(ctx, &next)
	}
	return &next
}

// extendWindow raises the ceiling of t, which nobody else has yet, or notes why not.
func (g *Generator) extendWindow(ctx context.Context, t *tenure) {
	begin := time.Now()
	ceiling, err := t.window.Renew(ctx)
	t.err, t.lost = err, errors.Is(err, keygen.ErrWorkerLost)
	if t.lost {
		return
	}
	if ceiling > t.ceiling {
		t.ceiling, t.remark = ceiling, g.follow(t.window, begin)
	}
	if now := g.maker.clock.Tick(); err == nil && t.ceiling <= now {
		t.err = fmt.Errorf("%w: the ledger's, as this process reads %v; correct the clock that is wrong", keygen.ErrClockRollback, g.cfg.Layout.At(now))
	}
}

// succeed returns another worker id for t, which is lost. What was leased before
// stays t's as long as the other one's time has not come.
func (g *Generator) succeed(ctx context.Context, t *tenure) *tenure {
	if t.heir != nil {
		t.heir = g.renew(ctx, t.heir)
	} else if t.heir, t.err = g.acquire(ctx); t.err != nil {
		return t
	}
	if t.heir.first < t.heir.ceiling {
		return t.heir
	}
	t.err = t.heir.err
	return t
}

// exhausted says why no ids can be made any more.
func (t *tenure) exhausted(l keygen.Layout) error {
	switch {
	case t.heir != nil && t.err == nil:
		return fmt.Errorf("worker id %d was leased for later, from %v on", t.heir.lease.ID(), l.At(t.heir.first))
	case t.err != nil:
		return fmt.Errorf("worker id %d is leased up to %v: %w", t.lease.ID(), l.At(t.ceiling), t.err)
	}
	return fmt.Errorf("worker id %d is leased up to %v, and its renewal is under way", t.lease.ID(), l.At(t.ceiling))
}

// release hands a leased worker id back, used up to, not including, the tick
// end.
func (t *tenure) release(ctx context.Context, end int64) error {
	if t.heir != nil {
		return t.heir.release(ctx, t.heir.first)
	}
	if t.window == nil || t.lost {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := t.window.Release(ctx, end); err != nil {
		return fmt.Errorf("cached: hand worker id %d back (the next holder waits until the lease ends): %w", t.lease.ID(), err)
	}
	return nil
}
