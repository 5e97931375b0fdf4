package sharding

import (
	"database/sql"
	"errors"
	"fmt"
)

// DBs are the databases that hold shards, by the names that targets use.
type DBs map[string]*sql.DB

// Router finds the target of a key for every sharded table. It is immutable
// and safe for concurrent use.
type Router struct {
	dbs    map[string]*sql.DB
	tables []Table
	byName map[string]*Table // by folded logical name
}

// New returns a router over dbs, which stay the caller's to close. The error
// joins every mistake in the configuration, each naming table and field.
func New(dbs DBs, tables ...Table) (*Router, error) {
	r := &Router{
		dbs:    make(map[string]*sql.DB, len(dbs)),
		tables: append([]Table(nil), tables...),
		byName: make(map[string]*Table, len(tables)),
	}
	var errs []error
	for name, db := range dbs {
		if db == nil {
			errs = append(errs, fmt.Errorf("database %q is nil", name))
		}
		r.dbs[name] = db
	}
	if len(tables) == 0 {
		errs = append(errs, errors.New("no tables"))
	}
	for i := range r.tables {
		errs = append(errs, r.tables[i].validate(dbs), r.add(&r.tables[i]))
	}
	errs = append(errs, r.checkNames())
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("sharding: %w", err)
	}
	return r, nil
}

func (r *Router) add(t *Table) error {
	if _, twice := r.byName[fold(t.Name)]; twice {
		return fmt.Errorf("table %q: Name: occurs twice", t.Name)
	}
	r.byName[fold(t.Name)] = t
	return nil
}

// checkNames finds physical tables that are claimed twice or that bear a
// logical name.
func (r *Router) checkNames() error {
	var errs []error
	owner := map[Target]string{}
	for _, t := range r.tables {
		for _, target := range t.Map.targets {
			if logical, ok := r.byName[fold(target.Table)]; ok {
				errs = append(errs, fmt.Errorf("table %q: Map: target %s bears the name of logical table %q; give physical tables names of their own", t.Name, target, logical.Name))
			}
			if first, taken := owner[foldTarget(target)]; taken && first != fold(t.Name) {
				errs = append(errs, fmt.Errorf("table %q: Map: target %s belongs to table %q already", t.Name, target, first))
			}
			owner[foldTarget(target)] = fold(t.Name)
		}
	}
	return errors.Join(errs...)
}

// Target returns where the row of the table with this sharding key lies. The
// table's case does not matter. Errors are [RouteError]s.
func (r *Router) Target(table string, key any) (Target, error) {
	t, ok := r.lookup(table)
	if !ok {
		return Target{}, &RouteError{Op: "route", Table: table, Err: ErrUnknownTable, Hint: "add it to the router's tables"}
	}
	target, err := t.Target(key)
	if err != nil {
		return Target{}, &RouteError{Op: "route", Table: t.Name, Column: t.Key, Err: err}
	}
	return target, nil
}

// Targets returns every target of the table once, in slot order; nil for a
// table the router does not know.
func (r *Router) Targets(table string) []Target {
	t, ok := r.lookup(table)
	if !ok {
		return nil
	}
	return t.Map.Targets()
}

// DB returns the database called name, nil if there is none.
func (r *Router) DB(name string) *sql.DB { return r.dbs[name] }

// Table returns the table with this logical name, in any case.
func (r *Router) Table(name string) (Table, bool) {
	t, ok := r.lookup(name)
	if !ok {
		return Table{}, false
	}
	return *t, true
}

// Tables returns all tables in the order they were given.
func (r *Router) Tables() []Table { return append([]Table(nil), r.tables...) }

func (r *Router) lookup(name string) (*Table, bool) {
	t, ok := r.byName[fold(name)]
	return t, ok
}
