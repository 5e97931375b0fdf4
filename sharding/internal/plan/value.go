package plan

import (
	"strings"

	"github.com/shardid/shardid/sharding/internal/sqlparse"
)

// value returns how the values of an expression compare, of columns alone, or why that
// is not known.
func (c *combiner) value(e sqlparse.Expr) (Value, string) {
	found, ok := c.columnOf(e)
	if !ok || found.Value.Type.Kind == 0 {
		return Value{}, c.unsorted(e, found)
	}
	return found.Value, ""
}

// least returns how the values of an expression compare for MIN and MAX.
func (c *combiner) least(e sqlparse.Expr) (Value, string) {
	found, ok := c.columnOf(e)
	switch {
	case !ok || found.Value.As != Number:
		return c.value(e)
	case found.Least.Type.Kind == 0:
		return Value{}, c.unsorted(e, found)
	}
	return found.Least, ""
}

// member reports whether an aggregate is the least or the last member of ENUM or SET.
func (c *combiner) member(call *sqlparse.Call) bool {
	if len(call.Args) != 1 || strings.EqualFold(call.Name.Parts[0].Name, "count") {
		return false
	}
	found, _ := c.columnOf(call.Args[0])
	return found.Value.As == Number
}

func (c *combiner) unsorted(e sqlparse.Expr, found Column) string {
	if found.Unsorted != "" {
		return c.text(e) + " is not compared over several shards, as " + found.Unsorted + addKey
	}
	return "how " + c.text(e) + " compares is not known" + addKey
}

// columnOf returns what the database says of the column that an expression is.
func (c *combiner) columnOf(e sqlparse.Expr) (Column, bool) {
	col, ok := c.cores[c.query].column(e)
	if !ok || !col.of.known {
		return Column{}, false
	}
	found, ok := col.of.schema.Columns[col.name]
	return found, ok
}
