// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/inner"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// ctxMutex is a lock whose wait ends with a context.
type ctxMutex chan struct{}

func newCtxMutex() ctxMutex { return make(ctxMutex, 1) }

// lock waits for the lock, which is held until unlock. It returns the context's error.
func (t ctxMutex) lock(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t ctxMutex) unlock() { <-t }

// poolState is what is known of a pool. One query at a time holds its lock and reserves connections.
type poolState struct {
	ctxMutex

	surplus int64                   // for the holder: MaxIdleClosed of the pool's last statistics
	idle    int                     // for the holder: the largest number of idle connections since then
	agrees  atomic.Bool             // its settings are those of the home database
	decider atomic.Pointer[decider] // nil before an atomic transaction began there

	compared freshness // when agrees was found out

	agreed sync.Map // the answers of differing on which this database agrees with others, by what they are about
}

func (d *database) stateOf(pool *sql.DB) *poolState {
	t, ok := d.pooled.Load(pool)
	if !ok {
		t, _ = d.pooled.LoadOrStore(pool, &poolState{ctxMutex: newCtxMutex()})
	}
	return t.(*poolState)
}

// differing asks databases the same question, each once until all have given one answer, which is not "". It returns the index of the
// first one that answers otherwise than the first, 0 if there is none, and their answers.
func (d *database) differing(pools []*sql.DB, about string, ask func(i int) (string, error)) (other int, answers []string, err error) {
	answers = make([]string, len(pools))
	for i, pool := range pools {
		if known, ok := d.stateOf(pool).agreed.Load(about); ok {
			answers[i] = known.(string)
		} else if answers[i], err = ask(i); err != nil {
			return 0, nil, err
		}
		if answers[i] != answers[0] {
			return i, answers, nil
		}
	}
	for i, pool := range pools {
		if answers[i] != "" { // it may become known there alone
			d.stateOf(pool).agreed.Store(about, answers[i])
		}
	}
	return 0, answers, nil
}

// copies returns the pools that have a copy of each broadcast table: that of home and those of the router, each once.
func (d *database) copies() []*sql.DB {
	all := []*sql.DB{d.home}
	for _, name := range d.router.Databases() {
		if pool := d.router.DB(name); !slices.Contains(all, pool) {
			all = append(all, pool)
		}
	}
	return all
}

// targets returns the targets of a statement, nil at home.
func (d *database) targets(to *plan.Route) []sharding.Target {
	all := to.Targets()
	if to.Kind == plan.Copies {
		for _, pool := range d.copies() {
			all = append(all, sharding.Target{DB: d.shortNameOf(pool), Table: to.Target.Table})
		}
	}
	return all
}

// pools returns the databases of a route, without duplicates, in the order of its targets.
func (d *database) pools(to *plan.Route) (all []*sql.DB) {
	switch to.Kind {
	case plan.Home, plan.One:
		return []*sql.DB{d.poolOrHome(to.Target.DB)}
	case plan.Copies:
		return d.copies()
	}
	for _, at := range d.targets(to) {
		if pool := d.poolOrHome(at.DB); !slices.Contains(all, pool) {
			all = append(all, pool)
		}
	}
	return all
}

// only returns the database of a route, nil if there are several. It allocates nothing for one target.
func (d *database) only(to *plan.Route) *sql.DB {
	if to.Kind == plan.Home || to.Kind == plan.One {
		return d.poolOrHome(to.Target.DB)
	}
	if pools := d.pools(to); len(pools) == 1 {
		return pools[0]
	}
	return nil
}

// connect returns a connection of a pool, after a check that its settings are those of the home
// database. If a database cannot be reached, the error names it. Later errors of a database are the
// driver's own, because programs and libraries assert their types.
func (d *database) connect(ctx context.Context, pool *sql.DB) (*sql.Conn, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.replicas.leaveOut(ctx, pool, err, d.observer)
		}
		return nil, &unreachableError{d.nameOf(pool), err}
	}
	if err := d.checkSettings(ctx, pool, conn); err != nil {
		return nil, dialect.JoinErrors(err, conn.Close())
	}
	return conn, nil
}

// longestWait is how long a query waits for a connection that it can do without. The one that has the connection may
// wait for one of this query: a transaction for its second database.
const longestWait = time.Second

// connectSoon is connect for a connection that a query can do without: it returns nil when none became free soon.
func (d *database) connectSoon(ctx context.Context, pool *sql.DB) (*sql.Conn, error) {
	soon, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	conn, err := d.connect(soon, pool)
	if err != nil && soon.Err() != nil && ctx.Err() == nil {
		return nil, nil //nolint:nilnil // said above
	}
	return conn, err
}

// unreachableError is the error of a database whose pool returned no connection.
type unreachableError struct {
	database string
	cause    error
}

func (e *unreachableError) Error() string { return e.database + ": " + e.cause.Error() }

func (e *unreachableError) Unwrap() error { return e.cause }

func isUnreachable(err error) bool {
	var e *unreachableError
	return errors.As(err, &e)
}

// keeps returns how many of the wanted connections to reserve so that the pool closes none of them
// when they return. database/sql reports how many connections a pool has closed, but not how many
// it keeps.
func (p *poolState) keeps(of sql.DBStats, wanted int) int {
	if of.MaxIdleClosed > p.surplus {
		p.surplus, p.idle = of.MaxIdleClosed, 0
	}
	p.idle = max(p.idle, of.Idle)
	if p.surplus == 0 {
		return wanted
	}
	return min(wanted, max(p.idle, 1))
}

// idle returns the number of idle connections of all pools.
func (d *database) idle() (n int) {
	for _, pool := range d.copies() {
		n += pool.Stats().Idle
	}
	for _, of := range d.replicas {
		for _, pool := range of.pools {
			n += pool.Stats().Idle
		}
	}
	return n
}

// compare orders the databases by their names; the home database is the first. Every statement
// acquires its databases in this order. Otherwise two statements that each hold a database which
// the other one needs would wait for ever.
func (d *database) compare(a, b string) int {
	switch home := cmp.Or(d.homeName, "home"); {
	case a == b:
		return 0
	case a == home:
		return -1
	case b == home:
		return 1
	}
	return strings.Compare(a, b)
}

func (d *database) comparePools(a, b *sql.DB) int {
	return d.compare(d.shortNameOf(a), d.shortNameOf(b))
}

// reserveLookupConns reserves, until releaseLookupConns, a connection to each of the databases that precede the one
// that the statement is about to acquire.
func (s *session) reserveLookupConns(ctx context.Context, pools []*sql.DB, before *sql.DB) error {
	for _, pool := range pools {
		if _, held := s.held(pool); held || s.database.comparePools(pool, before) >= 0 {
			continue
		}
		in, err := s.heldOrNew(ctx, pool)
		if err != nil {
			return err
		}
		in.Kept = &inner.Kept{}
		if s.lookupConns == nil {
			s.lookupConns = map[*sql.DB]inner.Conn{}
		}
		s.lookupConns[pool] = in
	}
	return nil
}

func (s *session) releaseLookupConns() {
	for _, in := range s.lookupConns {
		_ = in.Leave() // the error of a broken connection does not matter
	}
	s.lookupConns = nil
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
