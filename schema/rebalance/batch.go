// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/copier"
	"github.com/shardid/shardid/schema/internal/follow"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/schema/internal/transfer"
	"github.com/shardid/shardid/sharding/slotstore"
)

// batch moves slots together.
type batch struct {
	cfg   MoverConfig
	slots *slots

	*rows // the rows of the slots, from run on

	state      *lead.State
	copier     *copier.Copier
	stream     *follow.Stream // applies changes to the new shard
	comparison *comparison
	done       Moved
}

// run continues the move of the slots from their present state to its end.
func (b *batch) run(ctx context.Context) error {
	j, err := open(ctx, b.cfg, b.slots)
	if err != nil {
		return err
	}
	defer j.Close()
	b.state = &lead.State{Job: j}
	leader, err := lead.Take(ctx, b.state, nil)
	if err != nil {
		return err
	}
	defer leader.Release()
	b.take(j, leader)
	before := b.slots.all[0]
	if err := b.slots.refresh(ctx); err != nil {
		return err
	}
	if b.slots.all[0] != before {
		return errOvertaken // the former leader has changed the slots
	}
	// The mover that made the last step may have died before the shards knew of it.
	if again := b.slots.last(); again != nil {
		if err := b.step(ctx, again); err != nil {
			return err
		}
	}
	return b.goOn(ctx)
}

// take sets the fields that need this leadership.
func (b *batch) take(j *openjob.Job, leader *lead.Leader) {
	budget := transfer.NewBudget(2) // one for the copy and one for the changes
	b.rows = &rows{job: j, leader: leader, slots: b.slots, among: b.slots.among(j), chunkRows: b.cfg.ChunkRows}
	pace := copier.Pace{ChunkRows: b.cfg.ChunkRows, Copiers: 1, Throttle: b.cfg.Throttle}
	b.copier = copier.New(b.state, leader, budget, pace).Along(copier.Ends{Read: b.rows.ofChunk, Store: b.rows.copy})
	b.comparison = &comparison{rows: b.rows, copier: b.copier, throttle: b.cfg.Throttle, compared: func() { b.cfg.Observe(Step{Name: StepCompared}) }}
	b.stream = follow.NewStreams(b.state, leader, budget).Along(follow.Ends{Fetch: b.rows.fetch, Put: b.comparison.put})
	b.comparison.stream = b.stream
}

// step changes the slots in the map.
func (b *batch) step(ctx context.Context, do change) error {
	stillLeads := func(ctx context.Context) error {
		return b.leader.OnSource(ctx, func(*backend.Session) error { return nil })
	}
	return b.slots.change(ctx, stillLeads, do)
}

// goOn makes one step after another until the move is finished.
func (b *batch) goOn(ctx context.Context) (err error) {
	var failed error
	for ended := false; !ended; {
		switch b.slots.state() {
		case slotstore.Active:
			err = b.announce(ctx)
		case slotstore.Copying:
			err = b.bring(ctx)
		case slotstore.Fenced:
			failed, err = b.switchOver(ctx)
		default:
			err, ended = b.clean(ctx), true
		}
		if err != nil {
			return errors.Join(failed, err)
		}
	}
	return failed
}

// announce creates what is missing on the new shard, and makes all processes know which
// slots move.
func (b *batch) announce(ctx context.Context) error {
	if err := b.checkFree(ctx); err != nil {
		return err
	}
	return b.step(ctx, b.slots.begin())
}

// bring copies the rows to the new shard, follows changes, compares, and closes the slots.
func (b *batch) bring(ctx context.Context) error {
	if err := b.slots.store.Settle(ctx); err != nil {
		return err
	}
	b.cfg.Observe(Step{Name: StepAnnounced})
	spans, err := b.resume(ctx)
	if err != nil {
		return err
	}
	for _, t := range b.job.Tables {
		if err := b.copyTable(ctx, t, spans[t.Number].Low); err != nil {
			return err
		}
	}
	if err := b.comparison.all(ctx); err != nil {
		return err
	}
	if err := b.unaltered(ctx); err != nil {
		return err
	}
	return b.step(ctx, (*slotstore.Store).Fence)
}

