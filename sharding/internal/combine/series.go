// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// seriesOf returns the generate_series of PostgreSQL in FROM whose column an expression is, or nil.
func seriesOf(c *comparer, e *sqlparse.Column) *sqlparse.Call {
	if !c.Postgres {
		return nil
	}
	isIts := func(s sqlparse.Source) bool {
		if s.Function == nil || s.Function.Function() != "generate_series" || s.Ordinal || len(s.Columns) > 1 || len(e.Parts) > 2 {
			return false
		}
		name := s.Alias.Name
		if len(s.Columns) == 1 {
			name = s.Columns[0].Name
		}
		if !strings.EqualFold(e.Last().Name, name) {
			return false
		}
		if len(e.Parts) == 2 {
			return strings.EqualFold(e.Parts[0].Name, s.Alias.Name)
		}
		return !slices.ContainsFunc(c.scope.Refs, func(r *analysis.Reference) bool {
			has, certain := r.Has(strings.ToLower(name))
			return (has || !certain) && !strings.EqualFold(r.Name, s.Alias.Name)
		})
	}
	sources := SourcesIn(c.core.From)
	at := slices.IndexFunc(sources, isIts)
	if at < 0 {
		return nil
	}
	return sources[at].Function
}

// series returns how values of generate_series(from, to) and generate_series(from, to, step) compare. PostgreSQL gives a literal text
// the type of the other bound.
func series(c functions, e sqlparse.Expr, call *sqlparse.Call) catalog.Value {
	isTime := func(e sqlparse.Expr) bool { return c.typed(e).Type.Kind == merge.Time }
	switch n := len(call.Args); {
	case n < 2 || n > 3:
	case isInt(call.Args[0]) && isInt(call.Args[1]) && (n == 2 || isInt(call.Args[2])):
		return whole
	case n == 3 && (isText(call.Args[0]) || isTime(call.Args[0])) && (isText(call.Args[1]) || isTime(call.Args[1])) && !(isText(call.Args[0]) && isText(call.Args[1])):
		return catalog.OfKind(merge.Time)
	}
	return c.unknown(e)
}

// isInt reports whether an expression is a literal that is an integer for PostgreSQL and not a bigint, or is computed from such.
func isInt(e sqlparse.Expr) bool {
	v, ok := numeral(e, nil)
	return ok && v.Type.Kind == merge.Integer && !v.Wide
}
