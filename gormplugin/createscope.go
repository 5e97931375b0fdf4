// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"reflect"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/sharding"
)

// createScope is the state that a create shares with the statements inside its default
// transaction, those of associations and of hooks: the keys drawn for them beforehand, and the
// rows that lose their keys when the transaction is rolled back. It is in the statement's
// context, because gorm passes its settings only to some of these statements. Hooks may pass the
// context to other transactions, to which the scope does not apply. It is safe for concurrent use.
type createScope struct {
	mu       sync.Mutex
	tx       gorm.ConnPool // the default transaction, nil unless it is open
	keys     map[*managed]keyfield.Keys
	children []*filling
}

type scopeKey struct{}

// scopeOf returns the scope in whose transaction a statement runs, nil if there is none.
func scopeOf(stmt *gorm.Statement) *createScope {
	f, ok := stmt.Context.Value(scopeKey{}).(*createScope)
	if !ok {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tx != txOf(stmt) {
		return nil
	}
	return f
}

// give moves up to n keys of the field to the keys of a statement.
func (f *createScope) give(m *managed, to keyfield.Keys, n int) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if held := f.keys[m]; held != nil {
		to.Take(held, n)
	}
}

// enter records the default transaction, which gorm has begun.
func (fl *filling) enter(db *gorm.DB) {
	if f := fl.createScope; f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.tx = txOf(db.Statement)
	}
}

// txOf returns the transaction of a statement, also behind prepared statements.
func txOf(stmt *gorm.Statement) gorm.ConnPool {
	if prepared, cached := stmt.ConnPool.(*gorm.PreparedStmtTX); cached {
		return prepared.Tx
	}
	return stmt.ConnPool
}

// add stores the state of a statement that has ended.
func (f *createScope) add(fl *filling) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.children = append(f.children, fl)
}

// close returns the states that were added, and empties the scope.
func (f *createScope) close() []*filling {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	children := f.children
	f.children, f.keys, f.tx = nil, nil, nil
	return children
}

// drawForAssociations draws the keys for the rows that associations will create. It does
// nothing for a statement that is already in a transaction, where an early draw gains nothing,
// or for which gorm opens no transaction.
func (f *fill) drawForAssociations(db *gorm.DB, fl *filling) (*createScope, error) {
	stmt := db.Statement
	if fl.inTx || len(fl.plan.relations) == 0 || db.SkipDefaultTransaction || stmt.Schema == nil {
		return nil, nil
	}
	c := keyCounter{plans: f.plans, router: fl.router, need: map[*managed]int{}, seen: map[reflect.Value]bool{}}
	for _, rel := range fl.plan.relations {
		if !leavesOut(stmt, rel.Name) {
			c.relation(rel, stmt.ReflectValue)
		}
	}
	return c.draw(stmt.Context)
}

// keyCounter counts the rows without a key that can be reached through relations. It may count
// too many, when a hook or a nested Select leaves some out; their keys become gaps.
type keyCounter struct {
	plans  *plans
	router *sharding.Router // nil: no table is sharded
	need   map[*managed]int
	order  []*managed // in the order of discovery, so that the assignment is deterministic
	seen   map[reflect.Value]bool
}

// relation counts the rows that v, one row or several, has in the relation.
func (c *keyCounter) relation(rel *schema.Relationship, v reflect.Value) {
	each(v, func(row reflect.Value) {
		if row.Type() != rel.Schema.ModelType {
			return
		}
		if children, ok := fieldAt(row, rel.Field); ok {
			each(children, func(child reflect.Value) { c.child(rel, child) })
		}
	})
}

// each calls do with a struct, or with each struct of a slice or an array.
func each(v reflect.Value, do func(reflect.Value)) {
	switch v = reflect.Indirect(v); v.Kind() {
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			each(v.Index(i), do)
		}
	case reflect.Struct:
		do(v)
	}
}

// child counts a row of a relation and the rows that belong to it.
func (c *keyCounter) child(rel *schema.Relationship, v reflect.Value) {
	if v.Type() != rel.FieldSchema.ModelType || v.IsZero() && rel.Field.FieldType.Kind() == reflect.Struct {
		return // gorm treats a zero struct as absent
	}
	if rel.JoinTable != nil {
		c.add(c.plans.of(rel.JoinTable), reflect.Value{})
	}
	if v.CanAddr() {
		if c.seen[v.Addr()] {
			return
		}
		c.seen[v.Addr()] = true
	}
	p := c.plans.of(rel.FieldSchema)
	c.add(p, v)
	for _, next := range p.relations {
		c.relation(next, v)
	}
}

// add counts the empty managed fields of one row; all fields of a row that does not exist yet
// are empty.
func (c *keyCounter) add(p *plan, row reflect.Value) {
	var table *sharding.Table
	if c.router != nil {
		table, _ = c.router.Snapshot().Lookup(p.schema.Table)
	}
	for _, m := range p.fields {
		if row.IsValid() && !(rows{structs: row}).empty(0, m) || isNumbered(table, m.DBName) || columnCarriesSlot(table, m.DBName) {
			continue
		}
		if c.need[m]++; c.need[m] == 1 {
			c.order = append(c.order, m)
		}
	}
}

// draw draws the keys. It returns nil when no row needs one.
func (c *keyCounter) draw(ctx context.Context) (*createScope, error) {
	if len(c.order) == 0 {
		return nil, nil
	}
	f := &createScope{keys: make(map[*managed]keyfield.Keys, len(c.order))}
	for _, m := range c.order {
		held := m.gen.NewKeys()
		if err := m.draw(ctx, held, c.need[m]); err != nil {
			return nil, err
		}
		f.keys[m] = held
	}
	return f, nil
}
