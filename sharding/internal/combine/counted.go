// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"cmp"
	"regexp"
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
	c.combination.Counted = countsAs(c, core.Items[0])
	if c.combination.Counted == "" || !isCountable(c, core, of) {
		c.refuse("no shard checks what counts combined rows; write SELECT COUNT(*) FROM (SELECT …) AS t, with another name for each column of the derived table")
		return
	}
	c.combination.edits = append(c.combination.edits, splice.Edit{Span: sqlparse.Span{From: c.query.From, To: of.From}}, splice.Edit{Span: sqlparse.Span{From: of.To, To: c.query.To}})
	c.query = of
}

var (
	plainCount = regexp.MustCompile(`(?i)^count\(\s*\*\s*\)$`)
	plainName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
)

// countsAs returns the name of the column of COUNT(*), "" if that is uncertain.
func countsAs(c *combiner, item sqlparse.Item) string {
	alias, text := item.Alias.Name, item.Expr.Bytes().Of(c.Statement.Text)
	switch {
	case alias != "":
		if !plainName.MatchString(alias) || c.Postgres && alias != strings.ToLower(alias) {
			return ""
		}
		return alias
	case c.Postgres:
		return "count"
	case !plainCount.MatchString(text): // MySQL and MariaDB refuse a space before the parenthesis
		return ""
	}
	return text
}

// isCountable reports whether one table would count the rows of a query, and not refuse the names in it.
func isCountable(c *combiner, core *sqlparse.Core, of *sqlparse.Query) bool {
	switch table := core.From[0].Table; {
	case table == nil && !c.SQLite && core.From[0].Alias.Name == "":
		return false
	case table != nil && c.RefersTo(table.Name.Last().Name): // SQLite takes the name for the CTE itself
		return false
	case !c.MySQL || of.Parts[0].Select == nil:
		return true
	}
	names := map[string]bool{}
	for _, item := range of.Parts[0].Select.Items {
		for _, name := range namesOf(c, of.Parts[0].Select, item) {
			if name = strings.ToLower(name); name == "" || names[name] {
				return false
			}
			names[name] = true
		}
	}
	return true
}

// namesOf returns the names of the columns of an item, among them "" if some are unknown.
func namesOf(c *combiner, core *sqlparse.Core, item sqlparse.Item) (names []string) {
	if item.Star {
		for _, r := range c.Scopes[core].Starred(item) {
			if !r.Known {
				return []string{""}
			}
			names = append(names, r.Schema.Visible()...)
		}
		return names
	}
	return []string{cmp.Or(analysis.ItemName(item), item.Expr.Bytes().Of(c.Statement.Text))}
}

// countedQuery returns the query whose rows another one counts, and does nothing else with them, or nil.
func countedQuery(q *sqlparse.Query) (of *sqlparse.Query) {
	core := analysis.CoreOf(q)
	if core == nil || len(core.Items) != 1 || len(core.From) != 1 || core.Distinct || core.Where != nil || core.Having != nil || len(core.GroupBy)+len(core.Modifiers)+len(core.Windows)+len(q.OrderBy)+len(q.Locks) > 0 || q.Limit != nil {
		return nil
	}
	call, ok := core.Items[0].Expr.(*sqlparse.Call)
	if !ok || call.Function() != "count" || call.Over || call.Odd || !call.Star {
		return nil
	}
	return analysis.DerivedQuery(q)
}
