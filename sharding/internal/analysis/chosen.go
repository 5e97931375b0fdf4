// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/catalog"
)

// chosen returns the name of a table of an UPDATE of which several rows may match one changed row, so that the database chooses
// the row whose values SET takes. It returns "" if there is none.
func (b changer) chosen() string {
	demands := b.demands()
	for _, a := range b.of.Set {
		var read []*Reference
		for e := range sqlparse.All(a.Value) {
			if column, isColumn := e.(*sqlparse.Column); isColumn {
				if c, ok := b.scope.resolve(column.Name); ok && slices.Contains(b.scope.Refs, c.Of) {
					read = append(read, c.Of)
				}
			}
		}
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

// demand says that a column of a table has the value of an expression, or by USING that of the other table's column of its name.
type demand struct {
	of Column
	to sqlparse.Expr // nil by USING
}

// demands returns those of the UPDATE.
func (b changer) demands() (all []demand) {
	conditions := sqlparse.Conjuncts(b.of.Where)
	var joined func(s *sqlparse.Source)
	joined = func(s *sqlparse.Source) {
		if s.Join != nil {
			conditions = append(conditions, sqlparse.Conjuncts(s.Join.On)...)
			for _, r := range b.scope.Refs {
				for _, name := range s.Join.Using {
					all = append(all, demand{of: Column{r, strings.ToLower(name.Name)}})
				}
			}
			joined(s.Join.Left)
			joined(s.Join.Right)
		}
	}
	for i := range b.of.From {
		joined(&b.of.From[i])
	}
	for _, e := range conditions {
		is := sqlparse.As(e, sqlparse.Equal)
		if is == nil || is.Not {
			continue
		}
		for i, operand := range is.Operands {
			if c, ok := b.scope.Column(operand); ok {
				all = append(all, demand{c, is.Operands[1-i]})
			}
		}
	}
	return all
}

// matched returns the tables of which at most one row matches one of a table, because a unique key of theirs equals values that this
// row has or decides. Of a list of values each is taken to have another one.
func (b changer) matched(one *Reference, demands []demand) []*Reference {
	single := []*Reference{one}
	isGiven := func(d demand) bool {
		if d.to == nil {
			return slices.ContainsFunc(single, func(r *Reference) bool { return r.has(d.of.Name) })
		}
		return !sqlparse.Any(d.to, func(e sqlparse.Expr) bool {
			c, isColumn := b.scope.Column(e)
			return sqlparse.Is[*sqlparse.Subquery](e) || sqlparse.Is[*sqlparse.Column](e) && (!isColumn || !slices.Contains(single, c.Of))
		})
	}
	for before := 0; before < len(single); {
		before = len(single)
		for _, r := range b.scope.Refs {
			hasOne := func(column string) bool {
				return slices.ContainsFunc(demands, func(d demand) bool { return d.of == Column{r, column} && isGiven(d) })
			}
			if !slices.Contains(single, r) && (len(r.constants) > 0 || catalog.HasKey(r.Schema.Total, hasOne)) {
				single = append(single, r)
			}
		}
	}
	return single
}
