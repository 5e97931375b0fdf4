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

// maker makes the ids of one tick after the other. The engine calls reserve from
// one goroutine at a time.
type maker struct {
	layout keygen.Layout
	clock  *clock.Clock
	start  int64                  // the first sequence of the first tick, random
	issued func() int64           // how many ids were
	tenure atomic.Pointer[tenure] // changed by the tender alone
	hurry  chan<- struct{}        // asks the tender for a renewal

	last atomic.Int64 // the highest tick made; only reserve raises it
}

// reserve returns the ids of the next tick: the present one, or the one after
// the last, for which it may have to wait. They are all the ids that this
// worker id has in it, and lie as far apart as the sequence's field demands. Where
// ticks were left out before, as at the start or when few ids are wanted, they begin
// with the sequence after the one that was issued last: if they began with 0, only the
// first ones of each tick would be issued, which fall on few shards.
func (m *maker) reserve(ctx context.Context, _ spans.Pace) (keygen.Span, error) {
	t, l, last := m.tenure.Load(), m.layout, m.last.Load()
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
		First: tick<<l.Shift(keygen.Time) | begin<<l.Shift(keygen.Sequence) | t.part,
		Count: sequences - begin,
		Step:  1 << l.Shift(keygen.Sequence),
	}, nil
}

func (m *maker) askForRenewal() {
	select {
	case m.hurry <- struct{}{}:
	default:
	}
}

// await waits until the clock allows ids for tick. That takes two units at most,
// unless a clock of one's own was set back: then a lease allows them.
func (m *maker) await(ctx context.Context, t *tenure, tick int64) error {
	behind := m.clock.Behind(tick)
	switch {
	case behind == 0:
		return nil
	case behind <= 2*m.layout.Unit:
	case t.window != nil:
		return nil
	default:
		return fmt.Errorf("%w: it reads %v behind what the ring was filled up to; it is wrong now, or was when the ring was filled: correct it, or wait", keygen.ErrClockRollback, behind)
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
