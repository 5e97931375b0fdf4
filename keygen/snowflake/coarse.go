// SPDX-License-Identifier: Apache-2.0

package snowflake

import (
	"context"
	"time"
)

// ticker is the goroutine of a generator with Config.Coarse. It raises the counter to the
// present tick, and the mark of the lease with it, so that callers need not read the clock. It
// sleeps while no ids are drawn.
//
// A caller takes the next state by one addition. If the state is at or below the mark, it is an
// id: the clock and the lease allowed all states up to the mark when it was set, and both only
// allow more later. If the state is above the mark, the caller reads the clock itself and sets
// the mark. So the goroutine only influences how old the time in an id may be.
type ticker struct {
	g    *Generator
	wake chan struct{} // a message wakes the goroutine; capacity 1
	done chan struct{} // closed when the goroutine has ended
}

// maxIdleTicks is the number of ticks without a new id after which the goroutine sleeps.
const maxIdleTicks = 10

// minTickPause is the shortest pause between two readings of the clock, for layouts with
// shorter ticks.
const minTickPause = time.Millisecond

func newTicker(g *Generator) *ticker {
	return &ticker{g: g, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

func (k *ticker) run() {
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
		k.g.renewer.leaseState.Load().mark.Store(0) // the next caller then wakes the goroutine
	}
}

// keep updates the tick until no more ids are drawn. It returns false when the generator is
// closed.
func (k *ticker) keep(timer *time.Timer) bool {
	pause := max(k.g.layout.Unit, minTickPause)
	var seen int64
	for idle := 0; idle < maxIdleTicks; {
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-k.g.closed:
			return false
		}
		if !k.awaitTestSignal() {
			return false
		}
		f := k.g.renewer.leaseState.Load()
		idle++
		if f.only.state.Load() != seen {
			idle = 0
		}
		k.markPresent(f)
		seen = f.only.state.Load()
	}
	return true
}

// awaitTestSignal blocks while a test stops the goroutine.
func (k *ticker) awaitTestSignal() bool {
	if k.g.cfg.testPause == nil {
		return true
	}
	select {
	case <-k.g.cfg.testPause:
		return true
	case <-k.g.closed:
		return false
	}
}

func (k *ticker) wakeUp() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// markPresent raises the counter of f to the present tick, if it is lower, and the mark to what
// the clock and the lease allow, if that is above the counter.
func (k *ticker) markPresent(f *leaseState) {
	g := k.g
	now, most := g.clock.Read()
	limit := g.limit(f, most)
	if s := f.only.state.Load(); g.tick(s) < now && s < limit {
		below := now<<g.seqBits | g.first.after(s) - 1 // the next addition makes the first id of the tick
		if below < limit && f.only.state.CompareAndSwap(s, below) {
			f.only.skipped.Add(below - s)
		}
	}
	lift(&f.allowed, limit)
	if f.only.state.Load() < limit {
		lift(&f.mark, limit)
	}
}

// nextByClock returns the next id and sets the mark for the calls after it. Like a generator
// without Coarse it takes a state only when the clock and the lease allow it.
func (k *ticker) nextByClock(ctx context.Context) (int64, error) {
	f, n, _, err := k.g.take(ctx, 1)
	if err != nil {
		return 0, err
	}
	k.goOn(f)
	return k.g.compose(n, f.workerField), nil
}

// goOn sets the mark, and then wakes the goroutine: in the other order it might never reset the
// mark.
func (k *ticker) goOn(f *leaseState) {
	k.markPresent(f)
	k.wakeUp()
}

// aboveMark continues with the state n, which Next took from f above the mark. If the clock
// does not allow n yet, it resets the mark, so that the calls after it take no state: each that
// ends with its context would leave its state unused, and many such calls would bring the
// counter far ahead of the clock.
func (k *ticker) aboveMark(ctx context.Context, f *leaseState, mark, n int64) (int64, error) {
	g := k.g
	now, most := g.clock.Read()
	switch limit := g.limit(f, most); {
	case n <= limit && g.tick(n) >= now:
		k.goOn(f)
		return g.compose(n, f.workerField), nil
	case n > limit:
		f.mark.CompareAndSwap(mark, 0)
		if n > f.limit.Load() { // a state above the limit is never used
			break
		}
		// This call owns n, and may use it once the clock allows it.
		if err := g.awaitClock(ctx, f, n); err != nil {
			f.only.skipped.Add(1)
			return 0, err
		}
		lift(&f.allowed, n)
		return g.compose(n, f.workerField), nil
	}
	f.only.skipped.Add(1) // it is above the limit of the lease, or its tick is past
	return k.nextByClock(ctx)
}
