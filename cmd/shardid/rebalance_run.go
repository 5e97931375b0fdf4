// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/cmd/shardid/internal/migration"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/rebalance"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

// amount is an estimate of how much there is to move, -1 if unknown.
type amount struct{ rows, bytes int64 }

func (s amount) plus(other amount) amount {
	return amount{sum(s.rows, other.rows), sum(s.bytes, other.bytes)}
}

func sum(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

// sizes estimates how much a slot of each shard has, in all tables of the map.
func (b *balance) sizes(ctx context.Context, v slotstore.View) map[sharding.Target]amount {
	slots := make([]int64, b.shards)
	for _, s := range v.Slots {
		slots[s.Shard]++
	}
	all := map[sharding.Target]amount{}
	for shard, n := range slots {
		if n > 0 {
			all[b.target(shard)] = b.sizeOf(ctx, shard).over(n)
		}
	}
	return all
}

func (s amount) over(n int64) amount {
	if s.rows >= 0 {
		s.rows /= n
	}
	if s.bytes >= 0 {
		s.bytes /= n
	}
	return s
}

func (b *balance) sizeOf(ctx context.Context, shard int) (all amount) {
	db := b.store.DB(shard)
	server, err := dialect.Identify(ctx, db)
	if err != nil {
		return amount{-1, -1}
	}
	err = dialect.WithStatistics(ctx, db, server, func(on dialect.Querier) error {
		for _, t := range b.store.Tables() {
			table := b.store.Target(t, shard).Table
			rows, err := dialect.EstimateRows(ctx, on, server, table)
			if err != nil {
				rows = -1
			}
			bytes, err := dialect.EstimateBytes(ctx, on, server, table)
			if err != nil {
				bytes = -1
			}
			all = all.plus(amount{rows, bytes})
		}
		return nil
	})
	if err != nil {
		return amount{-1, -1}
	}
	return all
}

// bringing is a running rebalance run.
type bringing struct {
	*balance

	mover *rebalance.Mover
	slots int   // to move
	rows  int64 // estimated rows in them; -1 if unknown
	began time.Time
	moved atomic.Int64 // slots
	done  atomic.Int64 // rows
	pause time.Duration

	batch   time.Time     // when the copy of the present moves began
	earlier time.Duration // copying before them
	copying atomic.Int64  // until the last rows were stored, in nanoseconds, without waiting for programs
	doing   atomic.Value  // what the mover does: a string

	trouble migration.Trouble
	blocked atomic.Bool // by a transaction of others; printed once for each wait
}

// bring makes the moves, some at a time.
func (b *balance) bring(ctx context.Context, moves []sharding.Move) error {
	v, err := b.store.Load(ctx)
	if err != nil {
		return err
	}
	r := &bringing{balance: b, slots: len(moves), began: time.Now()}
	sizes, all := b.sizes(ctx, v), amount{}
	for _, m := range moves {
		all = all.plus(sizes[m.From])
	}
	r.rows = all.rows
	r.mover, err = rebalance.NewMover(rebalance.MoverConfig{Store: b.store, MaxPause: b.pace.maxPause, Throttle: r.throttle, Observe: r.observe})
	if err != nil {
		return err
	}
	showing, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { r.show(showing) })
	err = r.all(ctx, moves)
	stop()
	wg.Wait()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.cmd.OutOrStdout(), "%s moved, with %s, in %s; keys of a slot waited for %s at most\n",
		term.Count(r.moved.Load(), "slot"), term.Count(r.done.Load(), "row"), time.Since(r.began).Round(time.Second), r.pause.Round(time.Millisecond))
	return err
}

// all first finishes moves that an earlier run has begun. Slots with the same source and
// target move together.
func (r *bringing) all(ctx context.Context, moves []sharding.Move) error {
	if err := r.some(ctx, nil); err != nil {
		return err
	}
	for len(moves) > 0 {
		var now, later []sharding.Move
		for _, m := range moves {
			if m.From == moves[0].From && m.To == moves[0].To && len(now) < r.pace.slots {
				now = append(now, m)
			} else {
				later = append(later, m)
			}
		}
		if err := r.some(ctx, now); err != nil {
			return err
		}
		moves = later
	}
	return nil
}

