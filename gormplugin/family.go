package gormplugin

import (
	"context"
	"reflect"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/sharding"
)

// family is what a create and the statements that run inside its default
// transaction, those of associations and of hooks, share: the keys drawn for
// them beforehand, and the rows that were given keys and lose them when the
// transaction is rolled back. It travels in the statement's context, as gorm
// hands settings on to some of these statements only. It is safe for concurrent
// use.
type family struct {
	mu       sync.Mutex
	keys     map[*managed]*keys
	children []*filling
}

type familyKey struct{}

func familyOf(ctx context.Context) *family {
	f, _ := ctx.Value(familyKey{}).(*family)
	return f
}

// give moves up to n keys of the field to those of a statement.
func (f *family) give(m *managed, to *keys, n int) {
	if f == nil || n <= 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if held := f.keys[m]; held != nil {
		held.take(to, n)
	}
}

// add remembers the state of a statement that has ended.
func (f *family) add(fl *filling) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.children = append(f.children, fl)
}

// leave returns the states that were added. The family is no more.
func (f *family) leave() []*filling {
	f.mu.Lock()
	defer f.mu.Unlock()
	children := f.children
	f.children, f.keys = nil, nil
	return children
}

// stock draws the keys for the rows that associations will create. A statement
// that is in a transaction already has nothing to gain from that, and one that
// gorm opens no transaction for need not.
func (f *fill) stock(db *gorm.DB, p *plan, inTx bool) (*family, error) {
	stmt := db.Statement
	if inTx || len(p.kids) == 0 || db.SkipDefaultTransaction || stmt.Schema == nil {
		return nil, nil
	}
	c := census{plans: &f.plans}
	if f.routing != nil {
		c.snapshot = f.routing.router.Snapshot()
	}
	columns, restricted := map[string]bool(nil), false
	if len(stmt.Selects)+len(stmt.Omits) > 0 {
		columns, restricted = stmt.SelectAndOmitColumns(true, false)
	}
	for _, rel := range p.kids {
		if selected, named := columns[rel.Name]; named && !selected || !named && restricted {
			continue
		}
		c.relation(rel, stmt.ReflectValue)
	}
	return c.draw(stmt.Context)
}

// census counts the rows without a key that can be reached through relations.
// It may count too many, when a hook or a nested Select leaves some out: their
// keys are lost, as gaps.
type census struct {
	plans    *plans
	snapshot *sharding.Snapshot // nil without a router
	need     map[*managed]int
	order    []*managed // as found, so that a test can foresee who gets which key
	seen     map[reflect.Value]bool
}

// relation counts the rows that v, one row or several, has in the relation.
func (c *census) relation(rel *schema.Relationship, v reflect.Value) {
	each(v, func(row reflect.Value) {
		if row.Type() != rel.Schema.ModelType {
			return
		}
		if children, ok := fieldAt(row, rel.Field); ok {
			each(children, func(child reflect.Value) { c.child(rel, child) })
		}
	})
}

// each calls do with a struct, or with those of a slice or an array.
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

// child counts a row of a relation and what belongs to it.
func (c *census) child(rel *schema.Relationship, v reflect.Value) {
	if v.Type() != rel.FieldSchema.ModelType || v.IsZero() && rel.Field.FieldType.Kind() == reflect.Struct {
		return // gorm takes a zero struct for none
	}
	if rel.JoinTable != nil {
		c.add(c.plans.of(rel.JoinTable), reflect.Value{})
	}
	c.row(rel.FieldSchema, v)
}

func (c *census) row(s *schema.Schema, v reflect.Value) {
	if v.CanAddr() {
		if c.seen == nil {
			c.seen = map[reflect.Value]bool{}
		}
		if c.seen[v.Addr()] {
			return
		}
		c.seen[v.Addr()] = true
	}
	p := c.plans.of(s)
	c.add(p, v)
	for _, rel := range p.kids {
		c.relation(rel, v)
	}
}

// add counts the managed fields of one row that are empty; those of a row that
// does not exist yet all are.
func (c *census) add(p *plan, row reflect.Value) {
	var table *sharding.Table
	if c.snapshot != nil {
		table, _ = c.snapshot.Lookup(p.schema.Table)
	}
	for i := range p.fields {
		m := &p.fields[i]
		if row.IsValid() && !(rows{structs: row}).empty(0, m) || isNumbered(table, m.DBName) || carries(table, m.DBName) {
			continue
		}
		if c.need == nil {
			c.need = map[*managed]int{}
		}
		if c.need[m]++; c.need[m] == 1 {
			c.order = append(c.order, m)
		}
	}
}

// draw fetches the keys; nil means that no row needs one.
func (c *census) draw(ctx context.Context) (*family, error) {
	if len(c.order) == 0 {
		return nil, nil
	}
	f := &family{keys: make(map[*managed]*keys, len(c.order))}
	for _, m := range c.order {
		held := &keys{source: m.gen.source}
		if err := m.draw(ctx, held, c.need[m]); err != nil {
			return nil, err
		}
		f.keys[m] = held
	}
	return f, nil
}
