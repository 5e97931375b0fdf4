// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// MayBeNumber returns false if the result of the query is known not to consist of single numbers.
func MayBeNumber(b *analysis.Analysis) bool {
	core := analysis.CoreOf(b.Statement.Query)
	if core == nil {
		return b.Statement.Query != nil
	}
	if len(core.Items) != 1 || sqlfunc.HasAggregate(core.Where) { // an aggregate in WHERE belongs to the query around it
		return false
	}
	if core.Items[0].Star {
		return true
	}
	c := &comparer{Analysis: b, integers: new([]int), derives: true}
	c.enter(core)
	v := c.typed(core.Items[0].Expr)
	return c.why != "" || v.Numeric() || v.Type.Kind == merge.Stored
}
