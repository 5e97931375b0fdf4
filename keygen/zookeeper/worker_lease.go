// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// workerLease is the worker id of a [Workers] in use. Its generator calls one method at a time,
// except ID. A renewal is what Leaf calls a report.
type workerLease struct {
	workers  *Workers
	request  request
	worker   int64
	entry    entry
	layout   keygen.Layout
	reported time.Time // the local clock's time at the newest report
	fast     bool      // the local clock was far ahead of ZooKeeper's at that report
	ended    bool
}

var _ keygen.Window = (*workerLease)(nil)

// reportTimeout bounds a report to ZooKeeper. With a file the bound is Report at most, so that
// time is left for the file.
const reportTimeout = 2 * time.Second

func (t *workerLease) ID() int64           { return t.worker }
func (t *workerLease) NotBefore() int64    { return t.entry.notBefore }
func (t *workerLease) Ceiling() int64      { return t.entry.Ceiling }
func (t *workerLease) Term() time.Duration { return t.workers.cfg.term() }

// Renew reports to ZooKeeper, or to the file when that is down.
func (t *workerLease) Renew(ctx context.Context) (int64, error) {
	if t.ended {
		return 0, fmt.Errorf("zookeeper: %w: worker id %d was given up", keygen.ErrWorkerLost, t.ID())
	}
	now := t.workers.now()
	if now.Before(t.reported) {
		return 0, t.giveUp(ctx, behind(now, t.reported, t.workers.forever()))
	}
	err := t.raiseCeiling(ctx, now)
	switch {
	case errors.Is(err, keygen.ErrWorkerLost):
		return 0, t.giveUp(ctx, err)
	case errors.Is(err, workerid.ErrRecord): // an error of the file, not of ZooKeeper
	default:
		t.workers.recordAnswer(err)
		err = t.raiseInFile(now, err)
	}
	if err != nil {
		return 0, fmt.Errorf("zookeeper: report worker id %d: %w", t.ID(), err)
	}
	return t.entry.Ceiling, nil
}

// raiseCeiling raises the ceiling in ZooKeeper.
func (t *workerLease) raiseCeiling(ctx context.Context, now time.Time) error {
	limit := reportTimeout
	if t.workers.cfg.File != "" {
		limit = min(limit, t.workers.cfg.Report)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	e, err := t.workers.registry.renew(ctx, t.request, t.entry)
	if err != nil {
		return err
	}
	return t.report(ctx, e, t.trusted(now, e.at))
}

// trusted returns the time to store as the local one. It does not store a time that is far
// ahead of ZooKeeper's: after a correction of the clock, that clock would seem to have been set
// back, and the process could not issue ids for as long as the clock was ahead.
func (t *workerLease) trusted(now, zooKeeper time.Time) time.Time {
	threshold := t.workers.cfg.Threshold
	fast := now.Sub(zooKeeper) > threshold
	if fast && !t.fast {
		t.workers.cfg.Observer.alarm(fmt.Errorf("zookeeper: %w: the clock of %s is %v ahead of ZooKeeper's; worker id %d uses ZooKeeper's time", ErrClocksDiffer, t.workers.addr, now.Sub(zooKeeper), t.ID()))
	}
	if t.fast = fast; fast {
		return zooKeeper.Add(-threshold) // a time that is not ahead of the right one
	}
	return now
}

// report publishes what ZooKeeper has granted: it registers the process, writes its worker id
// and time, and writes the file. The entry is in force when report returns nil.
func (t *workerLease) report(ctx context.Context, e entry, now time.Time) error {
	w := t.workers
	if err := w.announce(ctx); errors.As(err, new(transient)) {
		return fmt.Errorf("%w: %w", keygen.ErrWorkerLost, err)
	} else if err != nil {
		return err
	}
	if err := w.registry.client.createPath(ctx, w.forever()); err != nil {
		return err
	}
	if _, err := w.registry.client.set(ctx, w.forever(), encode(foreverNode{e.worker, now.UTC()}), anyVersion); err != nil {
		return fmt.Errorf("write %s: %w", w.forever(), err)
	}
	if err := w.writeFile(t.layout, e, now); err != nil {
		return err
	}
	t.entry, t.reported = e, now
	return nil
}

// raiseInFile raises the ceiling in the file while ZooKeeper is down, up to the tick that
// ZooKeeper granted before.
func (t *workerLease) raiseInFile(now time.Time, down error) error {
	if down == nil || t.workers.cfg.File == "" {
		return down
	}
	e := t.entry
	e.Ceiling = max(min(t.layout.Tick(now)+t.request.ticks(t.request.term), e.Until), e.Ceiling)
	if e.Ceiling == t.entry.Ceiling {
		return fmt.Errorf("the worker id is held until %v: %w", t.layout.At(e.Until), down)
	}
	if err := t.workers.writeFile(t.layout, e, now); err != nil {
		return errors.Join(err, down)
	}
	t.entry, t.reported = e, now
	return nil
}

// giveUp ends the use of the worker id. The generator issues no ids until it has acquired a
// worker id again.
func (t *workerLease) giveUp(ctx context.Context, why error) error {
	t.ended = true
	err := fmt.Errorf("zookeeper: %w: worker id %d of %s is out of service: %w", keygen.ErrWorkerLost, t.ID(), t.workers.addr, why)
	t.workers.cfg.Observer.alarm(err)
	_ = t.workers.leave(ctx) // if this fails, the registration ends with the session
	t.workers.end()
	return err
}

// Release returns the worker id, used up to end. With a file, the file keeps it for Hold.
func (t *workerLease) Release(ctx context.Context, end int64) error {
	if t.ended {
		return nil
	}
	t.ended = true
	defer t.workers.end()
	e := t.entry
	e.Ceiling = max(end, e.notBefore)
	keep := t.workers.cfg.File != ""
	return errors.Join(
		t.workers.writeFile(t.layout, e, t.reported),
		t.workers.registry.returnEntry(ctx, t.request, e, e.Ceiling, keep),
		t.workers.leave(ctx),
	)
}
