// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// chosen returns the name of a table of an UPDATE of which several rows may match one changed row, so that the database chooses
// the row whose values SET takes. It returns "" if there is none.
func (b changer) chosen() string {
	if len(b.scope.Refs) < 2 { // nearly every UPDATE
		return ""
	}
	demands := b.demands()
	for _, a := range b.of.Set {
		read := b.mayRead(a.Value)
		for _, set := range b.scope.settings([]sqlparse.Assignment{a}) {
			single := b.matched(set.Of, demands)
			for _, of := range read {
				if set.Of != nil && !slices.Contains(single, of) {
					return of.Name
				}
			}
		}
	}
	return ""
}

// mayRead returns the tables of the UPDATE whose columns an expression may read: all, if it has a subquery, or a name that may be that
// of a table or of a column of any.
func (b changer) mayRead(e sqlparse.Expr) (all []*Reference) {
	for e := range sqlparse.All(e) {
		c, isKnown := b.scope.Column(e)
		switch {
		case sqlparse.Is[*sqlparse.Subquery](e), sqlparse.Is[*sqlparse.Column](e) && !isKnown:
			return b.scope.Refs
		case isKnown:
			all = append(all, c.Of)
		}
	}
	return all
}

// demand says that a column of a table has the value of an expression, or by USING that of another table's column of its name.
type demand struct {
	of     Column
	to     sqlparse.Expr // nil by USING
	beside *Reference
}

// demands returns those that hold for all rows that match.
func (b changer) demands() []demand {
	all := b.equated(b.of.Where)
	for i := range b.of.From {
		all = append(all, b.joined(&b.of.From[i])...)
	}
	return all
}

// joined returns the demands of joins. The condition of an outer join says something about the rows of its optional side only.
func (b changer) joined(s *sqlparse.Source) []demand {
	if s.Join == nil {
		return nil
	}
	all := append(b.joined(s.Join.Left), b.joined(s.Join.Right)...)
	on := b.equated(s.Join.On)
	left, right := b.table(s.Join.Left), b.table(s.Join.Right)
	for _, column := range s.Join.Using {
		if name := strings.ToLower(column.Name); left != nil && right != nil {
			on = append(on, demand{of: Column{left, name}, beside: right}, demand{of: Column{right, name}, beside: left})
		}
	}
	only := func(r *Reference) []demand {
		return slices.DeleteFunc(on, func(d demand) bool { return d.of.Of != r })
	}
	switch s.Join.Kind {
	case sqlparse.InnerJoin, sqlparse.CrossJoin:
		return append(all, on...)
	case sqlparse.LeftJoin:
		return append(all, only(right)...)
	case sqlparse.RightJoin:
		return append(all, only(left)...)
	}
	return all
}

// table returns the table that one element of FROM is, nil for a join.
func (b changer) table(s *sqlparse.Source) *Reference {
	switch {
	case s.Join != nil:
		return nil
	case s.Table == nil:
		return b.scope.named(s.Alias.Name)
	case s.Table.Alias.Name != "":
		return b.scope.named(s.Table.Alias.Name)
	}
	return b.scope.named(s.Table.Name.Last().Name)
}

// equated returns the demands of a condition.
func (b changer) equated(condition sqlparse.Expr) (all []demand) {
	for _, e := range sqlparse.Conjuncts(condition) {
		is := sqlparse.As(e, sqlparse.Equal)
		if is == nil || is.Not {
			continue
		}
		for i, operand := range is.Operands {
			if c, ok := b.scope.Column(operand); ok {
				all = append(all, demand{of: c, to: is.Operands[1-i]})
			}
		}
	}
	return all
}

// matched returns the tables of which at most one row matches one of a table, because a unique key of theirs equals values that this
// row has or decides. The rows of a list of values are taken to be different in each column that is compared.
func (b changer) matched(one *Reference, demands []demand) []*Reference {
	single := []*Reference{one}
	isGiven := func(d demand) bool {
		if d.beside != nil {
			return slices.Contains(single, d.beside)
		}
		return !sqlparse.Any(d.to, func(e sqlparse.Expr) bool {
			c, isColumn := b.scope.Column(e)
			call, isCall := e.(*sqlparse.Call)
			return sqlparse.Is[*sqlparse.Subquery](e) || isCall && sqlfunc.Quantifiers[call.Function()] || sqlparse.Is[*sqlparse.Column](e) && (!isColumn || !slices.Contains(single, c.Of))
		})
	}
	for before := 0; before < len(single); {
		before = len(single)
		for _, r := range b.scope.Refs {
			hasOne := func(column string) bool {
				return slices.ContainsFunc(demands, func(d demand) bool { return d.of == Column{r, column} && isGiven(d) })
			}
			isListed := len(r.constants) > 0 && slices.ContainsFunc(demands, func(d demand) bool { return d.of.Of == r && isGiven(d) })
			if !slices.Contains(single, r) && (isListed || catalog.HasKey(r.Schema.Total, hasOne)) {
				single = append(single, r)
			}
		}
	}
	return single
}
