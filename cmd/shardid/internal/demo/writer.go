// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// passing is how many rows that will be deleted again a writer keeps at a time, so that
// some are copied before they are deleted.
const passing = 8

// writer is one goroutine of an application. No other writer touches the rows
// that it changes.
type writer struct {
	*traffic

	name     string
	app      app
	turn     int      // counts its actions
	contents []int    // indexes of the contents of the parents that stay
	olds     []sample // parents of the source that it may change
	oldKids  []sample // children of the source that it may change
	mine     []made   // rows that stay
	brief    []made   // rows that will be deleted

	recent atomic.Int64 // the longest pause since it was last read
	mu     sync.Mutex   // guards done
	done   Writes
}

// made is an inserted parent with its children.
type made struct {
	by       string // the application
	parent   sample
	children []sample
}

func (m made) rows() int64 { return 1 + int64(len(m.children)) }

func newWriter(t *traffic, name string, a app, n int) *writer {
	w := &writer{traffic: t, name: name, app: a}
	for i := n; i < t.parentsPerApp(); i += writersPerApp {
		w.contents = append(w.contents, i)
	}
	w.turn = n
	if name == ViaSQLX {
		n += writersPerApp
	}
	w.olds, w.oldKids = every(t.parents, n), every(t.children, n)
	return w
}

// every returns the part of the samples that belongs to the n-th writer.
func every(all []sample, n int) (part []sample) {
	for i := n; i < len(all); i += 2 * writersPerApp {
		part = append(part, all[i])
	}
	return part
}

func (w *writer) run(ctx context.Context) error {
	left := stages
	defer func() { // so that nobody waits for shares that will not be done
		for s := stages - left; s < stages; s++ {
			w.working[s].Done()
		}
	}()
	for s := range stages {
		select {
		case <-w.begun[s]:
		case <-ctx.Done():
			return nil
		}
		if err := w.work(ctx, s); err != nil {
			return err
		}
		w.working[s].Done()
		left--
		if err := w.goOn(ctx, s); err != nil {
			return err
		}
	}
	for len(w.brief) > 0 {
		if err := w.remove(ctx); err != nil {
			return err
		}
	}
	return nil
}

// work does the writer's share of a stage.
func (w *writer) work(ctx context.Context, s stage) error {
	n := len(w.contents)
	for _, i := range w.contents[n*int(s)/int(stages) : n*int(s+1)/int(stages)] {
		m, err := w.insert(ctx, i)
		if err != nil {
			return err
		}
		w.mine = append(w.mine, m)
		w.count(Writes{Inserted: m.rows()})
		w.add(m.rows())
		if err := w.change(ctx); err != nil {
			return err
		}
	}
	return nil
}

// goOn changes rows until the stage ends.
func (w *writer) goOn(ctx context.Context, s stage) error {
	for stage(w.stage.Load()) == s {
		if err := w.change(ctx); err != nil {
			return err
		}
	}
	return nil
}

// change updates a row, and inserts or deletes one that does not stay.
func (w *writer) change(ctx context.Context) error {
	w.turn++
	if err := w.update(ctx); err != nil {
		return err
	}
	if err := w.pause(ctx); err != nil {
		return err
	}
	if len(w.brief) == passing {
		if err := w.remove(ctx); err != nil {
			return err
		}
	}
	m, err := w.insert(ctx, w.turn)
	if err != nil {
		return err
	}
	w.brief = append(w.brief, m)
	return w.pause(ctx)
}

// do calls the application, and measures the time it takes.
func (w *writer) do(something func() error) error {
	begun := time.Now()
	if err := something(); err != nil {
		return err
	}
	took := time.Since(begun)
	w.count(Writes{LongestPause: took})
	if int64(took) > w.recent.Load() {
		w.recent.Store(int64(took))
	}
	return nil
}

