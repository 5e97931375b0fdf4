// SPDX-License-Identifier: Apache-2.0

package snowflake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
)

// await waits until state may be used or the lease has changed; the caller then tries again.
func (g *Generator) await(ctx context.Context, f *leaseState, state int64) error {
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

// maxLeaseWait bounds a caller's wait for a renewal or a new worker id.
const maxLeaseWait = 10 * time.Second

// awaitLease waits until the renewer has raised the limit or changed the lease.
func (g *Generator) awaitLease(ctx context.Context, f *leaseState, state int64) error {
	changed := g.renewer.changed()
	if g.renewer.leaseState.Load() != f || state <= f.limit.Load() {
		return nil
	}
	if err := g.renewer.lastError(); permanent(err) {
		return g.fail(fmt.Errorf("snowflake: renew the worker id's lease: %w", err))
	}
	g.waits.Add(1)
	g.renewer.renewNow()
	timer := time.NewTimer(maxLeaseWait)
	defer timer.Stop()
	select {
	case <-changed:
		return nil
	case <-g.closed:
		return g.fail(fmt.Errorf("snowflake: %w", keygen.ErrClosed))
	case <-ctx.Done():
		return g.fail(g.starved(ctx.Err()))
	case <-timer.C:
		return g.fail(g.starved(fmt.Errorf("waited %v for the worker id", maxLeaseWait)))
	}
}

// permanent returns true when somebody must change something before a retry can succeed; the
// renewer retries nevertheless.
func permanent(err error) bool {
	var setup *keygen.SetupError
	return errors.As(err, &setup)
}

func (g *Generator) starved(why error) error {
	if err := g.renewer.lastError(); err != nil {
		return fmt.Errorf("snowflake: %w: %w; the renewal of the worker id's lease failed: %w", keygen.ErrStarved, why, err)
	}
	return fmt.Errorf("snowflake: %w: %w", keygen.ErrStarved, why)
}

// awaitClock waits until the clock allows state. That normally takes a tick or two; if it takes
// much longer, the clock went back.
func (g *Generator) awaitClock(ctx context.Context, f *leaseState, state int64) error {
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
