// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"regexp"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

var (
	collate  = regexp.MustCompile(`(?i)^\s+collate\s+((?:(?:"[^"]+"|\w+)\s*\.\s*)?(?:"[^"]+"|\w+))$`)
	bytewise = regexp.MustCompile(`^(?i:pg_catalog\s*\.\s*)?"(?:C|POSIX)"$`)
)

// collated returns the x of x COLLATE name, and the name as it is written, "" for any other expression.
func collated(e sqlparse.Expr, text string) (x sqlparse.Expr, name string) {
	o := sqlparse.As(e, sqlparse.Opaque)
	if o == nil || len(o.Operands) == 0 || o.Operands[0].Bytes().From != o.From {
		return nil, ""
	}
	found := collate.FindStringSubmatch(text[o.Operands[0].Bytes().To:o.To])
	if found == nil {
		return nil, ""
	}
	return o.Operands[0], found[1]
}

// isTextOf reports whether an expression of PostgreSQL casts a value to a text: with a collation of its own the text compares so, whatever
// the type of the value and its collation are. An aggregate has no value of its own, but for groups on one shard, and a system column has others
// on each shard.
func isTextOf(c *comparer, e sqlparse.Expr) bool {
	cast := sqlparse.As(sqlparse.Bare(e), sqlparse.Cast)
	return cast != nil && isTextType(cast, c.Statement.Text) && isOfRow(cast) && !sqlparse.Any(cast, func(e sqlparse.Expr) bool {
		column, is := e.(*sqlparse.Column)
		if !is || !analysis.SystemColumns[strings.ToLower(column.Last().Name)] {
			return false
		}
		_, isOwn := c.columnOf(column)
		return !isOwn
	})
}

// isOfRow reports whether an expression has neither aggregates nor window functions nor subqueries.
func isOfRow(e sqlparse.Expr) bool {
	return !sqlparse.Any(e, func(e sqlparse.Expr) bool {
		call, isCall := e.(*sqlparse.Call)
		_, isQuery := e.(*sqlparse.Subquery)
		return isQuery || isCall && (call.Over || sqlfunc.IsAggregate(e))
	})
}

// isCollated reports whether an expression of PostgreSQL is x COLLATE name, and the order of the texts is not that of their bytes.
func isCollated(c *comparer, e sqlparse.Expr) bool {
	of, collation := collated(sqlparse.Bare(e), c.Statement.Text)
	return c.Postgres && of != nil && !isBytewise(c, collation)
}

// isBytewise reports whether a collation of PostgreSQL orders texts by their bytes as the driver reads them.
func isBytewise(c *comparer, collation string) bool {
	return !c.Options.Merge.Recoded && bytewise.MatchString(collation)
}
