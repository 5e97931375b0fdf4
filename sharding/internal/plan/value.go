package plan

import (
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// value returns how the values of an expression compare, or why that is not known:
// of columns, and of functions and sums of columns and literals whose type is certain.
func (c *combiner) value(e sqlparse.Expr) (Value, string) {
	switch e := bare(e).(type) {
	case *sqlparse.Call:
		return c.function(e)
	case *sqlparse.Operation:
		return c.arithmetic(e)
	}
	found, ok := c.columnOf(e)
	if !ok || found.Value.Type.Kind == 0 {
		return Value{}, c.unsorted(e, found)
	}
	return found.Value, ""
}

// inner returns how the values of a column in an expression compare.
func (c *combiner) inner(e sqlparse.Expr) (Value, string) {
	if c.ambiguous(e) {
		return Value{}, c.text(e) + " is a column and the alias of something else; give it another alias"
	}
	return c.value(e)
}

// function returns how the results of a function of one column compare.
func (c *combiner) function(call *sqlparse.Call) (Value, string) {
	unknown, name := c.unsorted(call, Column{}), nameOf(call)
	if call.Odd || call.Distinct || call.Star || call.Over || len(call.Args) == 0 || aggregates[name] != 0 {
		return Value{}, unknown
	}
	v, why := c.inner(call.Args[0])
	one := len(call.Args) == 1
	switch {
	case why != "":
		return v, why
	case v.Type.Kind == merge.Stored && one && (folds[name] || name == "date"):
		return Value{Type: merge.Type{Kind: merge.Stored}}, "" // SQLite compares results by their bytes
	case one && folds[name] && v.As == Weight, one && name == "date" && v.Type.Kind == merge.Time:
		return v, ""
	case v.Type.Kind != merge.Time:
	case one && clocks[name]:
		return Value{Type: merge.Type{Kind: merge.Integer}}, ""
	case len(call.Args) == 2 && name == "date_format" && fixed(call.Args[1]):
		return Value{Type: merge.Type{Kind: merge.Bytes}}, ""
	}
	return Value{}, unknown
}

var (
	folds  = words("lower upper lcase ucase")           // their results have the collation of the column
	clocks = words("year month day hour minute second") // their results are integers
)

// fixed reports whether an expression is a format of DATE_FORMAT that makes digits in
// fixed places: such texts compare by their bytes, whatever the collation is.
func fixed(e sqlparse.Expr) bool {
	format, ok := e.(*sqlparse.Literal)
	if !ok || format.Kind != sqlparse.Text {
		return false
	}
	parts := strings.Split(format.Value, "%")
	for i, part := range parts[1:] {
		if part == "" || !strings.ContainsRune("YmdHis", rune(part[0])) {
			return false
		}
		parts[i+1] = part[1:]
	}
	return len(parts) > 1 && strings.Trim(strings.Join(parts, ""), "-/.: ") == "" && !strings.HasSuffix(format.Value, " ")
}

// arithmetic returns how sums, differences and products of columns and integers
// compare.
func (c *combiner) arithmetic(e *sqlparse.Operation) (Value, string) {
	unknown := c.unsorted(e, Column{})
	if e.Op != sqlparse.Add && e.Op != sqlparse.Sub && e.Op != sqlparse.Mul {
		return Value{}, unknown
	}
	kind, columns := merge.Integer, 0
	for _, operand := range e.Operands {
		if l, ok := bare(operand).(*sqlparse.Literal); ok {
			if l.Kind != sqlparse.Integer || len(l.Value) > 18 {
				return Value{}, unknown
			}
			continue
		}
		v, why := c.inner(operand)
		if why != "" {
			return v, why
		}
		switch v.Type.Kind {
		case merge.Stored, merge.Integer, merge.Decimal, merge.Float:
			kind = max(kind, v.Type.Kind) // Stored is of SQLite, which has no other kind
		default:
			return Value{}, unknown
		}
		if columns++; v.As != Plain {
			return Value{}, unknown
		}
	}
	if columns == 0 {
		return Value{}, unknown
	}
	return Value{Type: merge.Type{Kind: kind}}, ""
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

// member says why an aggregate is not sorted by: the least or the last member of ENUM or
// SET, or any of several texts that NOCASE or RTRIM takes for equal.
func (c *combiner) member(call *sqlparse.Call) string {
	if len(call.Args) != 1 || aggregates[nameOf(call)] == merge.Count {
		return ""
	}
	found, _ := c.columnOf(call.Args[0])
	switch {
	case found.Value.As == Number:
		return c.text(call) + " is by text, and servers sort by the place of a member; select it without ORDER BY"
	case found.Value.Type.Collation != merge.Binary:
		return c.text(call) + " may be any of several equal texts, and SQLite sorts it by bytes; select it without ORDER BY"
	}
	return ""
}

func (c *combiner) unsorted(e sqlparse.Expr, found Column) string {
	if found.Unsorted != "" {
		return c.text(e) + " is not compared over several shards, as " + found.Unsorted + addKey
	}
	return "how " + c.text(e) + " compares is not known" + addKey
}

// columnOf returns what the database says of the column that an expression is, or what
// is known of the expression that a derived table selects for it.
func (c *combiner) columnOf(e sqlparse.Expr) (Column, bool) {
	col, ok := c.scope.column(e)
	if !ok || !col.of.known {
		return Column{}, false
	}
	found, ok := col.of.schema.Columns[col.name]
	if q := col.of.query; q != nil && found.Value.Type.Kind == 0 {
		inner := *c
		inner.core, inner.scope = q.Parts[0].Select, c.only(q)
		for _, item := range inner.core.Items {
			if strings.EqualFold(item.Alias.Name, col.name) {
				found.Value, found.Unsorted = inner.selects(item.Expr)
			}
		}
	}
	return found, ok
}

// selects returns how the values of an expression compare that a derived table selects.
func (c *combiner) selects(e sqlparse.Expr) (Value, string) {
	call, ok := bare(e).(*sqlparse.Call)
	function := merge.Function(0)
	if ok && aggregated(call) {
		function = aggregates[nameOf(call)]
	}
	switch {
	case function == 0:
		return c.value(e)
	case function == merge.Count && c.dialect.Engine == merge.SQLite:
		return Value{Type: merge.Type{Kind: merge.Stored}}, ""
	case function == merge.Count:
		return Value{Type: merge.Type{Kind: merge.Integer}}, ""
	case function == merge.Sum || function == average:
		return c.summand(call.Args[0])
	}
	v, why := c.least(call.Args[0])
	v.Type.Collation = merge.Binary
	return v, why
}
