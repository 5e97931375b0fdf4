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

// DBs are the databases that hold shards, by the names that targets use. Each database has one
// name.
type DBs map[string]*sql.DB

// validate refuses two names of one database, because two targets would then be one table.
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

// Router finds the target of a key for every sharded table. It is safe for concurrent use. Its
// tables never change, but [Router.Swap] replaces their maps. A statement that needs several
// consistent results takes one [Router.Snapshot].
type Router struct {
	dbs     DBs
	limits  Limits
	mode    TxMode
	routes  *routeReader // of the Migration; nil if there is none
	current current
}

// current holds the current snapshot of a router.
type current struct {
	now       atomic.Pointer[Snapshot] // nil in the zero Router
	replacing sync.Mutex               // serializes replacements of now
	replaced  chan struct{}            // closed when now is replaced; nil if nobody waits for that; guarded by replacing
}

// emptySnapshot is the snapshot of the zero Router.
var emptySnapshot = &Snapshot{}

func (p *current) snapshot() *Snapshot {
	if s := p.now.Load(); s != nil {
		return s
	}
	return emptySnapshot
}

// replace replaces the snapshot, unless next returns an error.
func (p *current) replace(next func(*Snapshot) (*Snapshot, error)) error {
	p.replacing.Lock()
	defer p.replacing.Unlock()
	s, err := next(p.snapshot())
	if err != nil {
		return err
	}
	p.now.Store(s)
	if p.replaced != nil {
		close(p.replaced)
		p.replaced = nil
	}
	return nil
}

// after returns a channel that is closed as soon as there is another snapshot than this one.
func (p *current) after(s *Snapshot) <-chan struct{} {
	p.replacing.Lock()
	defer p.replacing.Unlock()
	if p.snapshot() != s {
		replaced := make(chan struct{})
		close(replaced)
		return replaced
	}
	if p.replaced == nil {
		p.replaced = make(chan struct{})
	}
	return p.replaced
}

// New returns a router over dbs; the caller keeps them and closes them. Its options are tables, one
// [Table] each, and settings. The error joins all mistakes of the configuration; each names the
// table and the field.
func New(dbs DBs, options ...Option) (*Router, error) {
	s := collect(options)
	r := &Router{dbs: maps.Clone(dbs), limits: s.limits, mode: s.mode}
	errs := []error{s.validate(), dbs.validate()}
	first, err := newSnapshot(s.tables, s.broadcast, dbs)
	errs = append(errs, err)
	for _, m := range s.migrations {
		errs = append(errs, m.validate(first, dbs))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("sharding: %w", err)
	}
	if len(s.migrations) > 0 {
		r.routes = newRouteReader(s.migrations[0], r.dbs, &r.current)
		first = first.served(&r.routes.Migration, nil)
	}
	r.current.now.Store(first)
	return r, nil
}

// Snapshot returns the present state of the router. The Snapshot never changes.
func (r *Router) Snapshot() *Snapshot { return r.current.snapshot() }

// Replaced returns a channel that is closed as soon as the router has another snapshot than this one: after [Router.Swap], or when
// the routes of a [Migration] have changed.
func (r *Router) Replaced(s *Snapshot) <-chan struct{} { return r.current.after(s) }

// Swap replaces the maps of some tables, by logical name, all at once. A [Snapshot] that was taken
// before keeps its maps.
//
// Each new map must have a higher version than the one that it replaces, otherwise the error wraps
// [ErrStaleMap]; the version may be equal if the old map is a [Map.While] that has ended. If a map
// does not fit, the error joins all mistakes, as that of [New] does, and nothing is replaced. The
// maps of tables of one group must be replaced together.
func (r *Router) Swap(maps map[string]Map) error {
	err := r.current.replace(func(now *Snapshot) (*Snapshot, error) { return now.with(maps, r.dbs) })
	if err != nil {
		return fmt.Errorf("sharding: Swap: %w", err)
	}
	return nil
}

// Target returns the location of the table's row with this sharding key. The case of the table's
// name does not matter. Errors are [RouteError]s.
func (r *Router) Target(table string, key any) (Target, error) {
	return r.Snapshot().Target(table, key)
}

// TargetBy is [Snapshot.TargetBy] of the present snapshot.
func (r *Router) TargetBy(table, column string, value any) (Target, error) {
	return r.Snapshot().TargetBy(table, column, value)
}

// Targets returns the targets of the table without duplicates, in slot order; nil for a table that
// the router does not know.
func (r *Router) Targets(table string) []Target { return r.Snapshot().Targets(table) }

// Slots returns the number of slots of the table, 0 for a table that the router does not know.
func (r *Router) Slots(table string) int { return r.Snapshot().Slots(table) }

// DB returns the database with this name, nil if there is none.
func (r *Router) DB(name string) *sql.DB { return r.dbs[name] }

// Databases returns the names of all databases, in order.
func (r *Router) Databases() []string { return slices.Sorted(maps.Keys(r.dbs)) }

// Table returns the table with this logical name, in any case.
func (r *Router) Table(name string) (Table, bool) { return r.Snapshot().Table(name) }

// Tables returns all tables in the order in which they were given.
func (r *Router) Tables() []Table { return r.Snapshot().Tables() }

// IsBroadcast reports whether the table is one of [Broadcast], in any case.
func (r *Router) IsBroadcast(table string) bool { return r.Snapshot().IsBroadcast(table) }

// Broadcasts returns the names given with [Broadcast], in that order.
func (r *Router) Broadcasts() []string { return r.Snapshot().Broadcasts() }

// SameGroup reports whether the rows of one slot of both tables are in one database; see [Snapshot.SameGroup] and
// [Table].Group. It is true for a table and itself.
func (r *Router) SameGroup(a, b string) bool { return r.Snapshot().SameGroup(a, b) }

// Migration returns the router's [Migration], nil if there is none. Do not modify it.
func (r *Router) Migration() *Migration {
	if r.routes == nil {
		return nil
	}
	return &r.routes.Migration
}

// Limits returns the limits that [FanOut] has set.
func (r *Router) Limits() Limits { return r.limits }

// TxMode returns the mode that [Transactions] has set.
func (r *Router) TxMode() TxMode { return r.mode }

// Check returns an error that wraps [ErrTooManyShards] if one statement needs more targets than the
// limit.
func (l Limits) Check(targets int) error {
	if targets > l.MaxShards {
		return fmt.Errorf("%w: %d targets; at most %d are allowed", ErrTooManyShards, targets, l.MaxShards)
	}
	return nil
}
