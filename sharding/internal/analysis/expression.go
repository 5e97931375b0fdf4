// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

func (b *Analysis) expressions(list []sqlparse.Expr, s *Scope, seen *ctes) {
	for _, e := range list {
		b.expression(e, s, seen)
	}
}

// expression finds the subqueries of an expression, and the columns that are qualified with the
// name of a table.
func (b *Analysis) expression(e sqlparse.Expr, s *Scope, seen *ctes) {
	if !Shuffles(b, e) && !findsWords(b, e) {
		b.VolatileReason = cmp.Or(b.VolatileReason, b.unsteady(e)) // the first function or variable whose value may differ between databases
	}
	b.instant(e)
	call, ok := e.(*sqlparse.Call)
	if ok && (call.Over || sqlfunc.Aggregates[call.Function()] == sqlfunc.OnlyShards) {
		b.Windows = append(b.Windows, Window{call, s})
	}
	if ok && call.Over && s != nil {
		s.windows = append(s.windows, call)
	}
	if ok && s.isOfOuter(call) {
		b.Ranks++
		b.VolatileReason = "an aggregate in a subquery belongs to the outer query; write it there"
	}
	if s != nil && sqlfunc.Quantified(e) {
		s.Quantified = true
	}
	switch e := e.(type) {
	case nil:
	case *sqlparse.Column:
		b.Foreign = !s.qualified(e.Name) || !b.aliases[strings.ToLower(e.Name.Last().Name)] && s.lacks(e.Name) || b.Foreign
	case *sqlparse.Subquery:
		b.query(e.Query, s, seen)
		for _, p := range e.Query.Parts {
			if p.Select != nil {
				b.Scopes[p.Select].Operand = true
			}
		}
	default:
		b.expressions(sqlfunc.Operands(e), s, seen)
		if exists := sqlparse.As(e, sqlparse.Exists); exists != nil { // any row suffices
			of := exists.Operands[0].(*sqlparse.Subquery).Query // EXISTS has a query
			b.Limits = slices.DeleteFunc(b.Limits, func(l Limit) bool { return l.Query == of })
		}
	}
}

// Differs returns why several databases may compute different values for a part of the statement,
// or "". Of its window functions, these are computed by the databases.
func (b *Analysis) Differs(windows []Window) string {
	at := slices.IndexFunc(windows, func(w Window) bool { return !b.Partitioned(w) })
	instead := "run it as a report (docs/reports.md)"
	if b.Statement.Change != nil || b.Statement.Insert != nil {
		instead = "compute it first and pass it as an argument"
	}
	switch {
	case b.VolatileReason != "" || at < 0:
		return b.VolatileReason
	case windows[at].Call.Over:
		return "a window function sees the rows of one database only; add PARTITION BY with the sharding key to it, or a condition on the sharding key to the query, or " + instead
	}
	return windows[at].Call.Of(b.Statement.Text) + " needs all rows of a group, and a database has only its own; add the sharding key to GROUP BY, or a condition on the sharding key, or " + instead
}

// Partitioned reports whether each partition, or each group, is on one shard.
func (b *Analysis) Partitioned(w Window) bool {
	if w.Of == nil || w.Call.Over && w.Call.Odd && !w.Call.Filtered {
		return false
	}
	by := w.Of.groupBy
	if w.Call.Over {
		by = w.Call.Window[:w.Call.Partition]
	}
	return slices.ContainsFunc(by, func(e sqlparse.Expr) bool {
		c, _ := w.Of.Column(e)
		return slices.Contains(w.Of.Refs, c.Of) && b.Keyed(w.Of, e)
	})
}

// Unqualified returns the name if an expression is an unqualified name, otherwise "".
func Unqualified(e sqlparse.Expr) string {
	if c, ok := sqlparse.Bare(e).(*sqlparse.Column); ok && len(c.Name.Parts) == 1 {
		return c.Name.Parts[0].Name
	}
	return ""
}

// IsAlias reports whether an expression is the alias of a selected one.
func IsAlias(i sqlparse.Item, e sqlparse.Expr) bool {
	return i.Alias.Name != "" && strings.EqualFold(i.Alias.Name, Unqualified(e))
}

// ItemName returns the name of a selected column, "" for an expression without an alias.
func ItemName(i sqlparse.Item) string {
	if column, ok := i.Expr.(*sqlparse.Column); ok && i.Alias.Name == "" {
		return column.Name.Last().Name
	}
	return i.Alias.Name
}

// Computed returns what a SELECT, and an ORDER BY of its rows, compute of rows and groups.
func Computed(core *sqlparse.Core, order []sqlparse.Order) []sqlparse.Expr {
	all := slices.Concat(core.GroupBy, core.DistinctOn, []sqlparse.Expr{core.Having})
	for _, i := range core.Items {
		all = append(all, i.Expr)
	}
	for _, o := range order {
		all = append(all, o.Expr)
	}
	return all
}

// HasStar reports whether a SELECT selects all columns of a table.
func HasStar(c *sqlparse.Core) bool {
	return slices.ContainsFunc(c.Items, func(i sqlparse.Item) bool { return i.Star })
}

// Parametrized reports whether an operand has parameters outside of subqueries.
func Parametrized(e sqlparse.Expr) bool {
	return sqlparse.Any(e, sqlparse.Is[*sqlparse.Param])
}

// Literal returns the value if an expression is a literal of a kind.
func Literal(e sqlparse.Expr, kind sqlparse.LiteralKind) (value string, ok bool) {
	l, ok := sqlparse.Bare(e).(*sqlparse.Literal)
	if !ok || l.Kind != kind {
		return "", false
	}
	return l.Value, true
}

// IsLiteral reports whether an expression is a literal of a kind.
func IsLiteral(e sqlparse.Expr, kind sqlparse.LiteralKind) bool {
	_, is := Literal(e, kind)
	return is
}

// IsDefault reports whether a value is DEFAULT.
func IsDefault(e sqlparse.Expr) bool { return IsLiteral(e, sqlparse.Default) }
