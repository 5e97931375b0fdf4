// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/sharding/internal/analysis"
)

// apart says why the rows of a SELECT do not come from one slot each, and what to do instead.
func (c *combiner) apart(s *analysis.Scope) string {
	var root, outer *analysis.Reference
	for _, r := range slices.Backward(s.Refs) {
		switch {
		case r.Role == analysis.Sharded && r.Nullable == 0:
			root = r
		case r.Role == analysis.Sharded:
			outer = r
		}
	}
	inner := slices.IndexFunc(s.Inside, func(r *analysis.Reference) bool { return r.Role == analysis.Sharded && !slices.Contains(s.Refs, r) })
	switch {
	case root != nil:
		stray := c.strays(root)[0]
		return Away(root, stray, slices.Contains(s.Refs, stray), c.unnamed(stray)+"or run it as a report (docs/reports.md), ")
	case (outer == nil || len(sharded(c)) > 1) && slices.ContainsFunc(s.Refs, func(r *analysis.Reference) bool { return r.Role == analysis.Derived }):
		return "a subquery or CTE in FROM needs rows of several shards together" + readFirst + "or group it by the sharding key" + orReport
	case outer != nil:
		return "each shard would return the rows that have none in " + outer.Label() + "; make the outer join an inner join, or read the two tables separately, or select only groups of the other tables and aggregates of columns of " + outer.Label() + ": COUNT(x), not COUNT(*)"
	case inner >= 0:
		return "a subquery reads " + s.Inside[inner].Label() + ", and each shard has only its own rows" + readFirst + cmp.Or(strings.TrimSuffix(c.unnamed(s.Inside[inner]), ", "), "in place of the subquery")
	}
	return "each shard would return the rows of tables that are not sharded; read them with a separate statement"
}

// sharded returns the sharded tables of the statement.
func sharded(c *combiner) []*analysis.Reference {
	return slices.DeleteFunc(slices.Clone(c.Refs), func(r *analysis.Reference) bool { return r.Role != analysis.Sharded })
}

// unnamed says what to do about a table in a subquery that is selected without an alias: such a subquery is not executed first.
func (c *combiner) unnamed(r *analysis.Reference) string {
	if core := analysis.CoreOf(c.Statement.Query); core != nil {
		for _, item := range core.Items {
			if item.Expr != nil && item.Alias.Name == "" && r.At != nil && r.At.Span.In(item.Span) {
				return "or name the column of the subquery with AS, so that it is executed first if it does not depend on the query around it, "
			}
		}
	}
	return ""
}

// Away says that rows of r, which is joined or in a subquery, may be in another slot than the root's row, and what to do
// instead.
func Away(root, r *analysis.Reference, joined bool, or string) string {
	by := "the sharding key, " + root.Table.Key
	if !strings.EqualFold(root.Table.Key, r.Table.Key) {
		by = fmt.Sprintf("a column that leads to the shards of both: the sharding keys are %s.%s and %s.%s, and Table.Also declares others",
			root.Name, root.Table.Key, r.Name, r.Table.Key)
	}
	if root.Table.Group != "" && strings.EqualFold(root.Table.Group, r.Table.Group) {
		by += ", or by a column that Table.Parents declares"
	}
	if joined {
		return fmt.Sprintf("joined rows of %s and %s may be on different shards; read one of them first and give its values as arguments, or join them by %s", root.Label(), r.Label(), by)
	}
	return fmt.Sprintf("a subquery reads %s, and each shard has only its own rows%s%sor relate it to %s by %s", r.Label(), readFirst, or, root.Label(), by)
}

const (
	orReport  = ", or run it as a report (docs/reports.md)"
	readFirst = "; read it first and give its result as an argument, "
)
