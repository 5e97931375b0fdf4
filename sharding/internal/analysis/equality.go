// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"slices"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/catalog"
)

// edge says that everything known about the values of one column is also true of another.
type edge struct{ from, to Column }

func (k *Knowledge) satisfied(e sqlparse.Expr, s *Scope, holds []*Reference) {
	for _, c := range sqlparse.Conjuncts(e) {
		k.Facts = append(k.Facts, Fact{c, s, holds})
		k.equations(c, s, holds)
		for _, one := range alternatives(c) { // x IN (SELECT y …) is true only with a row that has the value of x
			k.equations(one, s, nil)
		}
	}
}

// equations records which columns a condition makes equal, for the references for which it holds.
func (k *Knowledge) equations(e sqlparse.Expr, s *Scope, holds []*Reference) {
	for _, q := range equalities(e) {
		if len(q.right) != 1 {
			continue
		}
		left, ok := s.Column(q.left)
		right, known := s.Column(q.right[0])
		sub, isQuery := q.right[0].(*sqlparse.Subquery)
		if isQuery {
			if right, known = k.picked(sub.Query, q.at); ok && known && q.in && k.each(sub.Query, right) {
				k.equal(left, right)
			}
		}
		if known && slices.Contains(holds, left.Of) {
			k.equal(right, left)
		}
		if known && isQuery && slices.Contains(holds, left.Of) && left.isRowOf(right) {
			k.picks = append(k.picks, edge{right, left})
		}
	}
	if o := sqlparse.As(e, sqlparse.Exists); o != nil {
		k.exists(o.Operands[0].(*sqlparse.Subquery).Query, holds) // the parser allows nothing else there
	}
	k.exclusion(e, s)
}

// exclusion records that x NOT IN (SELECT y …) depends only on rows with the value of x. A NULL on either side would depend on
// all rows, so x and y must be sharding keys, which are never NULL.
func (k *Knowledge) exclusion(e sqlparse.Expr, s *Scope) {
	o := sqlparse.As(e, sqlparse.In)
	if o == nil || !o.Not || len(o.Operands) != 2 {
		return
	}
	sub, isQuery := o.Operands[1].(*sqlparse.Subquery)
	left, ok := s.Column(o.Operands[0])
	if !isQuery || !ok || !left.isKey() {
		return
	}
	if right, known := k.selected(sub.Query, 0); known && right.isKey() {
		k.equal(left, right)
	}
}

// exists records which columns of a query's rows equal those of the row that EXISTS finds: what is known of the found row
// is true of them. An aggregate without GROUP BY makes a row also if none is found.
func (k *Knowledge) exists(q *sqlparse.Query, holds []*Reference) {
	s, core := k.Only(q), CoreOf(q)
	if s == nil || IsGrouped(core) {
		return
	}
	for _, c := range sqlparse.Conjuncts(core.Where) {
		for _, e := range equalities(c) {
			if len(e.right) != 1 {
				continue
			}
			outside, _ := s.Column(e.left)
			found, _ := s.Column(e.right[0])
			if slices.Contains(holds, outside.Of) && slices.Contains(s.Refs, found.Of) {
				k.equal(found, outside)
			}
		}
	}
}

// alternatives returns the conditions under OR, each of which may make e true together with others.
func alternatives(e sqlparse.Expr) (list []sqlparse.Expr) {
	either := sqlparse.As(e, sqlparse.Or)
	if either == nil {
		return nil
	}
	for _, operand := range either.Operands {
		for _, c := range sqlparse.Conjuncts(operand) {
			list = append(append(list, c), alternatives(c)...)
		}
	}
	return list
}

// equal adds an edge if the database considers two values equal only if the rules do. That does not
// hold for a text and a number, nor for a timestamp and a timestamptz.
func (k *Knowledge) equal(from, to Column) {
	a, b := from.Of.Schema.Columns[from.Name], to.Of.Schema.Columns[to.Name]
	times := a.Holds == catalog.Times && a.Formed == b.Formed && a.Skew == 0 && b.Skew == 0
	if a.Holds == b.Holds && (a.Holds.EqualByText() || times) {
		k.edges = append(k.edges, edge{from, to})
	}
}

// equality is x = y, x IN (y, …), or one element of a comparison of tuples: x has one of some
// values.
type equality struct {
	left  sqlparse.Expr
	right []sqlparse.Expr
	in    bool // by IN
	at    int  // index in the tuple
}

// equalities returns the columns that, by a condition, have one of some values. For = it returns
// both sides.
func equalities(e sqlparse.Expr) (all []equality) {
	o, ok := e.(*sqlparse.Operation)
	if !ok || o.Not || o.Op != sqlparse.Equal && o.Op != sqlparse.In {
		return nil
	}
	all = pairs(sqlparse.Bare(o.Operands[0]), o.Operands[1:], o.Op == sqlparse.In)
	if o.Op == sqlparse.Equal {
		all = append(all, pairs(sqlparse.Bare(o.Operands[1]), o.Operands[:1], false)...)
	}
	return all
}

func pairs(left sqlparse.Expr, right []sqlparse.Expr, in bool) (all []equality) {
	tuple := sqlparse.As(left, sqlparse.Tuple)
	if tuple == nil {
		return []equality{{left: left, right: right, in: in}}
	}
	for at, item := range tuple.Operands {
		q := equality{left: item, in: in, at: at}
		for _, row := range right {
			if in && sqlparse.Is[*sqlparse.Subquery](row) {
				q.right = append(q.right, row)
			}
			if row := sqlparse.As(sqlparse.Bare(row), sqlparse.Tuple); row != nil && len(row.Operands) == len(tuple.Operands) {
				q.right = append(q.right, row.Operands[at])
			}
		}
		if len(q.right) == len(right) {
			all = append(all, q)
		}
	}
	return all
}
