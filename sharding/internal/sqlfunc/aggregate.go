// SPDX-License-Identifier: Apache-2.0

package sqlfunc

import (
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// Aggregates maps the aggregate functions to the combination of their partial results. An average
// is computed from a sum and a count. Those of OnlyShards are computed by a shard that has all rows
// of a group.
var Aggregates = combinations()

func combinations() map[string]merge.Function {
	all := map[string]merge.Function{"count": merge.Count, "sum": merge.Sum, "avg": Average, "min": merge.Min, "max": merge.Max, "any_value": merge.First, "bool_and": merge.Min, "every": merge.Min, "bool_or": merge.Max}
	for name := range Words("group_concat json_arrayagg json_objectagg std stddev stddev_pop stddev_samp variance var_pop var_samp bit_and bit_or bit_xor " +
		"string_agg array_agg json_agg jsonb_agg json_object_agg jsonb_object_agg percentile_cont percentile_disc mode corr covar_pop covar_samp " +
		"regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy range_agg range_intersect_agg xmlagg " +
		"total median json_group_array json_group_object jsonb_group_array jsonb_group_object") {
		all[name] = OnlyShards
	}
	return all
}

// Functions that package merge does not have: an average is computed from a sum and a count, and a function of OnlyShards
// by a shard.
const (
	Average    merge.Function = 100
	OnlyShards merge.Function = 101
)

// IsAverage reports whether an expression is AVG(…).
func IsAverage(e sqlparse.Expr) bool {
	call, ok := e.(*sqlparse.Call)
	return ok && Aggregates[call.Function()] == Average
}

// HasAggregate reports whether an expression contains an aggregate. Aggregates in subqueries do not
// count.
func HasAggregate(e sqlparse.Expr) bool { return sqlparse.Any(e, IsAggregate) }

// HasWindow reports whether an expression contains a window function.
func HasWindow(e sqlparse.Expr) bool {
	return sqlparse.Any(e, func(e sqlparse.Expr) bool {
		call, ok := e.(*sqlparse.Call)
		return ok && call.Over
	})
}

// OfRows reports whether an expression contains an aggregate or a window function.
func OfRows(e sqlparse.Expr) bool { return HasAggregate(e) || HasWindow(e) }

// IsAggregate reports whether an expression is an aggregate, and not a window function.
func IsAggregate(e sqlparse.Expr) bool {
	call, ok := e.(*sqlparse.Call)
	return ok && Aggregates[call.Function()] != 0 && !call.Over && (len(call.Args) <= 1 || Aggregates[call.Function()] == OnlyShards || call.Distinct || call.Odd) // MAX(a, b) of SQLite is none
}

// AggregatedBy returns the arguments of an aggregate, without the condition of FILTER.
func AggregatedBy(call *sqlparse.Call) []sqlparse.Expr {
	if call.Filtered {
		return call.Args[:len(call.Args)-1]
	}
	return call.Args
}
