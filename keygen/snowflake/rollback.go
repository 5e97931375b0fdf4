// SPDX-License-Identifier: Apache-2.0

package snowflake

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
)

// Policy is one way to handle a clock that is behind the last id. The generator tries policies
// in the order of Config.Rollback.
type Policy interface {
	// recover returns true when the caller may try again. An error says why not.
	recover(ctx context.Context, g *Generator, f *leaseState, r rollback) (bool, error)
}

// rollback is a clock that is behind: the tick that it must reach before f can go on, and how
// far it is from that, beyond the normal distance.
type rollback struct {
	tick   int64
	behind time.Duration
}

// Wait returns a policy that waits, if the clock is behind by most at the most. That handles
// the small steps of time synchronisation; Leaf waits for steps up to 5 ms. The next policy is
// tried when the clock has not caught up after twice the time that it was behind.
func Wait(most time.Duration) Policy { return wait(most) }

type wait time.Duration

func (w wait) recover(ctx context.Context, g *Generator, _ *leaseState, r rollback) (bool, error) {
	if r.behind > time.Duration(w) {
		return false, nil
	}
	g.waits.Add(1)
	limit, cancel := context.WithTimeout(ctx, 2*(r.behind+2*g.layout.Unit))
	defer cancel()
	if g.sleep(limit, r.tick, g.clock.Until(r.tick)) == nil {
		return true, nil
	}
	switch {
	case g.isClosed():
		return false, keygen.ErrClosed
	case ctx.Err() != nil:
		return false, fmt.Errorf("%w: %w", keygen.ErrStarved, ctx.Err())
	}
	return false, nil
}

// SwitchWorker returns a policy that takes another worker id from an assigner, with which the
// time that the clock reads has not been used. It releases the old worker id with its last
// time. The next policy is tried when the assigner has not answered after three seconds. Spare
// worker ids come from:
//
//   - leases (workerid.NewLeased, the same as Config.Worker): the database gives the
//     one that has been free longest, and the old one goes to the end of the queue.
//     Only these are safe when a crash follows the rollback.
//   - backup worker ids (workerid.Backup): some more for each process.
//   - extension bits: backup worker ids that differ in the upper bits of the
//     worker field; two more bits allow three rollbacks.
func SwitchWorker(to keygen.Assigner) Policy { return switchWorker{to} }

type switchWorker struct{ to keygen.Assigner }

func (s switchWorker) recover(ctx context.Context, g *Generator, f *leaseState, _ rollback) (bool, error) {
	err := g.renewer.switchFrom(ctx, f, s.to)
	if err != nil && g.isClosed() {
		err = keygen.ErrClosed
	}
	return err == nil, err
}

// rolledBack tries the policies. When none helps, a generator with a lease goes on, because the
// holder may use all of a lease whatever the clock reads. Without a lease rolledBack returns an
// error.
func (g *Generator) rolledBack(ctx context.Context, f *leaseState, r rollback) error {
	err := fmt.Errorf("snowflake: %w: it is %v behind the last id; it is wrong now, or was wrong when that id was made: correct it, or wait", keygen.ErrClockRollback, r.behind)
	for _, p := range g.cfg.Rollback {
		again, failed := p.recover(ctx, g, f, r)
		if again {
			return nil
		}
		if failed != nil {
			err = fmt.Errorf("%w; %w", err, failed)
		}
	}
	if _, windowed := f.lease.(keygen.Window); windowed && !g.isClosed() {
		lift(&f.ahead, r.tick+f.ahead.Load()-g.clock.Tick())
		return nil
	}
	return g.fail(err)
}