// copyTable copies the rows of the slots from low on, and follows changes meanwhile.
func (b *batch) copyTable(ctx context.Context, t *openjob.Table, low proto.Bound) error {
	c := b.copier.Resume(t, low)
	for !c.Complete() {
		if err := b.cfg.Throttle(ctx); err != nil {
			return fmt.Errorf("throttled: %w", err)
		}
		before := b.job.Copied.Load()
		chunk, _, err := c.Next(ctx)
		if err != nil {
			return err
		}
		if err := c.Copy(ctx, chunk); err != nil {
			return err
		}
		b.done.Rows += b.job.Copied.Load() - before
		if _, err := b.stream.Pass(ctx); err != nil {
			return err
		}
	}
	return nil
}

// switchOver is the pause. After an error that is no crash, it moves the slots back.
func (b *batch) switchOver(ctx context.Context) (failed, err error) {
	began := time.Now()
	b.cfg.Observe(Step{Name: StepFenced})
	limited, cancel := context.WithDeadline(ctx, began.Add(b.cfg.MaxPause))
	defer cancel()
	err = b.last(limited)
	if err == nil {
		err = b.slots.store.Settle(limited)
	}
	if err == nil {
		err = b.step(ctx, (*slotstore.Store).Switch)
	}
	b.done.Pause = max(b.done.Pause, time.Since(began))
	switch {
	case err == nil:
		b.done.Slots += len(b.slots.all)
		b.cfg.Observe(Step{Name: StepSwitched})
		return nil, nil
	case ctx.Err() != nil || !mustGoBack(limited, err):
		return nil, err
	case limited.Err() != nil:
		err = &PauseError{b.cfg.MaxPause}
	}
	return err, b.step(ctx, (*slotstore.Store).Abort)
}

// last applies and compares the changes from before the slots were closed.
func (b *batch) last(ctx context.Context) error {
	if err := b.comparison.last(ctx); err != nil {
		return err
	}
	b.cfg.Observe(Step{Name: StepDrained})
	return b.unaltered(ctx)
}

// mustGoBack reports whether another try would fail, too, while keys are refused.
func mustGoBack(limited context.Context, err error) bool {
	return limited.Err() != nil || errors.Is(err, ErrNotReady) || errors.Is(err, ErrChanged)
}

// clean deletes the rows left behind on the slots' other shard.
func (b *batch) clean(ctx context.Context) error {
	if err := b.slots.store.Settle(ctx); err != nil {
		return err
	}
	if err := b.uncapture(ctx); err != nil {
		return err
	}
	for _, t := range b.job.Tables {
		if err := b.sweep(ctx, t, proto.Chunk{To: proto.Top}, b.mayDelete); err != nil {
			return err
		}
	}
	if err := b.forget(ctx); err != nil {
		return err
	}
	if err := b.step(ctx, (*slotstore.Store).Finish); err != nil {
		return err
	}
	b.cfg.Observe(Step{Name: StepFinished})
	return nil
}

// mayDelete waits until the next rows that were left behind may be deleted.
func (b *batch) mayDelete(ctx context.Context) error {
	if err := b.cfg.Throttle(ctx); err != nil {
		return fmt.Errorf("throttled: %w", err)
	}
	if b.slots.state() != slotstore.Moved {
		return nil
	}
	return b.keeps(ctx)
}

// uncapture removes the triggers. The log stays, empty: a statement that was
// prepared with the triggers may still need it.
func (b *batch) uncapture(ctx context.Context) error {
	return b.leader.Define(ctx, b.job.Source, func(s *backend.Session) error {
		if err := openjob.DropCapture(ctx, b.job, s); err != nil {
			return err
		}
		return s.Exec(ctx, "DELETE FROM "+s.Database.Quote(b.job.LogTable()))
	})
}

// forget removes the progress.
func (b *batch) forget(ctx context.Context) error {
	return b.leader.OnSource(ctx, func(s *backend.Session) error {
		return s.Exec(ctx, "DELETE FROM "+backend.SpanTable+" WHERE job = ?", b.job.Name)
	})
}