// some makes a few moves. It does not end because a database is unreachable, another run
// leads, or a pause was too long.
func (r *bringing) some(ctx context.Context, moves []sharding.Move) error {
	for failed := 0; ; failed++ {
		did, err := r.mover.Run(ctx, moves...)
		r.moved.Add(int64(did.Slots))
		r.pause = max(r.pause, did.Pause)
		var tooLong *rebalance.PauseError
		again := rebalance.Transient(err) || errors.Is(err, rebalance.ErrLocked) || errors.As(err, &tooLong)
		if err == nil || ctx.Err() != nil || !again {
			return err
		}
		r.trouble.Waits(r.sayf, err, true)
		wait := min(migration.LongestWait, migration.LookEvery<<min(failed, 10))
		if err := migration.PauseFor(ctx, wait/2+rand.N(wait)); err != nil {
			return err
		}
	}
}

// doing is what the mover does after a step.
var doing = map[string]string{
	rebalance.StepLeading:   "; it waits until programs know which slots move",
	rebalance.StepAnnounced: "; it copies rows",
	rebalance.StepCompared:  "; it waits until programs close the slots",
	rebalance.StepFenced:    "; it compares the last changes",
	rebalance.StepSwitched:  "; it waits until programs use the new shard",
	rebalance.StepSwept:     "; it deletes rows on the old shard",
	rebalance.StepFinished:  "",
}

func (r *bringing) observe(s rebalance.Step) {
	if text, ok := doing[s.Name]; ok {
		r.doing.Store(text)
	}
	switch s.Name {
	case rebalance.StepLeading:
		r.trouble.GoesOn(r.sayf)
	case rebalance.StepAnnounced:
		r.blocked.Store(false)
		r.batch, r.earlier = time.Now(), time.Duration(r.copying.Load())
	case rebalance.StepBlocked:
		if !r.blocked.Swap(true) {
			r.sayf(migration.Blocked, s.Table)
		}
	case rebalance.StepWaiting:
		if s.Err != nil {
			r.trouble.Waits(r.sayf, s.Err, false)
		} else {
			r.trouble.GoesOn(r.sayf)
		}
	case rebalance.StepStored:
		r.done.Add(s.Rows)
		r.copying.Store(int64(r.earlier + time.Since(r.batch)))
	}
}

// throttle waits while the file exists.
func (r *bringing) throttle(ctx context.Context) error {
	for isThere(r.pace.throttleFile) {
		if err := migration.PauseFor(ctx, migration.LookEvery); err != nil {
			return err
		}
	}
	return nil
}

func isThere(file string) bool {
	_, err := os.Stat(file)
	return file != "" && err == nil
}

// show writes lines of progress until ctx ends.
func (r *bringing) show(ctx context.Context) {
	for migration.PauseFor(ctx, r.pace.interval) == nil {
		r.sayf("%s", r.progress(time.Since(r.began)))
	}
}

// progress says how much is done. Slots have different numbers of rows, so the remaining time is that of the other slots as soon as some
// have moved.
func (r *bringing) progress(took time.Duration) string {
	moved, done := r.moved.Load(), r.done.Load()
	text := fmt.Sprintf("%d of %s moved; %s rows copied", moved, term.Count(int64(r.slots), "slot"), term.Number(done))
	copying := time.Duration(r.copying.Load())
	if r.rows > 0 && done > 0 && moved == 0 {
		text += " of about " + term.Number(max(r.rows, done))
	}
	if rate := int64(float64(done) / max(copying.Seconds(), 1)); rate > 0 {
		text += fmt.Sprintf(", %s a second", term.Number(rate))
	}
	switch {
	case moved > 0:
		text += term.Left(moved, int64(r.slots), took)
	case done > r.rows/100: // of few rows no rate is known, because the mover also reads the rows of other slots
		text += term.Left(done, r.rows, copying)
	}
	now, _ := r.doing.Load().(string)
	return text + now
}

func (r *bringing) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.cmd.ErrOrStderr(), format+"\n", args...) // an error of stderr cannot be reported
}
