package snowflake

import (
	"context"
	"time"
)

// tickKeeper is the goroutine of a generator with Config.Coarse. It lifts the counter
// to the present tick, and the family's mark with it, so that callers need no clock. It
// sleeps while no ids are drawn.
//
// A caller takes the next state by one addition. At or below the mark it is an id, as
// all states up to the mark were allowed by the clock and the lease when it was set, and
// both only allow more as time goes on. Above it the caller reads the clock itself, and
// sets the mark. So the goroutine decides nothing but how old the time of an id may be.
type tickKeeper struct {
	g    *Generator
	wake chan struct{} // holds one
	done chan struct{} // closed when the goroutine has ended
}

// drowsy is how many times in a row the goroutine looks in vain for ids that were drawn
// before it goes to sleep.
const drowsy = 10

// leastPause is between two looks at the clock, also where a tick is shorter.
const leastPause = time.Millisecond

func newTickKeeper(g *Generator) *tickKeeper {
	return &tickKeeper{g: g, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

func (k *tickKeeper) run() {
	defer close(k.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-k.wake:
		case <-k.g.closed:
			return
		}
		if !k.keep(timer) {
			return
		}
		k.g.keeper.family.Load().mark.Store(0) // the next caller wakes it
	}
}

// keep keeps the tick until no ids are drawn any more. It returns false when the
// generator is closed.
func (k *tickKeeper) keep(timer *time.Timer) bool {
	pause := max(k.g.layout.Unit, leastPause)
	var seen int64
	for idle := 0; idle < drowsy; {
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-k.g.closed:
			return false
		}
		if !k.thaw() {
			return false
		}
		f := k.g.keeper.family.Load()
		idle++
		if f.only.state.Load() != seen {
			idle = 0
		}
		k.g.markPresent(f)
		seen = f.only.state.Load()
	}
	return true
}

// thaw waits where a test has stopped the goroutine.
func (k *tickKeeper) thaw() bool {
	if k.g.cfg.frozen == nil {
		return true
	}
	select {
	case <-k.g.cfg.frozen:
		return true
	case <-k.g.closed:
		return false
	}
}

func (k *tickKeeper) stir() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// markPresent lifts the counter of f to the present tick, unless it is there, and the
// mark to what the clock and the lease allow.
func (g *Generator) markPresent(f *family) {
	now, most := g.clock.Read()
	limit := g.limit(f, most)
	if s := f.only.state.Load(); g.tick(s) < now && s < limit {
		below := now<<g.seqBits | g.firstSequence(s) - 1 // the next addition makes the first id of the tick
		if below < limit && f.only.state.CompareAndSwap(s, below) {
			f.only.skipped.Add(below - s)
		}
	}
	lift(&f.allowed, limit)
	lift(&f.mark, limit)
}

// nextByClock goes on with the state n that Next took from f, beyond its mark.
func (g *Generator) nextByClock(ctx context.Context, f *family, n int64) (int64, error) {
	for {
		now, most := g.clock.Read()
		switch limit := g.limit(f, most); {
		case n <= limit && g.tick(n) >= now:
			g.markPresent(f)
			g.ticks.stir() // after the mark was set, or nobody would take it back
			return g.compose(n, f.workerPart), nil
		case n <= limit: // of a tick that has passed
			f.only.skipped.Add(1)
			g.markPresent(f)
		case n <= f.limit.Load():
			// n is this call's own; it may be used once the clock allows it.
			if err := g.awaitClock(ctx, f, n); err != nil {
				f.only.skipped.Add(1)
				return 0, err
			}
			lift(&f.allowed, n)
			return g.compose(n, f.workerPart), nil
		default:
			f.only.skipped.Add(1) // burnt
			if err := g.await(ctx, f, max(f.only.state.Load()+1, g.before(now)+1)); err != nil {
				return 0, err
			}
		}
		f = g.keeper.family.Load()
		n = f.only.state.Add(1)
	}
}
