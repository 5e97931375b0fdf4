// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// asksExistence reports whether a SELECT consists of EXISTS or NOT EXISTS over rows that the shards compute separately:
// such rows exist if they exist on any shard.
func (c *combiner) asksExistence() bool {
	if len(c.cores) > 1 || len(c.core.From) > 0 || c.core.Where != nil || len(c.core.Items) != 1 || len(c.query.OrderBy) > 0 || c.query.Limit != nil || c.core.Distinct {
		return false
	}
	exists, _ := existence(c.core.Items[0].Expr)
	if exists == nil {
		return false
	}
	q := exists.Operands[0].(*sqlparse.Subquery).Query // the parser allows nothing else there
	if q.Limit != nil && q.Limit.Offset != nil {       // LIMIT keeps a row of a shard if it keeps one of all
		c.refuse("OFFSET in EXISTS skips rows of all shards together, not of each shard" + AddKey)
	}
	return c.Only(q) != nil && q.With == nil && c.computedPerShard(q.Parts[0].Select, q.OrderBy)
}

// existence returns the operation if an expression is EXISTS or NOT EXISTS, and which of both.
func existence(e sqlparse.Expr) (exists *sqlparse.Operation, not bool) {
	e = sqlparse.Bare(e)
	if o := sqlparse.As(e, sqlparse.Not); o != nil {
		e, not = sqlparse.Bare(o.Operands[0]), true
	}
	return sqlparse.As(e, sqlparse.Exists), not
}

// anyExists combines what the shards return for a SELECT that asks: rows exist if one of them has some.
func anyExists(c *combiner) *grouping {
	found := merge.Aggregate{Function: merge.Max, By: merge.Key{Type: merge.Type{Kind: merge.Integer}}}
	if _, not := existence(c.core.Items[0].Expr); not {
		found.Function = merge.Min
	}
	return &grouping{Group: Group{Columns: []merge.Aggregate{found}, Shown: 1}}
}
