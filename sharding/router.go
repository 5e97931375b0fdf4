// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// DBs are the databases that hold shards, by the names that targets use. Each has
// one name.
type DBs map[string]*sql.DB

// validate refuses two names of one database, as their tables would be taken for
// different ones.
func (d DBs) validate() error {
	var errs []error
	names := make(map[*sql.DB]string, len(d))
	for _, name := range slices.Sorted(maps.Keys(d)) {
		db := d[name]
		if other, ok := names[db]; db == nil {
			errs = append(errs, fmt.Errorf("database %q is nil", name))
		} else if ok {
			errs = append(errs, fmt.Errorf("databases %q and %q are one *sql.DB; give it one name", other, name))
		}
		names[db] = name
	}
	return errors.Join(errs...)
}

func (d DBs) names() map[string]bool {
	names := make(map[string]bool, len(d))
	for name := range d {
		names[name] = true
	}
	return names
}

// Router finds the target of a key for every sharded table. It is safe for
// concurrent use. Its tables stay what they are; their maps can be exchanged by
// [Router.Swap], so take one [Router.Snapshot] per statement where several
// answers must fit together.
type Router struct {
	dbs     DBs
	limits  Limits
	mode    TxMode
	gate    *gate // of the Migration, nil when there is none
	present present
}

// present is what a router knows at this moment.
type present struct {
	now  atomic.Pointer[Snapshot] // nil in the zero Router
	turn sync.Mutex               // held by those who replace now
}

// nothing is the snapshot of the zero Router.
var nothing = &Snapshot{}

func (p *present) snapshot() *Snapshot {
	if s := p.now.Load(); s != nil {
		return s
	}
	return nothing
}

// replace exchanges the snapshot, unless next fails.
func (p *present) replace(next func(*Snapshot) (*Snapshot, error)) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	s, err := next(p.snapshot())
	if err == nil {
		p.now.Store(s)
	}
	return err
}

// New returns a router over dbs, which stay the caller's to close. Its options
// are tables, one [Table] each, and settings. The error joins every mistake in
// the configuration, each naming table and field.
func New(dbs DBs, options ...Option) (*Router, error) {
	s := collect(options)
	r := &Router{dbs: maps.Clone(dbs), limits: s.limits, mode: s.mode}
	errs := []error{s.validate(), dbs.validate()}
	first, err := newSnapshot(s.tables, s.broadcast, dbs.names())
	errs = append(errs, err)
	for _, m := range s.migrations {
		errs = append(errs, m.validate(first, dbs.names()))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("sharding: %w", err)
	}
	if len(s.migrations) > 0 {
		r.gate = newGate(s.migrations[0], r.dbs, &r.present)
		first = first.served(&r.gate.Migration, nil)
	}
	r.present.now.Store(first)
	return r, nil
}

// Snapshot returns what the router knows at this moment. It never changes.
func (r *Router) Snapshot() *Snapshot { return r.present.snapshot() }

// Swap exchanges the maps of some tables, by logical name, all at once. Those
// who hold a [Snapshot] keep the maps that it has.
//
// Each new map must have a higher version than the one it replaces, or the error
// wraps [ErrStaleMap]; the same version will do for a [Map.While] that is over.
// Where any of them does not fit, the error tells all that is wrong, as that of
// [New] does, and nothing is exchanged. Tables of one group are to be given
// together.
func (r *Router) Swap(maps map[string]Map) error {
	err := r.present.replace(func(now *Snapshot) (*Snapshot, error) { return now.with(maps, r.dbs.names()) })
	if err != nil {
		return fmt.Errorf("sharding: Swap: %w", err)
	}
	return nil
}

// Target returns where the row of the table with this sharding key lies. The
// table's case does not matter. Errors are [RouteError]s.
func (r *Router) Target(table string, key any) (Target, error) {
	return r.Snapshot().Target(table, key)
}

// TargetBy is [Snapshot.TargetBy] of the present snapshot.
func (r *Router) TargetBy(table, column string, value any) (Target, error) {
	return r.Snapshot().TargetBy(table, column, value)
}

// Targets returns every target of the table once, in slot order; nil for a
// table the router does not know.
func (r *Router) Targets(table string) []Target { return r.Snapshot().Targets(table) }

// Slots returns the number of slots of the table, 0 for one that the router
// does not know.
func (r *Router) Slots(table string) int { return r.Snapshot().Slots(table) }

// DB returns the database called name, nil if there is none.
func (r *Router) DB(name string) *sql.DB { return r.dbs[name] }

// Databases returns the names of all databases, in order.
func (r *Router) Databases() []string { return slices.Sorted(maps.Keys(r.dbs)) }

// Table returns the table with this logical name, in any case.
func (r *Router) Table(name string) (Table, bool) { return r.Snapshot().Table(name) }

// Tables returns all tables in the order they were given.
func (r *Router) Tables() []Table { return r.Snapshot().Tables() }

// IsBroadcast reports whether the table is one of [Broadcast], in any case.
func (r *Router) IsBroadcast(table string) bool { return r.Snapshot().IsBroadcast(table) }

// Broadcasts returns the names given with [Broadcast], in that order.
func (r *Router) Broadcasts() []string { return r.Snapshot().Broadcasts() }

// SameGroup reports whether rows of one slot of both tables lie in one database;
// see [Table].Group. A table and itself are always of one group.
func (r *Router) SameGroup(a, b string) bool { return r.Snapshot().SameGroup(a, b) }

// Migration returns the [Migration] that the router was given, nil if there was none. It
// is the router's own; do not write to it.
func (r *Router) Migration() *Migration {
	if r.gate == nil {
		return nil
	}
	return &r.gate.Migration
}

// Limits returns what [FanOut] has set.
func (r *Router) Limits() Limits { return r.limits }

// TxMode returns what [Transactions] has set.
func (r *Router) TxMode() TxMode { return r.mode }

// Check returns an error that wraps [ErrTooManyShards] when one statement needs
// more targets than the limit.
func (l Limits) Check(targets int) error {
	if targets > l.MaxShards {
		return fmt.Errorf("%w: %d targets, and at most %d are allowed", ErrTooManyShards, targets, l.MaxShards)
	}
	return nil
}
