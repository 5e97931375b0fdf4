package gormplugin

import (
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/sharding"
)

// leg is what one target is sent of a statement that concerns several.
type leg struct {
	target sharding.Target
	query  string
	vars   []any
	rows   []int // which rows of a create
}

// isMany reports whether the statement goes to several targets. gorm's own text
// is then the first one's, and never sent.
func (s *step) isMany() bool { return len(s.targets) > 1 }

// legs builds the statement for each target, and proves that all together do
// what the one that was asked for would do on one table.
func (s *step) legs(m *merge) ([]leg, error) {
	if s.op == "create" {
		return s.insertions()
	}
	if err := s.proveMany(); err != nil {
		return nil, err
	}
	legs := make([]leg, len(s.targets))
	for i, target := range s.targets {
		clauses := maps.Clone(s.stmt.Clauses)
		if where, ok := clauses["WHERE"]; ok {
			where.Expression = clause.Where{Exprs: s.narrow(conditions(s.stmt), target)}
			clauses["WHERE"] = where
		}
		m.change(clauses)
		var err error
		if legs[i], err = s.leg(target, clauses, len(s.stmt.Vars)); err != nil {
			return nil, err
		}
	}
	return legs, nil
}

// proveMany checks the finished statement against all targets.
func (s *step) proveMany() error {
	if _, ok := s.stmt.Clauses["WHERE"]; ok && (!s.enclosed || conditions(s.stmt) == nil) {
		return s.refuse(sharding.ErrMissingKey, s.conditionHint())
	}
	set := s.where()
	if set.all && !s.everywhere || slices.ContainsFunc(set.of, func(t sharding.Target) bool { return !slices.Contains(s.targets, t) }) {
		return s.refuse(sharding.ErrMissingKey, s.conditionHint())
	}
	if err := s.proveSet(); err != nil {
		return err
	}
	if _, limited := s.stmt.Clauses["LIMIT"]; limited && s.isWrite() {
		return s.refuse(sharding.ErrUnmergeable, "LIMIT would count in each shard anew; select the keys first, then write by key")
	}
	if _, locks := s.stmt.Clauses["FOR"]; locks && !s.routing.bestEffort() {
		return s.refuse(sharding.ErrCrossShard, "rows are locked in one shard at a time; lock them by key")
	}
	return nil
}

func (s *step) isWrite() bool { return s.op == "create" || s.op == "update" || s.op == "delete" }

// leg builds the statement of one target from clauses, with about as many values
// as vars says.
func (s *step) leg(target sharding.Target, clauses map[string]clause.Clause, vars int) (leg, error) {
	stmt := s.copied(clauses)
	stmt.Vars = make([]any, 0, vars)
	stmt.SQL.Grow(256 + 3*vars)
	s.pointAt(stmt, s.spot(target))
	stmt.Build(s.order()...)
	return leg{target: target, query: stmt.SQL.String(), vars: stmt.Vars}, stmt.DB.Error
}

// copied returns a statement with other clauses, to build text from.
func (s *step) copied(clauses map[string]clause.Clause) *gorm.Statement {
	db := *s.stmt.DB
	db.Error = nil
	stmt := &gorm.Statement{
		DB: &db, Table: s.alias, TableExpr: s.stmt.TableExpr, Schema: s.stmt.Schema, Model: s.stmt.Model,
		Dest: s.stmt.Dest, ReflectValue: s.stmt.ReflectValue, Context: s.stmt.Context, ConnPool: s,
		Clauses: clauses, Unscoped: s.stmt.Unscoped, Distinct: s.stmt.Distinct,
	}
	db.Statement = stmt
	return stmt
}

// order returns the clauses in the order of the statement's text. A soft
// deletion is an UPDATE.
func (s *step) order() []string {
	if _, updates := s.stmt.Clauses["UPDATE"]; updates && s.op == "delete" {
		return s.stmt.DB.Callback().Update().Clauses
	}
	return s.stmt.BuildClauses
}

// insertions builds the INSERT of each target from the rows as gorm is about to
// send them.
func (s *step) insertions() ([]leg, error) {
	if err := s.proveConflict(); err != nil {
		return nil, err
	}
	values, key, err := s.values()
	if err != nil {
		return nil, err
	}
	if err := s.proveGenes(values, key); err != nil {
		return nil, err
	}
	legs := make([]leg, 0, len(s.targets))
	for i, row := range values.Values {
		target, err := s.rowTarget(i, row[key])
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(legs, func(l leg) bool { return l.target == target })
		if at < 0 {
			at = len(legs)
			legs = append(legs, leg{target: target, rows: make([]int, 0, len(values.Values)/len(s.targets))})
		}
		legs[at].rows = append(legs[at].rows, i)
	}
	for i := range legs {
		if err := s.insertion(&legs[i], values); err != nil {
			return nil, err
		}
	}
	return legs, nil
}

