package snowflake

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
)

// Policy is one way to deal with a clock that reads behind the last id. Policies
// are tried in the order of Config.Rollback.
type Policy interface {
	// recover returns true when the caller may try again. An error says why not.
	recover(ctx context.Context, g *Generator, f *family, r rollback) (bool, error)
}

// rollback is a clock that reads behind: the tick that it must reach for f to go
// on, and how far that is off beyond what is normal.
type rollback struct {
	tick   int64
	behind time.Duration
}

// Wait waits when the clock is behind by most at the most, which mends the small
// steps of time synchronisation: Leaf waits for steps up to 5 ms. It gives up,
// and the next policy is tried, when the clock has not caught up after twice the
// time that it was behind.
func Wait(most time.Duration) Policy { return wait(most) }

type wait time.Duration

func (w wait) recover(ctx context.Context, g *Generator, _ *family, r rollback) (bool, error) {
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

// SwitchWorker takes another worker id from an assigner, under which the time
// that the clock reads has not been used. The old worker id is handed back with
// its last time. The ways to have spare worker ids:
//
//   - leases (workerid.NewLeased, the same as Config.Worker): the one that rested
//     longest is taken from the database, and the old one goes back to the end of
//     the queue. Only these are safe when a rollback is followed by a crash.
//   - backup worker ids (workerid.Backup): some more for each process.
//   - extension bits: backup worker ids that differ in the upper bits of the
//     worker field; two bits more are good for three rollbacks.
func SwitchWorker(to keygen.Assigner) Policy { return switchWorker{to} }

type switchWorker struct{ to keygen.Assigner }

func (s switchWorker) recover(ctx context.Context, g *Generator, f *family, _ rollback) (bool, error) {
	if err := g.keeper.switchFrom(ctx, f, s.to); err != nil {
		return false, err
	}
	return true, nil
}

// rolledBack tries the policies. When none helps, a lease does, as its holder may
// use all of it whatever the clock reads; without one the error says why not.
func (g *Generator) rolledBack(ctx context.Context, f *family, r rollback) error {
	err := fmt.Errorf("snowflake: %w: it reads %v behind the last id; it is wrong now, or was when that id was made: correct it, or wait", keygen.ErrClockRollback, r.behind)
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
