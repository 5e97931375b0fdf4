// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// writersPerApp is the number of goroutines of each application.
const writersPerApp = 2

// mostChildren bounds how many children a new parent gets.
const mostChildren = 20

// stage is a part of the migration in which writers have a share of work.
type stage int

const (
	beforeCopy stage = iota
	whileCopying
	whileFollowing
	onShards
	stages // the number of stages
)

// traffic are the writers, who work from the first stage to the end of the last one without
// a pause of their own. In each stage, each writer has a share of rows to insert that stay;
// after that it makes other changes until the next stage begins. So the final number of
// rows is the same in every run, however long the stages take.
type traffic struct {
	tables    []*table
	models    models
	ledgers   []*ledger // one for each table
	parents   []sample
	children  []sample
	perParent int // number of children of each new parent
	add       func(int64)

	begun   [stages]chan struct{} // closed when the stage begins
	stage   atomic.Int32          // the one that was begun last
	slower  atomic.Int32          // how often writers were slowed down
	working [stages]sync.WaitGroup
	writers []*writer
	running sync.WaitGroup
	cancel  context.CancelCauseFunc
}

// newTraffic reads the content of new rows from the source.
func newTraffic(ctx context.Context, s *source, add func(int64)) (*traffic, error) {
	t := &traffic{tables: s.tables, models: newModels(s.tables), add: add}
	t.stage.Store(-1)
	for i := range t.begun {
		t.begun[i] = make(chan struct{})
	}
	for _, table := range s.tables {
		t.ledgers = append(t.ledgers, newLedger(table))
	}
	var err error
	parent := s.tables[0]
	if t.parents, err = takeSamples(ctx, s, parent); err != nil || len(s.tables) == 1 {
		return t, err
	}
	child := s.tables[1]
	t.children, err = takeSamples(ctx, s, child)
	t.perParent = int(min(mostChildren, max(1, (child.rows+parent.rows/2)/parent.rows)))
	if child.by == child.key { // one child for each parent, with the parent's id
		t.perParent = 1
	}
	return t, err
}

// parentsPerApp is how many parents each application inserts that stay.
func (t *traffic) parentsPerApp() int {
	return int(min(2000, max(100, t.tables[0].rows/20)))
}

// staying is how many rows that stay are inserted in a stage.
func (t *traffic) staying(apps int) int64 {
	return int64(apps) * int64(t.parentsPerApp()) / int64(stages) * int64(1+t.perParent)
}

// start starts the writers, which wait for the first stage. The context that it returns
// ends when one of them fails, and they end with it.
func (t *traffic) start(ctx context.Context, apps map[string]app) context.Context {
	ctx, t.cancel = context.WithCancelCause(ctx)
	for _, name := range []string{ViaGORM, ViaSQLX} {
		for n := range writersPerApp {
			t.writers = append(t.writers, newWriter(t, name, apps[name], n))
		}
	}
	for i := range t.working {
		t.working[i].Add(len(t.writers))
	}
	for _, w := range t.writers {
		t.running.Go(func() {
			if err := w.run(ctx); err != nil {
				t.cancel(fmt.Errorf("a writer through %s: %w", w.name, err))
			}
		})
	}
	return ctx
}

// enter begins a stage; the writers leave the stage before as soon as they have done their
// share.
func (t *traffic) enter(s stage) {
	t.stage.Store(int32(s))
	close(t.begun[s])
}

// share waits until every writer has done its share of a stage.
func (t *traffic) share(ctx context.Context, s stage) error {
	done := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		t.working[s].Wait()
		close(done)
	})
	defer waiting.Wait() // a failed writer marks all its shares as done
	select {
	case <-done:
		return context.Cause(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// slowDown doubles the writers' pauses: on an overloaded machine, changes may arrive faster
// than they are followed.
func (t *traffic) slowDown() { t.slower.Add(1) }

// pause waits between two actions of a writer.
func (t *traffic) pause(ctx context.Context) error { return pause(ctx, rest<<t.slower.Load()) }

// stop ends the last stage and waits for the writers.
func (t *traffic) stop() {
	t.stage.Store(int32(stages))
	t.running.Wait()
}

// abort ends the writers wherever they are. It may be called after stop.
func (t *traffic) abort() {
	if t.cancel != nil {
		t.cancel(nil)
		t.running.Wait()
	}
}

// Writes is what the writers of one application have done, and their waits.
type Writes struct {
	Inserted int64 // rows that stay
	Updated  int64
	Deleted  int64 // rows that it inserted and deleted again
	// LongestPause is the longest time that one statement or transaction took, with all waits
	// and repetitions.
	LongestPause time.Duration
}

func (w Writes) changes() int64 { return w.Inserted + w.Updated + 2*w.Deleted }

func (w Writes) plus(o Writes) Writes {
	return Writes{w.Inserted + o.Inserted, w.Updated + o.Updated, w.Deleted + o.Deleted, max(w.LongestPause, o.LongestPause)}
}

// by returns what an application did so far.
func (t *traffic) by(name string) (sum Writes) {
	for _, w := range t.writers {
		if w.name == name {
			sum = sum.plus(w.did())
		}
	}
	return sum
}

func (t *traffic) all() Writes { return t.by(ViaGORM).plus(t.by(ViaSQLX)) }

// pauseSince returns the longest pause of any writer since the last call.
func (t *traffic) pauseSince() time.Duration {
	var longest int64 = math.MinInt64
	for _, w := range t.writers {
		longest = max(longest, w.recent.Swap(0))
	}
	return time.Duration(longest)
}
