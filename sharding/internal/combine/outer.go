// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// Each shard returns all groups of SELECT c.name, COUNT(o.id) FROM countries c LEFT JOIN orders o … GROUP BY c.name, because
// every database has all countries. For a country without orders of its own a shard counts a row in which the columns of
// orders are NULL. Aggregates of these columns ignore it, so they can be combined like those of other groups.

// outerGroups aggregates rows of a sharded table that are joined to rows which every database has.
type outerGroups struct {
	*combiner
	joined *analysis.Reference // the sharded table
}

var ignoresNull = sqlfunc.Words("count sum avg min max bool_and bool_or every")

// groupsOuter reports whether the groups of a SELECT are those of the rows that every database has, and its aggregates ignore
// the row that a shard without joined rows adds.
func groupsOuter(c *combiner) bool {
	o := outerGroups{c, outerJoined(c)}
	if len(c.cores) > 1 || o.joined == nil || !analysis.IsGrouped(c.core) || len(c.Windows) > 0 {
		return false
	}
	all := append(analysis.Computed(c.core, c.query.OrderBy), c.core.Where)
	return !analysis.HasStar(c.core) && !slices.ContainsFunc(all, o.differs)
}

// outerJoined returns the only sharded table of a statement if an outer join joins it to all else in FROM of the present SELECT.
// Otherwise it returns nil.
func outerJoined(c *combiner) *analysis.Reference {
	if len(c.core.From) != 1 || c.core.From[0].Join == nil || c.core.From[0].Join.On == nil {
		return nil
	}
	join := c.core.From[0].Join
	at := join.Right
	switch join.Kind {
	case sqlparse.LeftJoin:
	case sqlparse.RightJoin:
		at = join.Left
	default:
		return nil
	}
	if all := sharded(c); len(all) == 1 && at.Table != nil && all[0].At == at.Table && all[0].Nullable > 0 {
		return all[0]
	}
	return nil
}

// differs reports whether an expression may have another value in the row that a shard adds than it has in other rows of its
// group.
func (o outerGroups) differs(e sqlparse.Expr) bool {
	if call, ok := e.(*sqlparse.Call); ok && sqlfunc.IsAggregate(call) {
		of := sqlfunc.AggregatedBy(call)
		return !ignoresNull[call.Function()] || call.Star || len(of) != 1 || !o.ignored(of[0], call.Function() == "sum" && !call.Filtered)
	}
	switch e := e.(type) {
	case *sqlparse.Subquery:
		return true
	case *sqlparse.Column:
		if col, ok := o.scope.Column(e); ok {
			return col.Of == o.joined
		}
		name := strings.ToLower(e.Last().Name)
		has, certain := o.joined.Has(name)
		return has || !certain || name == o.joined.Name // in PostgreSQL, the name of a table is its row
	}
	return slices.ContainsFunc(sqlparse.Operands(e), o.differs)
}

// ignored reports whether an aggregate ignores an argument in a row without a joined row: because it is NULL there, or if withZero is
// set, because it is 0 in a sum which is never NULL.
func (o outerGroups) ignored(e sqlparse.Expr, withZero bool) bool {
	switch e := sqlparse.Bare(e).(type) {
	case *sqlparse.Column:
		col, ok := o.scope.Column(e)
		return ok && col.Of == o.joined
	case *sqlparse.Operation:
		switch {
		case e.Op >= sqlparse.Add && e.Op <= sqlparse.Mod, e.Op == sqlparse.Cast:
			return slices.ContainsFunc(e.Operands, func(e sqlparse.Expr) bool { return o.ignored(e, false) })
		case e.Op == sqlparse.Case:
			return o.ignoredCase(e, withZero)
		}
	}
	return false
}

// ignoredCase reports whether no condition of CASE WHEN … is true in a row without a joined row, and ELSE is ignored. With ELSE 0, a
// shard without joined rows returns 0; all joined rows of one table might have NULL, unless THEN is a number.
func (o outerGroups) ignoredCase(e *sqlparse.Operation, withZero bool) bool {
	conditions, results := branches(e, o.Statement.Text)
	if len(conditions) == 0 { // CASE x WHEN …
		return false
	}
	rejects := func(e sqlparse.Expr) bool { return o.scope.Rejects(e, []*analysis.Reference{o.joined}) }
	for _, condition := range conditions {
		if !slices.ContainsFunc(sqlparse.Conjuncts(condition), rejects) {
			return false
		}
	}
	if len(results) == len(conditions) || isNull(results[len(results)-1]) {
		return true
	}
	otherwise, isLiteral := sqlparse.Bare(results[len(results)-1]).(*sqlparse.Literal)
	return withZero && isLiteral && otherwise.Value == "0" && !slices.ContainsFunc(results, func(e sqlparse.Expr) bool { return !isInteger(e) })
}
