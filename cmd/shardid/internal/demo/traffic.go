package demo

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"gorm.io/gorm"
)

// writersPerApp is how many goroutines each application works with.
const writersPerApp = 2

// mostChildren bounds how many children a new parent gets.
const mostChildren = 20

// traffic inserts new parents with children through the applications, all at
// once, and remembers them.
type traffic struct {
	models    models
	parents   []sample
	children  []sample
	perParent int // children of each new parent
	add       func(int64)

	mu   sync.Mutex // guards made
	made []made
}

// made is a parent with its children that was inserted.
type made struct {
	by       string // the application
	parent   sample
	children []sample
}

func (m made) rows() int64 { return 1 + int64(len(m.children)) }

// newTraffic takes the content of new rows from the source.
func newTraffic(ctx context.Context, s *source, add func(int64)) (*traffic, error) {
	t := &traffic{models: newModels(s.tables), add: add}
	var err error
	parent := s.tables[0]
	if t.parents, err = takeSamples(ctx, s, parent); err != nil || len(s.tables) == 1 {
		return t, err
	}
	child := s.tables[1]
	t.children, err = takeSamples(ctx, s, child)
	t.perParent = int(min(mostChildren, max(1, (child.rows+parent.rows/2)/parent.rows)))
	if child.by == child.key { // one row for each parent, with the parent's id
		t.perParent = 1
	}
	return t, err
}

// parentsPerApp is how many parents each application inserts.
func (t *traffic) parentsPerApp() int {
	return int(min(2000, max(100, t.models.parent.table.rows/20)))
}

func (t *traffic) insert(ctx context.Context, apps map[string]app) error {
	return t.each(ctx, apps, "insert", t.parentsPerApp(), t.insertOne)
}

// insertOne inserts a parent with children. All parents get the same number of
// them: whichever application is given which key, every run then puts the same
// number of rows on each shard.
func (t *traffic) insertOne(ctx context.Context, name string, a app, i int) error {
	content := t.parents[i%len(t.parents)]
	parent := t.models.parent.row(content.stored)
	var children reflect.Value // a pointer to a slice
	contents := t.childrenFor(i)
	err := a.create(ctx, parent, func(key int64) reflect.Value {
		if len(contents) > 0 {
			children = t.models.child.children(contents, key)
		}
		return children
	})
	if err != nil {
		return err
	}
	key := t.models.parent.key(parent.Elem())
	m := made{by: name, parent: content.with(t.models.parent.table, key, key)}
	for n, c := range contents {
		row := children.Elem().Index(n)
		m.children = append(m.children, c.with(t.models.child.table, t.models.child.key(row), key))
	}
	t.add(m.rows())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made = append(t.made, m)
	return nil
}

// childrenFor returns the content of the children of the i-th parent.
func (t *traffic) childrenFor(i int) []sample {
	var contents []sample
	for n := range t.perParent {
		contents = append(contents, t.children[(i*t.perParent+n)%len(t.children)])
	}
	return contents
}

// readBack finds every new row by its parent's key through every application
// and returns how many are not as they were inserted.
func (t *traffic) readBack(ctx context.Context, apps map[string]app) (int64, error) {
	var mu sync.Mutex
	var wrong int64
	err := t.each(ctx, apps, "read back", len(t.made), func(ctx context.Context, _ string, a app, i int) error {
		n, err := t.wrongRows(ctx, a, t.made[i])
		t.add(t.made[i].rows())
		mu.Lock()
		defer mu.Unlock()
		wrong += n
		return err
	})
	return wrong, err
}

func (t *traffic) wrongRows(ctx context.Context, a app, m made) (int64, error) {
	key := t.models.parent.table.keyOf(m.parent.stored)
	parent, children, err := a.find(ctx, key)
	if errors.Is(err, sql.ErrNoRows) || errors.Is(err, gorm.ErrRecordNotFound) {
		return m.rows(), nil
	}
	if err != nil {
		return 0, err
	}
	var wrong int64
	if !sameValues(t.models.parent.values(parent), m.parent.read) {
		wrong++
	}
	found := map[int64][]any{}
	for i := range m.children { // none when there is no child table
		if i < children.Len() {
			row := children.Index(i)
			found[t.models.child.key(row)] = t.models.child.values(row)
		}
	}
	for _, c := range m.children {
		if !sameValues(found[t.models.child.table.keyOf(c.stored)], c.read) {
			wrong++
		}
	}
	return wrong, nil
}

// each calls f with every application and the numbers below n, in several
// goroutines, and waits for them.
func (t *traffic) each(ctx context.Context, apps map[string]app, what string, n int, f func(ctx context.Context, name string, a app, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for name, a := range apps {
		for first := range writersPerApp {
			running.Go(func() {
				for i := first; i < n && ctx.Err() == nil; i += writersPerApp {
					if err := f(ctx, name, a, i); err != nil {
						cancel(fmt.Errorf("%s through %s: %w", what, name, err))
					}
				}
			})
		}
	}
	running.Wait()
	return context.Cause(ctx)
}

// stored returns the inserted rows of each table as stored, in the order of
// their keys.
func (t *traffic) stored() [][][]any {
	all := [][][]any{nil, nil}
	for _, m := range t.made {
		all[0] = append(all[0], m.parent.stored)
		for _, c := range m.children {
			all[1] = append(all[1], c.stored)
		}
	}
	sortByKey(all[0], t.models.parent)
	sortByKey(all[1], t.models.child)
	return all
}

// countByApp returns how many rows each application inserted.
func (t *traffic) countByApp() map[string]int64 {
	n := map[string]int64{}
	for _, m := range t.made {
		n[m.by] += m.rows()
	}
	return n
}

func sortByKey(rows [][]any, m *model) {
	slices.SortFunc(rows, func(a, b []any) int { return cmp.Compare(m.table.keyOf(a), m.table.keyOf(b)) })
}