// valuesBuilder leaves the rows out of gorm's own text of an INSERT for several
// shards, which is never sent.
func valuesBuilder(next clause.ClauseBuilder) clause.ClauseBuilder {
	return func(c clause.Clause, b clause.Builder) {
		if stmt, s := stepOf(b); s != nil && s.isMany() && s.stmt == stmt {
			return
		}
		build(next, c, b)
	}
}

// stepOf returns the statement that b writes, and the step that routes it; nil for
// what is not routed.
func stepOf(b clause.Builder) (*gorm.Statement, *step) {
	stmt, ok := b.(*gorm.Statement)
	if !ok {
		return nil, nil
	}
	s, _ := stmt.ConnPool.(*step)
	return stmt, s
}

// build writes a clause with the builder that there was before ours, if any.
func build(before clause.ClauseBuilder, c clause.Clause, b clause.Builder) {
	if before != nil {
		before(c, b)
		return
	}
	c.Build(b)
}

func (s *step) insertion(l *leg, all clause.Values) error {
	values := clause.Values{Columns: all.Columns, Values: make([][]any, len(l.rows))}
	for n, i := range l.rows {
		values.Values[n] = all.Values[i]
	}
	clauses := maps.Clone(s.stmt.Clauses)
	c := clauses["VALUES"]
	c.Expression = values
	clauses["VALUES"] = c
	built, err := s.leg(l.target, clauses, len(l.rows)*len(all.Columns))
	l.query, l.vars = built.query, built.vars
	return err
}

// narrow returns the conditions with the lists of keys cut down to those of one
// target. Only lists are cut that a row must be in to match: there it makes no
// difference that the others' keys are missing, not even that x IN () is NULL.
func (s *step) narrow(exprs []clause.Expression, target sharding.Target) []clause.Expression {
	r := s.read(s.stmt)
	list := make([]clause.Expression, len(exprs))
	for i, e := range exprs {
		switch c := e.(type) {
		case clause.AndConditions:
			list[i] = clause.AndConditions{Exprs: s.narrow(c.Exprs, target)}
		case clause.OrConditions:
			list[i] = clause.OrConditions{Exprs: s.narrow(c.Exprs, target)}
		case clause.Where:
			list[i] = clause.Where{Exprs: s.narrow(c.Exprs, target)}
		case clause.IN:
			list[i] = s.narrowIn(&r, c, target)
		case clause.Eq:
			list[i] = narrowEq(&r, c, target)
		case clause.Expr:
			list[i] = narrowText(&r, c, target)
		default:
			list[i] = e
		}
	}
	return list
}

func (s *step) narrowIn(r *reader[sharding.Target], c clause.IN, target sharding.Target) clause.IN {
	if column, ok := c.Column.(clause.Column); ok && column.Table == s.at.target.Table {
		column.Table = clause.CurrentTable // gorm took the first target's for the table's name
		c.Column = column
	}
	if place := r.column(c.Column); place != nil {
		c.Values = only(place, c.Values, target)
	}
	return c
}

func narrowEq(r *reader[sharding.Target], c clause.Eq, target sharding.Target) clause.Eq {
	values, isList := listed(c.Value)
	if !isList {
		return c
	}
	if place := r.column(c.Column); place != nil {
		c.Value = only(place, values, target)
	}
	return c
}

// narrowText cuts the lists that are values of their own.
func narrowText(r *reader[sharding.Target], c clause.Expr, target sharding.Target) clause.Expr {
	if c.WithoutParentheses {
		return c
	}
	given := arguments{vars: c.Vars}
	r.lists(&r.fragments.of(c.SQL).root, given, func(list int, place func(any) (sharding.Target, error)) {
		if &c.Vars[0] == &given.vars[0] {
			c.Vars = slices.Clone(c.Vars)
		}
		c.Vars[list] = only(place, elements(c.Vars[list]), target)
	})
	return c
}

// only returns the keys that the target may hold.
func only(place func(any) (sharding.Target, error), keys []any, target sharding.Target) []any {
	kept := make([]any, 0, len(keys))
	for _, key := range keys {
		if at, err := place(key); err != nil || at == target {
			kept = append(kept, key)
		}
	}
	return kept
}

// show makes gorm tell the statements of all targets in place of the first
// one's.
func (s *step) show(legs []leg) {
	length, vars := 0, 0
	for _, l := range legs {
		length, vars = length+len(l.query)+2, vars+len(l.vars)
	}
	s.stmt.SQL.Reset()
	s.stmt.SQL.Grow(length)
	s.stmt.Vars = make([]any, 0, vars)
	for i, l := range legs {
		if i > 0 {
			s.stmt.SQL.WriteString("; ")
		}
		s.stmt.SQL.WriteString(l.query)
		s.stmt.Vars = append(s.stmt.Vars, l.vars...)
	}
}

// limit refuses a statement for more targets than are allowed.
func (s *step) limit(targets int) error {
	if most := s.routing.limits().MaxShards; targets > most {
		return s.refuse(sharding.ErrTooManyShards, fmt.Sprintf("it needs %d, at most %d are allowed; give fewer keys, or raise the limit with sharding.FanOut", targets, most))
	}
	return nil
}
