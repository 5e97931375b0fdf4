package snowflake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
)

// await waits until state may be used or another family is in force; the caller
// then tries again.
func (g *Generator) await(ctx context.Context, f *family, state int64) error {
	switch {
	case g.isClosed():
		return g.fail(fmt.Errorf("snowflake: %w", keygen.ErrClosed))
	case state > f.limit.Load() && f.limit.Load() < g.end || state >= sealed:
		return g.awaitLease(ctx, f, state)
	case state > g.end:
		return g.fail(fmt.Errorf("snowflake: %w: its time field ended at %v", keygen.ErrExpired, g.layout.Expires()))
	}
	return g.awaitClock(ctx, f, state)
}

func (g *Generator) isClosed() bool {
	select {
	case <-g.closed:
		return true
	default:
		return false
	}
}

// leasePatience is the longest wait for a renewal or a new worker id by a caller
// whose context allows more.
const leasePatience = 10 * time.Second

// awaitLease waits until the keeper has raised the limit or changed the family.
func (g *Generator) awaitLease(ctx context.Context, f *family, state int64) error {
	changed := g.keeper.changed()
	if g.keeper.family.Load() != f || state <= f.limit.Load() {
		return nil
	}
	if err := g.keeper.lastError(); permanent(err) {
		return g.fail(fmt.Errorf("snowflake: renew the worker id's lease: %w", err))
	}
	g.waits.Add(1)
	g.keeper.hurry()
	timer := time.NewTimer(leasePatience)
	defer timer.Stop()
	select {
	case <-changed:
		return nil
	case <-g.closed:
		return g.fail(fmt.Errorf("snowflake: %w", keygen.ErrClosed))
	case <-ctx.Done():
		return g.fail(g.starved(ctx.Err()))
	case <-timer.C:
		return g.fail(g.starved(fmt.Errorf("waited %v for the worker id", leasePatience)))
	}
}

// permanent tells whether nothing helps but that somebody changes something; the
// keeper goes on trying.
func permanent(err error) bool {
	var setup *keygen.SetupError
	return errors.As(err, &setup)
}

func (g *Generator) starved(why error) error {
	if err := g.keeper.lastError(); err != nil {
		return fmt.Errorf("snowflake: %w: %w; the worker id's lease says: %w", keygen.ErrStarved, why, err)
	}
	return fmt.Errorf("snowflake: %w: %w", keygen.ErrStarved, why)
}

// awaitClock waits until the clock allows state. The wait is normally a tick or
// two; much more means that the clock reads behind.
func (g *Generator) awaitClock(ctx context.Context, f *family, state int64) error {
	tick := state>>g.seqBits - f.ahead.Load()
	behind := g.clock.Behind(tick)
	switch more := behind - 2*g.layout.Unit; {
	case behind == 0:
		return nil
	case more > 0:
		return g.rolledBack(ctx, f, rollback{tick, more})
	}
	g.waits.Add(1)
	return g.fail(g.sleep(ctx, tick, g.clock.Until(tick)))
}

// sleep waits until the clock reads tick.
func (g *Generator) sleep(ctx context.Context, tick int64, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			if wait = g.clock.Until(tick); wait == 0 {
				return nil
			}
			timer.Reset(wait)
		case <-ctx.Done():
			return fmt.Errorf("snowflake: %w: the ids of this tick are used up: %w", keygen.ErrStarved, ctx.Err())
		case <-g.closed:
			return fmt.Errorf("snowflake: %w", keygen.ErrClosed)
		}
	}
}
