// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// steadyAverages refuses an average in an expression if MySQL and MariaDB may group into a temporary table, where an average has
// only the digits that it shows: for window functions, and for aggregates with DISTINCT unless groups are sorted by their keys.
// Whether they do depends on the indexes.
func steadyAverages(c grouper, e sqlparse.Expr) {
	if !c.MySQL || !sqlparse.Any(e, sqlfunc.IsAverage) {
		return
	}
	sorts := false
	for i, o := range orders(c.query) {
		sorts = sorts || c.by(c.ordered(o.Expr)) != i
	}
	if sorts && (aggregator{c}).distincts() > 0 || slices.ContainsFunc(c.core.Items, func(i sqlparse.Item) bool { return sqlfunc.HasWindow(i.Expr) }) {
		c.refuse(unsteadyDigits)
	}
}

const unsteadyDigits = "the digits of an AVG in an expression depend on how a server sorts; write SUM(x) / COUNT(x)" + AddKey

// average returns the sum of all shards divided by their count, with the digits of a division by some rules.
func (c calculator) average(e *sqlparse.Call, by merge.Dialect) (merge.Expr, merge.Kind) {
	of := "(" + c.text(e.Args[0]) + ")"
	c.value(e.Args[0])
	if e.Filtered {
		if c.hasParams(e.Args[1]) {
			c.refuse(c.text(e) + parametersCompared)
		}
		of += " FILTER (WHERE " + c.text(e.Args[1]) + ")"
	}
	v := c.summand(e.Args[0])
	g := c.combination.group
	g.quotients++
	kind := averaged(v.Type.Kind)
	sum := merge.Column(g.add(merge.Aggregate{Function: merge.Sum, Kind: v.Type.Kind, Column: c.selectHidden("SUM" + of)}, v), kind)
	count := merge.Column(g.add(merge.Aggregate{Function: merge.Count, Column: c.selectHidden("COUNT" + of)}, v), merge.Integer)
	if c.SQLite { // an average is a float on SQLite
		sum = merge.Arithmetic(c.Options.Merge, '*', sum, merge.Constant(1.0, merge.Float))
	}
	if c.Postgres && kind == merge.Float { // its AVG, unlike SUM, adds to 0, which makes 0 of -0
		sum = merge.Arithmetic(c.Options.Merge, '+', sum, merge.Constant(0.0, merge.Float))
	}
	return merge.Arithmetic(by, '/', sum, count), c.wider(v.Type.Kind)
}

// alternative returns an operand of COALESCE, IFNULL or NULLIF. MySQL rounds an average in the first two to the digits of the
// result, which are those of the average if the others have no more.
func alternative(c calculator, e sqlparse.Expr, of *sqlparse.Call) (merge.Expr, merge.Kind) {
	if !c.MySQL || of.Function() == "nullif" || !isLoose(e) {
		return c.number(e)
	}
	call, isCall := sqlparse.Bare(e).(*sqlparse.Call)
	if !isCall || !sqlfunc.IsAverage(call) {
		c.refuse(unsteadyDigits)
		return c.number(e)
	}
	made, kind := c.average(call, c.Options.Merge)
	wide := func(other sqlparse.Expr) bool {
		l, ok := sqlparse.Bare(other).(*sqlparse.Literal)
		if !ok {
			return other != e
		}
		_, digits, _ := strings.Cut(l.Value, ".")
		return len(digits) > c.Options.Merge.Division.More || strings.ContainsAny(l.Value, "eE")
	}
	if kind != merge.Float && slices.ContainsFunc(of.Args, wide) {
		c.refuse(unsteadyDigits)
	}
	return made, kind
}

// isLoose reports whether an expression computes on with the digits of an average that it does not show.
func isLoose(e sqlparse.Expr) bool {
	if call, ok := e.(*sqlparse.Call); ok && call.Function() == "round" || sqlparse.As(e, sqlparse.Cast) != nil {
		return false
	}
	return sqlfunc.IsAverage(e) || slices.ContainsFunc(sqlparse.Operands(e), isLoose)
}

// roundsLast refuses, on MariaDB, what a quotient is computed from, or is beside: a rounded float has the digits there that are
// shown, unless the statement is prepared.
func roundsLast(c calculator, divides bool, operands []sqlparse.Expr) {
	rounded := func(e sqlparse.Expr) bool {
		call, ok := e.(*sqlparse.Call)
		return ok && sqlfunc.Rounds[call.Function()] && len(call.Args) > 0 && sqlfunc.HasAggregate(call) && c.kindOf(call.Args[0]) == merge.Float
	}
	some := func(is func(sqlparse.Expr) bool) bool {
		return slices.ContainsFunc(operands, func(e sqlparse.Expr) bool { return sqlparse.Any(e, is) })
	}
	if c.Options.Merge.IsMariaDB() && some(rounded) && (divides || some(isQuotient)) {
		c.refuse("the digits of a rounded float in a quotient, or beside one, depend on the protocol; round the result")
	}
}
