// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/splice"
)

// countRows makes the shards return the rows of the only derived table of SELECT COUNT(*) FROM (SELECT …) AS t. They are
// counted after they were combined, unless each shard can count its own.
func countRows(c *combiner) {
	core, of := analysis.CoreOf(c.query), countedQuery(c.query)
	if of == nil || c.Only(of) != nil && c.derived(of) {
		return
	}
	item := core.Items[0]
	switch name := item.Alias.Name; {
	case name != "":
		c.of.Counted = name
	case c.Postgres:
		c.of.Counted = "count"
	default:
		c.of.Counted = c.text(item.Expr)
	}
	c.of.edits = append(c.of.edits, splice.Edit{Span: sqlparse.Span{From: c.query.From, To: of.From}}, splice.Edit{Span: sqlparse.Span{From: of.To, To: c.query.To}})
	c.query = of
}

// countedQuery returns the query whose rows another one counts, and does nothing else with them, or nil.
func countedQuery(q *sqlparse.Query) (of *sqlparse.Query) {
	core := analysis.CoreOf(q)
	if core == nil || len(core.Items) != 1 || len(core.From) != 1 || core.Distinct || core.Where != nil || core.Having != nil || len(core.GroupBy)+len(core.Modifiers)+len(core.Windows)+len(q.OrderBy)+len(q.Locks) > 0 || q.Limit != nil {
		return nil
	}
	call, ok := sqlparse.Bare(core.Items[0].Expr).(*sqlparse.Call)
	if !ok || call.Function() != "count" || call.Over || call.Odd || !call.Star {
		return nil
	}
	switch from, with := core.From[0], q.With; {
	case from.Query != nil && with == nil && !from.Lateral && len(from.Columns) == 0:
		of = from.Query
	case from.Table != nil && with != nil && !with.Recursive && len(with.Tables) == 1 && len(with.Tables[0].Columns) == 0 && len(from.Table.Name.Parts) == 1 && strings.EqualFold(from.Table.Name.Last().Name, with.Tables[0].Name.Name):
		of = with.Tables[0].Query
	}
	if of != nil && of.With == nil && len(of.Locks) == 0 {
		return of
	}
	return nil
}
