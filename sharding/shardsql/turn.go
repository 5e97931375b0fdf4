// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync"
)

// turn is a lock whose wait ends with a context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the lock, which is held until end. It returns the context's error.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) end() { <-t }

// turns holds a lock for each pool, so that one query at a time reserves its connections.
type turns struct{ all sync.Map } // of *sql.DB to *poolTurn

// poolTurn is the lock of a pool. The holder of the lock may use its fields.
type poolTurn struct {
	turn

	surplus int64 // MaxIdleClosed of the pool's last statistics
	idle    int   // the largest number of idle connections since then
}

// keeps returns how many of the wanted connections to reserve so that the pool closes none of them
// when they return. database/sql reports how many connections a pool has closed, but not how many
// it keeps.
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

// compare orders the databases by their names; the home database is the first. Every statement
// acquires its databases in this order. Otherwise two statements that each hold a database which
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

// pools returns the databases in which a write will insert entries into lookup tables, in the order
// of compare. A home database without shards is not among them: a session that holds a connection
// to it waits for no other.
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
			continue // inserting the entry will return the error
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

// takeAside reserves, until leaveAside, a connection to each of the databases that precede the one
// that the statement is about to acquire.
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
		_ = in.leave() // the error of a broken connection does not matter
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

// sideBySide calls do for some items at a time, and returns when all calls have ended.
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