// again repeats a function until it succeeds: after a transaction that the switch has
// rolled back, or a database that was busy for too long.
func again(ctx context.Context, something func() error) error {
	for {
		err := something()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, sharding.ErrRouteMoved) && !dialect.Contended(err):
			return err
		}
		if err := pause(ctx, rest); err != nil {
			return err
		}
	}
}

// rest is the first pause before a retry, and the pause between two actions of a writer, as
// in an application that waits for its users.
const rest = time.Millisecond

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *writer) count(what Writes) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = w.done.plus(what)
}

func (w *writer) did() Writes {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

// insert inserts a parent with the i-th content, and its children. All parents get the same
// number of children.
func (w *writer) insert(ctx context.Context, i int) (made, error) {
	d := draft{w.models, w.parents[i%len(w.parents)], w.childrenFor(i)}
	var parent, children reflect.Value
	err := w.do(func() (err error) {
		parent, children, err = w.app.create(ctx, d, again)
		return err
	})
	if err != nil {
		return made{}, err
	}
	key := w.models.parent.key(parent.Elem())
	done := made{by: w.name, parent: d.content.with(w.tables[0], key, key)}
	w.ledgers[0].add(done.parent.stored)
	for n, c := range d.contents {
		child := c.with(w.tables[1], w.models.child.key(children.Elem().Index(n)), key)
		done.children = append(done.children, child)
		w.ledgers[1].add(child.stored)
	}
	return done, nil
}

// childrenFor returns the content of the children of the i-th parent.
func (t *traffic) childrenFor(i int) []sample {
	var contents []sample
	for n := range t.perParent {
		contents = append(contents, t.children[(i*t.perParent+n)%len(t.children)])
	}
	return contents
}

// remove deletes the oldest parent that does not stay, with its children.
func (w *writer) remove(ctx context.Context) error {
	m := w.brief[0]
	key := w.tables[0].keyOf(m.parent.stored)
	remove := func() error { return w.app.remove(ctx, key) }
	if err := w.do(func() error { return again(ctx, remove) }); err != nil {
		return err
	}
	w.brief = w.brief[1:]
	w.ledgers[0].remove(m.parent.stored)
	for _, c := range m.children {
		w.ledgers[1].remove(c.stored)
	}
	w.count(Writes{Deleted: m.rows()})
	return nil
}

// update gives one of the writer's rows the content of another: in turn a parent and a
// child, one of the source and one of its own.
func (w *writer) update(ctx context.Context) error {
	own, child := w.turn%2 == 0, w.turn%4 > 1 && w.perParent > 0
	switch {
	case own && len(w.mine) > 0 && child:
		m := &w.mine[w.turn/4%len(w.mine)]
		return w.rewrite(ctx, 1, &m.children[w.turn/4%len(m.children)])
	case own && len(w.mine) > 0:
		return w.rewrite(ctx, 0, &w.mine[w.turn/4%len(w.mine)].parent)
	case child && len(w.oldKids) > 0:
		return w.rewrite(ctx, 1, &w.oldKids[w.turn/4%len(w.oldKids)])
	case len(w.olds) > 0:
		return w.rewrite(ctx, 0, &w.olds[w.turn/4%len(w.olds)])
	}
	return nil
}

// rewrite changes the content of a row, unless it has only keys.
func (w *writer) rewrite(ctx context.Context, table int, row *sample) error {
	from := w.parents
	if table == 1 {
		from = w.children
	}
	t := w.tables[table]
	if len(t.columns) <= 2 && (t.keyAt != t.byAt || len(t.columns) == 1) {
		return nil
	}
	next := from[w.turn%len(from)].with(t, t.keyOf(row.stored), integer(row.stored[t.byAt]))
	m := w.models.parent
	if table == 1 {
		m = w.models.child
	}
	rewrite := func() error { return w.app.update(ctx, m, next.stored) }
	err := w.do(func() error { return again(ctx, rewrite) })
	if err != nil {
		return err
	}
	*row = next
	w.ledgers[table].change(next.stored)
	w.count(Writes{Updated: 1})
	return nil
}
