// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/clock"
	"github.com/shardid/shardid/keygen/internal/spans"
)

// maker makes the ids of one tick after the other. The buffer calls reserve from one goroutine
// at a time.
type maker struct {
	layout      keygen.Layout
	clock       *clock.Clock
	start       int64                       // the first sequence of the first tick, random
	issued      func() int64                // the number of ids issued so far
	workerLease atomic.Pointer[workerLease] // only the maintenance goroutine stores
	renewNow    chan<- struct{}             // a message asks the maintenance goroutine for a renewal

	last atomic.Int64 // the highest tick made; only reserve raises it
}

// reserve returns the ids of the next tick: of the present tick, or of the one after the last,
// for which it may have to wait. They are all ids of this worker id in the tick, spaced by the
// place of the sequence field. When ticks were skipped, as at the start or when callers want
// few ids, the ids begin with the sequence after the one issued last. If each tick began with
// sequence 0, a generator that issues few ids would issue only the first ones of each tick, and
// these fall on few shards.
func (m *maker) reserve(ctx context.Context, _ spans.Pace) (keygen.Span, error) {
	t, l, last := m.workerLease.Load(), m.layout, m.last.Load()
	tick := max(m.clock.Tick(), last+1, t.first)
	if !l.At(tick).Before(l.Expires()) {
		return keygen.Span{}, fmt.Errorf("%w: its time field ends at %v", keygen.ErrExpired, l.Expires())
	}
	if tick >= t.ceiling {
		m.askForRenewal()
		return keygen.Span{}, t.exhausted(l)
	}
	if err := m.await(ctx, t, tick-t.lead); err != nil {
		return keygen.Span{}, err
	}
	m.last.Store(tick)
	sequences, begin := int64(1)<<l.Bits(keygen.Sequence), int64(0)
	if tick != last+1 {
		begin = (m.start + m.issued()) & (sequences - 1)
	}
	return keygen.Span{
		First: tick<<l.Shift(keygen.Time) | begin<<l.Shift(keygen.Sequence) | t.idPart,
		Count: sequences - begin,
		Step:  1 << l.Shift(keygen.Sequence),
	}, nil
}

func (m *maker) askForRenewal() {
	select {
	case m.renewNow <- struct{}{}:
	default:
	}
}

// await waits until the clock allows ids for tick. That takes at most two units, unless a
// configured clock was set back. In that case a lease allows the ids at once, because its
// ceiling bounds them.
func (m *maker) await(ctx context.Context, t *workerLease, tick int64) error {
	behind := m.clock.Behind(tick)
	switch {
	case behind == 0:
		return nil
	case behind <= 2*m.layout.Unit:
	case t.window != nil:
		return nil
	default:
		return fmt.Errorf("%w: it reads %v before the time up to which the ring was filled; it is wrong now, or was wrong at that fill: correct it, or wait", keygen.ErrClockRollback, behind)
	}
	timer := time.NewTimer(m.clock.Until(tick))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
