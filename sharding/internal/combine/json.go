// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"regexp"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// The operators of PostgreSQL that lead to the text of a member, or to a member.
var (
	toMember = regexp.MustCompile(`^((->|#>)\s*)*(->>|#>>)$`)
	toJSON   = regexp.MustCompile(`^((->|#>)\s*)+$`)
)

// isMember reports whether an expression is the text of a member of a json or jsonb of PostgreSQL: x->'a'->>'b'.
func (c functions) isMember(e *sqlparse.Operation) bool {
	return toMember.MatchString(strings.TrimSpace(between(e, c.Statement.Text))) && c.isJSON(e.Operands[0])
}

// isJSON reports whether an expression is a json or jsonb of PostgreSQL: a column, or x->'a'.
func (c functions) isJSON(e sqlparse.Expr) bool {
	if o := sqlparse.As(sqlparse.Bare(e), sqlparse.Opaque); o != nil {
		return len(o.Operands) > 0 && toJSON.MatchString(strings.TrimSpace(between(o, c.Statement.Text))) && c.isJSON(o.Operands[0])
	}
	of, ok := c.columnOf(e)
	return ok && of.JSON
}

// isUnquotes reports whether an expression is d->>'$.a' of MySQL.
func isUnquotes(e *sqlparse.Operation, text string) bool {
	return len(e.Operands) == 2 && strings.TrimSpace(between(e, text)) == "->>"
}

// isExtract reports whether an expression is a JSON that MySQL or MariaDB has extracted from another: JSON_EXTRACT(d, '$.a') or
// d->'$.a'.
func (c functions) isExtract(e sqlparse.Expr) bool {
	if call, ok := sqlparse.Bare(e).(*sqlparse.Call); ok {
		return call.Function() == "json_extract" && len(call.Args) > 1
	}
	o := sqlparse.As(sqlparse.Bare(e), sqlparse.Opaque)
	return o != nil && len(o.Operands) == 2 && strings.TrimSpace(between(o, c.Statement.Text)) == "->"
}

// unquoted returns how texts of JSON compare on MySQL and MariaDB: their collation is utf8mb4_bin.
func (c functions) unquoted() catalog.Value {
	length := c.Options.Merge.SortLength
	v := catalog.Value{Type: merge.Type{Kind: merge.Bytes, Pad: "\x00\x00 ", Prefix: length, Most: length}, As: catalog.Weight, Collation: "utf8mb4_bin"}
	if c.Options.Merge.IsMariaDB() { // it compares bytes of texts, and not of their weights of three bytes
		v.Type.Prefix *= 3
	}
	return v
}
