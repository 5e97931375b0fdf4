// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
)

// coresOf returns the SELECTs of a query from left to right, those in parentheses included. It returns nil if a part of it is
// no SELECT, or has an ORDER BY or LIMIT of its own.
func coresOf(q *sqlparse.Query) (all []*sqlparse.Core) {
	for _, part := range q.Parts {
		cores := []*sqlparse.Core{part.Select}
		if n := part.Nested; n != nil && len(q.Parts) > 1 && n.With == nil && len(n.OrderBy)+len(n.Locks) == 0 && n.Limit == nil {
			cores = coresOf(n)
		}
		if len(cores) == 0 || cores[0] == nil {
			return nil
		}
		all = append(all, cores...)
	}
	return all
}

// unites reports whether a query is one SELECT, or several of whose rows all are returned, or each is returned once.
func unites(q *sqlparse.Query) bool {
	return !slices.ContainsFunc(q.Parts, func(p *sqlparse.Part) bool {
		return p.Op > sqlparse.Union || p.Nested != nil && len(p.Nested.Parts) > 1
	}) &&
		slices.IsSortedFunc(q.Parts[1:], func(a, b *sqlparse.Part) int { return int(a.Op) - int(b.Op) })
}

// apartRows reports whether no two shards have equal rows of SELECTs, because the sharding key is selected. Then each shard
// computes DISTINCT, UNION, INTERSECT and EXCEPT of its own, and it need not be known how they compare. A hidden weight for
// ORDER BY must not make two rows of equal texts, such as 'a' and 'a '.
func apartRows(c *combiner) bool {
	if several := len(c.cores) > 1; several && !keysInOnePlace(c) || !several && !c.computedPerShard(c.core, nil) {
		return false
	}
	c.derives = c.derives || len(c.cores) > 1 && slices.ContainsFunc(c.cores, analysis.IsGrouped)
	c.enter(c.cores[0])
	return !slices.ContainsFunc(orders(c.query), func(o sqlparse.Order) bool {
		e := c.ordered(o.Expr)
		switch at := c.place(e); {
		case at >= 0:
			return c.result(at).Splits()
		case isStarred(c, e):
			return c.typed(e).Splits()
		}
		return true
	})
}

// keysInOnePlace reports whether one column of the result is the sharding key of a table in each SELECT. Such tables are in
// one group, so equal keys are on one shard.
func keysInOnePlace(c *combiner) bool {
	if slices.ContainsFunc(c.cores, analysis.HasStar) {
		return false
	}
	for at := range c.cores[0].Items {
		if !slices.ContainsFunc(c.cores, func(core *sqlparse.Core) bool {
			return at >= len(core.Items) || !c.isShardingKey(c.Scopes[core], core.Items[at].Expr)
		}) {
			return true
		}
	}
	return false
}

// isShardingKey reports whether an expression is a sharding key that is never NULL.
func (c *combiner) isShardingKey(s *analysis.Scope, e sqlparse.Expr) bool {
	col, ok := s.Column(e)
	return ok && col.Of.Role == analysis.Sharded && strings.EqualFold(col.Name, col.Of.Table.Key) && c.Keyed(s, e)
}
