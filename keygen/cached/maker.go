package cached

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/spans"
)

// maker makes the ids of one tick after the other. The engine calls reserve from
// one goroutine at a time.
type maker struct {
	layout keygen.Layout
	clock  clock
	tenure atomic.Pointer[tenure] // changed by the tender alone
	hurry  chan<- struct{}        // asks the tender for a renewal

	last atomic.Int64 // the highest tick made; only reserve raises it
}

// reserve returns the ids of the next tick: the present one, or the one after
// the last, for which it may have to wait. They are all the ids that this
// worker id has in it, and lie as far apart as the sequence's field demands.
func (m *maker) reserve(ctx context.Context, _ spans.Pace) (keygen.Span, error) {
	t, l := m.tenure.Load(), m.layout
	tick := max(m.tick(), m.last.Load()+1, t.first)
	if !l.At(tick).Before(l.Expires()) {
		return keygen.Span{}, fmt.Errorf("%w: its time field ends at %v", keygen.ErrExpired, l.Expires())
	}
	if tick >= t.ceiling {
		m.askForRenewal()
		return keygen.Span{}, t.exhausted(l)
	}
	if err := m.await(ctx, tick-t.lead); err != nil {
		return keygen.Span{}, err
	}
	m.last.Store(tick)
	return keygen.Span{
		First: tick<<l.Shift(keygen.Time) | t.part,
		Count: 1 << l.Bits(keygen.Sequence),
		Step:  1 << l.Shift(keygen.Sequence),
	}, nil
}

func (m *maker) tick() int64 { return m.layout.Tick(m.clock.read()) }

func (m *maker) askForRenewal() {
	select {
	case m.hurry <- struct{}{}:
	default:
	}
}

// await waits until the clock reads tick. That takes a unit at most, unless the
// clock was set back.
func (m *maker) await(ctx context.Context, tick int64) error {
	wait := m.layout.At(tick).Sub(m.clock.read())
	if wait <= 0 {
		return nil
	}
	if wait > 2*m.layout.Unit {
		return fmt.Errorf("%w: it reads %v behind what the ring was filled up to; correct the clock, or wait", keygen.ErrClockRollback, wait)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
