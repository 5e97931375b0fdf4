package plan

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// value returns how the values of an expression compare that is copied to another place of
// the text, or why that is not known.
func (c *combiner) value(e sqlparse.Expr) (Value, string) {
	if slices.ContainsFunc(c.statement.Params, func(p *sqlparse.Param) bool { return inside(p.Span, e.Bytes()) }) {
		return Value{}, c.text(e) + " has parameters, and is compared over several shards; compute it before" + addKey
	}
	return c.typed(e)
}

// typed returns how the values of columns compare, and those of expressions whose type is
// certain.
func (c *combiner) typed(e sqlparse.Expr) (Value, string) {
	e = bare(e)
	if found, ok := c.columnOf(e); ok {
		if found.Value.Type.Kind == 0 {
			return Value{}, c.unsorted(e, found)
		}
		return found.Value, ""
	}
	if why := c.constantNames(e); why != "" {
		return Value{}, why
	}
	if c.dialect.Engine == merge.SQLite {
		return c.stored(e)
	}
	switch e := e.(type) {
	case *sqlparse.Call:
		return c.function(e)
	case *sqlparse.Operation:
		switch {
		case e.Op <= sqlparse.Like:
			return truth, ""
		case e.Op == sqlparse.Case:
			return c.oneOf(e, c.results(e))
		}
		return c.arithmetic(e)
	}
	return Value{}, c.unsorted(e, Column{})
}

// truth is how 0, 1 and NULL compare.
var truth = Value{Type: merge.Type{Kind: merge.Integer}}

// constantNames refuses names in an expression that mean something else where the
// expression is copied to.
func (c *combiner) constantNames(e sqlparse.Expr) string {
	switch e := bare(e).(type) {
	case *sqlparse.Subquery:
		return "how " + c.text(e) + " compares is not known" + addKey
	case *sqlparse.Column:
		_, known := c.scope.column(e)
		if alias := slices.ContainsFunc(c.core.Items, func(i sqlparse.Item) bool {
			return i.Alias.Name != "" && len(e.Name.Parts) == 1 && strings.EqualFold(i.Alias.Name, e.Name.Parts[0].Name)
		}); alias && !known || c.ambiguous(e) {
			return c.text(e) + " is a column and the alias of something else; give it another alias"
		}
	}
	for _, operand := range sqlparse.Operands(e) {
		if why := c.constantNames(operand); operand != nil && why != "" {
			return why
		}
	}
	return ""
}

// stored returns how results of SQLite compare: by their bytes, where no collation comes
// from a column or is written.
func (c *combiner) stored(e sqlparse.Expr) (Value, string) {
	cast := sqlparse.As(e, sqlparse.Cast) != nil
	_, column := e.(*sqlparse.Column)
	signed := strings.HasPrefix(strings.TrimLeft(c.text(e), "( "), "+") // +x has the collation of x
	if cast || column || signed || aggregated(e) || strings.Contains(strings.ToUpper(c.text(e)), "COLLATE") {
		return Value{}, c.unsorted(e, Column{})
	}
	return Value{Type: merge.Type{Kind: merge.Stored}}, ""
}

// results returns what CASE may return, nothing where that is not certain.
func (c *combiner) results(e *sqlparse.Operation) (all []sqlparse.Expr) {
	branches := e.Operands
	switch before := c.statement.Text[e.From+len("case") : branches[0].Bytes().From]; {
	case strings.TrimSpace(before) == "":
		branches = branches[1:]
	case !strings.EqualFold(strings.TrimSpace(before), "when"):
		return nil
	}
	for i := 1; i < len(branches); i += 2 {
		all = append(all, branches[i])
	}
	if len(branches)%2 == 1 {
		all = append(all, branches[len(branches)-1])
	}
	return all
}

// oneOf returns how values compare each of which is that of one of several expressions.
func (c *combiner) oneOf(e sqlparse.Expr, list []sqlparse.Expr) (of Value, why string) {
	for _, one := range list {
		v := truth
		if l, ok := bare(one).(*sqlparse.Literal); ok {
			switch {
			case l.Kind == sqlparse.Null:
				continue
			case l.Kind == sqlparse.Decimal && !strings.ContainsAny(l.Value, "eE"):
				v.Type.Kind = merge.Decimal
			case l.Kind != sqlparse.Integer || len(l.Value) > 18:
				return of, c.unsorted(e, Column{})
			}
		} else if v, why = c.typed(one); why != "" {
			return of, why
		}
		switch {
		case of.Type.Kind == 0:
			of = v
		case v.number() && of.number():
			of.Type.Kind = max(of.Type.Kind, v.Type.Kind)
		case !v.same(of):
			return of, c.unsorted(e, Column{})
		}
	}
	if of.Type.Kind == 0 || of.As == Number {
		return of, c.unsorted(e, Column{})
	}
	return of, ""
}

// number reports whether values are numbers of MySQL or MariaDB.
func (v Value) number() bool {
	return v.As == Plain && v.Type.Kind >= merge.Integer && v.Type.Kind <= merge.Float
}

// function returns how the results of a function compare.
func (c *combiner) function(call *sqlparse.Call) (Value, string) {
	unknown, name := c.unsorted(call, Column{}), nameOf(call)
	if call.Odd || call.Distinct || call.Star || call.Over || len(call.Args) == 0 || aggregates[name] != 0 {
		return Value{}, unknown
	}
	switch {
	case lengths[name]:
		return truth, ""
	case name == "from_unixtime" && len(call.Args) == 1: // in the time zone that all databases share
		return Value{Type: merge.Type{Kind: merge.Time}}, ""
	case name == "coalesce" || name == "ifnull":
		return c.oneOf(call, call.Args)
	case name == "if" && len(call.Args) == 3:
		return c.oneOf(call, call.Args[1:])
	}
	v, why := c.typed(call.Args[0])
	one := len(call.Args) == 1
	switch {
	case why != "":
		return v, why
	case one && folds[name] && v.As == Weight, one && name == "date" && v.Type.Kind == merge.Time, one && name == "abs" && v.number():
		return v, ""
	case v.Type.Kind != merge.Time:
	case one && clocks[name]:
		return truth, ""
	case len(call.Args) == 2 && name == "date_format" && fixed(call.Args[1]):
		return Value{Type: merge.Type{Kind: merge.Bytes}}, ""
	}
	return Value{}, unknown
}

var (
	folds   = words("lower upper lcase ucase")           // their results have the collation of the column
	clocks  = words("year month day hour minute second") // their results are integers
	lengths = words("length char_length character_length octet_length bit_length instr locate")
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
		v, why := c.typed(operand)
		if why != "" {
			return v, why
		}
		if !v.number() {
			return Value{}, unknown
		}
		kind = max(kind, v.Type.Kind)
		columns++
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
