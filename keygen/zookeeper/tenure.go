package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// tenure is the worker id of a [Workers] in use. Its generator calls one method
// at a time, except ID; a renewal is Leaf's report.
type tenure struct {
	workers  *Workers
	asking   asking
	worker   int64
	entry    entry
	layout   keygen.Layout
	reported time.Time // what the own clock read at the newest report
	fast     bool      // it was far ahead of ZooKeeper's then
	over     bool
}

var _ keygen.Window = (*tenure)(nil)

// reportLimit is for ZooKeeper; with a file it is Report at most, so that time is
// left for the file.
const reportLimit = 2 * time.Second

func (t *tenure) ID() int64           { return t.worker }
func (t *tenure) NotBefore() int64    { return t.entry.notBefore }
func (t *tenure) Ceiling() int64      { return t.entry.Ceiling }
func (t *tenure) Term() time.Duration { return t.workers.cfg.term() }

// Renew reports to ZooKeeper, or to the file when that is down.
func (t *tenure) Renew(ctx context.Context) (int64, error) {
	if t.over {
		return 0, fmt.Errorf("zookeeper: %w: worker id %d was given up", keygen.ErrWorkerLost, t.ID())
	}
	now := t.workers.now()
	if now.Before(t.reported) {
		return 0, t.giveUp(ctx, behind(now, t.reported, t.workers.forever()))
	}
	err := t.raise(ctx, now)
	switch {
	case errors.Is(err, keygen.ErrWorkerLost):
		return 0, t.giveUp(ctx, err)
	case errors.Is(err, workerid.ErrRecord): // the file's, not ZooKeeper's
	default:
		t.workers.answered(err)
		err = t.raiseAlone(now, err)
	}
	if err != nil {
		return 0, fmt.Errorf("zookeeper: report worker id %d: %w", t.ID(), err)
	}
	return t.entry.Ceiling, nil
}

// raise raises the ceiling in ZooKeeper.
func (t *tenure) raise(ctx context.Context, now time.Time) error {
	limit := reportLimit
	if t.workers.cfg.File != "" {
		limit = min(limit, t.workers.cfg.Report)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	e, err := t.workers.book.renew(ctx, t.asking, t.entry)
	if err != nil {
		return err
	}
	return t.report(ctx, e, t.believed(now, e.at))
}

// believed returns the time to write down as the own one: not one that is far ahead
// of ZooKeeper's. Once the clock is right again it would seem to have been set back,
// and keep the process out for as long as it was wrong.
func (t *tenure) believed(now, zooKeeper time.Time) time.Time {
	threshold := t.workers.cfg.Threshold
	fast := now.Sub(zooKeeper) > threshold
	if fast && !t.fast {
		t.workers.cfg.Observer.alarm(fmt.Errorf("zookeeper: %w: that of %s is %v ahead of ZooKeeper's; worker id %d goes on by ZooKeeper's", ErrClocksDiffer, t.workers.addr, now.Sub(zooKeeper), t.ID()))
	}
	if t.fast = fast; fast {
		return zooKeeper.Add(-threshold) // which is not ahead of the right time
	}
	return now
}

// report makes known what ZooKeeper has agreed to: that the process runs, which
// worker id it has, what time it has, and in the file how far it may go. The
// entry is in force when it returns nil.
func (t *tenure) report(ctx context.Context, e entry, now time.Time) error {
	w := t.workers
	if err := w.announce(ctx); errors.As(err, new(passing)) {
		return fmt.Errorf("%w: %w", keygen.ErrWorkerLost, err)
	} else if err != nil {
		return err
	}
	if err := w.book.client.lay(ctx, w.forever()); err != nil {
		return err
	}
	if _, err := w.book.client.set(ctx, w.forever(), encode(foreverNode{e.worker, now.UTC()}), anyVersion); err != nil {
		return fmt.Errorf("write %s: %w", w.forever(), err)
	}
	if err := w.remember(t.layout, e, now); err != nil {
		return err
	}
	t.entry, t.reported = e, now
	return nil
}

// raiseAlone raises the ceiling in the file, when ZooKeeper is down, up to what
// ZooKeeper has granted before.
func (t *tenure) raiseAlone(now time.Time, down error) error {
	if down == nil || t.workers.cfg.File == "" {
		return down
	}
	e := t.entry
	e.Ceiling = max(min(t.layout.Tick(now)+t.asking.ticks(t.asking.term), e.Until), e.Ceiling)
	if e.Ceiling == t.entry.Ceiling {
		return fmt.Errorf("the worker id is this one's until %v: %w", t.layout.At(e.Until), down)
	}
	if err := t.workers.remember(t.layout, e, now); err != nil {
		return errors.Join(err, down)
	}
	t.entry, t.reported = e, now
	return nil
}

// giveUp takes the process out of service. The generator issues no id from then
// on until it has acquired a worker id again.
func (t *tenure) giveUp(ctx context.Context, why error) error {
	t.over = true
	err := fmt.Errorf("zookeeper: %w: worker id %d of %s is out of service: %w", keygen.ErrWorkerLost, t.ID(), t.workers.addr, why)
	t.workers.cfg.Observer.alarm(err)
	_ = t.workers.leave(ctx) // else it ends with the session
	t.workers.end()
	return err
}

// Release hands the worker id back, used up to end. With a file it stays this
// file's for Hold.
func (t *tenure) Release(ctx context.Context, end int64) error {
	if t.over {
		return nil
	}
	t.over = true
	defer t.workers.end()
	e := t.entry
	e.Ceiling = max(end, e.notBefore)
	keep := t.workers.cfg.File != ""
	return errors.Join(
		t.workers.remember(t.layout, e, t.reported),
		t.workers.book.giveBack(ctx, t.asking, e, e.Ceiling, keep),
		t.workers.leave(ctx),
	)
}
