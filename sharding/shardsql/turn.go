// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync"
)

// turn is a lock that is waited for no longer than a context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits until it is one's turn, which lasts until end. Its error is the context's.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) end() { <-t }

// turns let one query at a time reserve connections of a pool.
type turns struct{ all sync.Map } // of *sql.DB to *poolTurn

// poolTurn is the turn of a pool, and what the one whose turn it is knows of the pool.
type poolTurn struct {
	turn

	surplus int64 // connections that the pool had closed as it keeps fewer, when it was asked last
	idle    int   // the most that it was found to keep since then
}

// keeps returns how many connections to reserve, of as many as are wanted, so that the pool
// closes none of them when they come back: database/sql tells how many a pool has closed,
// and not how many it keeps.
func (p *poolTurn) keeps(of sql.DBStats, wanted int) int {
	if of.MaxIdleClosed > p.surplus {
		p.surplus, p.idle = of.MaxIdleClosed, 0
	}
	p.idle = max(p.idle, of.Idle)
	if p.surplus == 0 {
		return wanted
	}
	return min(wanted, max(p.idle, 1))
}

// compare is the order in which a statement takes its databases, by their names for
// messages: the home database is the first. Two statements that each held a database that
// the other one needs would wait for ever.
func (d *database) compare(a, b string) int {
	first := func(name string) bool { return name == d.homeName || d.homeName == "" && name == "home" }
	switch {
	case a == b:
		return 0
	case first(a):
		return -1
	case first(b):
		return 1
	}
	return strings.Compare(a, b)
}

// pools returns where a write will enter values in lookup tables, in the order in which
// statements take their databases. A home database without shards is none of them: who
// holds a connection to it waits for no other.
func (k *keeping) pools() (all []*sql.DB) {
	if k == nil {
		return nil
	}
	d := k.session.database
	for _, kept := range k.of.Kept {
		values := []any{kept.Set}
		for _, row := range kept.Rows {
			values = append(values, row[0])
		}
		values = slices.DeleteFunc(values, func(v any) bool { return v == nil })
		places, err := byPool(d, kept.Lookup, values, func(v any) any { return v })
		if err != nil {
			continue // the entry tells
		}
		for _, p := range places {
			if routerName(d.router, p.pool) != "" && !slices.Contains(all, p.pool) {
				all = append(all, p.pool)
			}
		}
	}
	slices.SortFunc(all, d.comparePools)
	return all
}

func (d *database) comparePools(a, b *sql.DB) int {
	return d.compare(d.shortNameOf(a), d.shortNameOf(b))
}

// takeAside takes a connection to each of the databases that come before one which the
// statement is about to hold, until leaveAside.
func (s *session) takeAside(ctx context.Context, t *transaction, pools []*sql.DB, before *sql.DB) error {
	for _, pool := range pools {
		if _, held := s.held(t, pool); held || s.database.comparePools(pool, before) >= 0 {
			continue
		}
		in, err := s.beside(ctx, t, pool)
		if err != nil {
			return err
		}
		in.kept = &kept{}
		if s.aside == nil {
			s.aside = map[*sql.DB]inner{}
		}
		s.aside[pool] = in
	}
	return nil
}

func (s *session) leaveAside() {
	for _, in := range s.aside {
		_ = in.leave() // of one that has broken
	}
	s.aside = nil
}

func (d *database) turn(db *sql.DB) *poolTurn {
	t, ok := d.turns.all.Load(db)
	if !ok {
		t, _ = d.turns.all.LoadOrStore(db, &poolTurn{turn: newTurn()})
	}
	return t.(*poolTurn)
}

// sideBySide calls do for some items at a time, and returns when all are done.
func sideBySide[T any](atOnce int, items []T, do func(T)) {
	if len(items) == 1 {
		do(items[0])
		return
	}
	var wg sync.WaitGroup
	workers := make(chan struct{}, atOnce)
	for _, item := range items {
		workers <- struct{}{}
		wg.Go(func() {
			defer func() { <-workers }()
			do(item)
		})
	}
	wg.Wait()
}
