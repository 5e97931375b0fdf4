// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// functions determines how the results of functions and operators compare.
type functions struct{ *comparer }

// call returns how the results of a function compare.
func (c functions) call(call *sqlparse.Call) Value {
	name, one := nameOf(call), len(call.Args) == 1
	switch {
	case call.Over:
		return whole
	case c.derives && aggregates[name] != 0:
		return c.selects(call)
	case name == "extract":
		return c.extracted(call)
	case odd(call) || aggregates[name] != 0:
		return c.unknown(call)
	case rounds[name]:
		return c.rounded(call)
	case name == "to_char" && len(call.Args) == 2:
		return c.formatted(call)
	case joins[name] && c.postgres:
		return c.joined(call, call.Args)
	case name == "hex": // digits and letters of one case, which every collation sorts alike
		return ofKind(merge.Bytes)
	case integers[name], name == "crc32" && c.mysql:
		return whole
	case name == "mod" && len(call.Args) == 2:
		return c.arithmetic(call, call.Args)
	case name == "from_unixtime" && one: // in the time zone that all databases share
		return ofKind(merge.Time)
	case name == "coalesce" || name == "ifnull":
		return c.oneOf(call, call.Args)
	case name == "if" && len(call.Args) == 3:
		return c.oneOf(call, call.Args[1:])
	}
	args := call.Args
	if (name == "date_trunc" || name == "date_part") && len(args) == 2 { // of PostgreSQL, which names the unit first
		args = []sqlparse.Expr{args[1], args[0]}
	}
	if v := resultOf(name, c.typed(args[0]), args[1:]); v.Type.Kind != 0 {
		return v
	}
	return c.unknown(call)
}

var fromColumn = regexp.MustCompile(`(?i)^extract\s*\(\s+from\s+\)$`)

// extracted returns how the results of EXTRACT(YEAR FROM x) compare.
func (c functions) extracted(call *sqlparse.Call) Value {
	if len(call.Args) != 2 || !fromColumn.MatchString(between(call, c.statement.Text)) || c.typed(call.Args[1]).Type.Kind != merge.Time {
		return c.unknown(call)
	}
	if c.postgres {
		return ofKind(merge.Decimal)
	}
	return whole
}

// rounded returns how the results of ROUND and its like compare.
func (c functions) rounded(call *sqlparse.Call) Value {
	v := c.typed(call.Args[0])
	digits := len(call.Args) > 1
	if digits {
		if _, whole := literal(call.Args[1], sqlparse.Integer); !whole || len(call.Args) > 2 {
			return c.unknown(call)
		}
	}
	switch {
	case !v.number():
		return c.unknown(call)
	case !c.postgres || v.Type.Kind != merge.Integer:
	case digits:
		return ofKind(merge.Decimal)
	default:
		return ofKind(merge.Float)
	}
	return v
}

// The formats of TO_CHAR and of DATE_FORMAT that write digits at fixed positions: such texts compare by
// their bytes, whatever the collation is, unless a space at the end is padding.
var (
	toChar     = regexp.MustCompile(`^((I?YYYY|MM|DDD?|HH24|HH12|HH|MI|SS|MS|US|IW|WW|Q)[-/.: ]?)+$`)
	dateFormat = regexp.MustCompile(`^([-/.: ]*%[YmdHis])+([-/.: ]*[-/.:])?$`)
)

func hasFormat(e sqlparse.Expr, formats *regexp.Regexp) bool {
	format, ok := literal(e, sqlparse.Text)
	return ok && formats.MatchString(format)
}

// formatted returns how the results of TO_CHAR of PostgreSQL compare.
func (c functions) formatted(call *sqlparse.Call) Value {
	v := c.joined(call, call.Args)
	if hasFormat(call.Args[1], toChar) && c.typed(call.Args[0]).Type.Kind == merge.Time {
		v.Unordered = ""
	}
	return v
}

// joined returns how texts of PostgreSQL compare that are made of other values. The default
// collation of a database is deterministic: texts are equal if their bytes are.
func (c functions) joined(e sqlparse.Expr, of []sqlparse.Expr) Value {
	texts, order := 0, ""
	for _, one := range of {
		if !computed(one) {
			continue
		}
		v := c.typed(one)
		switch {
		case v.Type.Kind == 0:
			return c.unknown(e)
		case v.isText():
			texts, order = texts+1, cmp.Or(order, v.Unordered)
		}
	}
	if texts == 0 {
		order = "the collation of the database may not be C; write COLLATE \"C\" behind it"
	}
	return Value{Type: merge.Type{Kind: merge.Bytes}, Texts: true, Unordered: order}
}

var onlyBars = regexp.MustCompile(`^(\s*\|\|\s*)+$`)

// opaque returns how the values of -x compare, and on PostgreSQL those of texts with || between
// them.
func (c functions) opaque(e *sqlparse.Operation) Value {
	if of := negated(e, c.statement.Text); of != nil {
		if v := c.typed(of); v.number() {
			return v
		}
	}
	if c.postgres && onlyBars.MatchString(between(e, c.statement.Text)) && slices.ContainsFunc(e.Operands, func(of sqlparse.Expr) bool { return computed(of) && c.typed(of).isText() }) {
		return c.joined(e, e.Operands)
	}
	return c.unknown(e)
}

// negated returns the x of -x, or nil.
func negated(e sqlparse.Expr, text string) sqlparse.Expr {
	o := sqlparse.As(bare(e), sqlparse.Opaque)
	if o == nil || len(o.Operands) != 1 || strings.TrimSpace(between(o, text)) != "-" {
		return nil
	}
	return o.Operands[0]
}

// between returns the text of an expression without its operands.
func between(e sqlparse.Expr, text string) string {
	var parts strings.Builder
	from := e.Bytes().From
	for _, operand := range sqlparse.Operands(e) {
		parts.WriteString(text[from:operand.Bytes().From])
		from = operand.Bytes().To
	}
	return parts.String() + text[from:e.Bytes().To]
}

// resultOf returns how the results of a function of one value compare, which may have more
// arguments. It returns the zero Value if that is unknown.
func resultOf(name string, v Value, more []sqlparse.Expr) Value {
	time := v.Type.Kind == merge.Time
	if parts[name] && v.isText() && !slices.ContainsFunc(more, computed) {
		return v
	}
	switch len(more) {
	case 0:
		switch {
		case folds[name] && v.isText(), (name == "date" || name == "last_day") && time, name == "abs" && v.number():
			return v
		case time && clocks[name]:
			return whole
		}
	case 1:
		switch {
		case time && name == "date_trunc":
			return v
		case time && name == "date_part":
			return ofKind(merge.Float)
		case time && name == "yearweek":
			return whole
		case time && name == "date_format" && hasFormat(more[0], dateFormat):
			return ofKind(merge.Bytes)
		}
	}
	return Value{}
}

// odd reports whether a call has another form than f(x, …).
func odd(call *sqlparse.Call) bool {
	return call.Odd || call.Distinct || call.Star || len(call.Args) == 0
}

// results returns the possible results of CASE, none if that is uncertain.
func (c functions) results(e *sqlparse.Operation) (all []sqlparse.Expr) {
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

const labelOrder = "only the collation of a connection knows the order of literal texts; order by numbers"

// labels returns the number of different literal texts if all expressions are literal texts or NULL.
// They compare by their bytes, because no collation treats two of them as equal; their order depends
// on the collation. It returns 0 for other expressions.
func labels(list []sqlparse.Expr) int {
	texts := map[string]string{}
	for _, one := range list {
		if isNull(one) {
			continue
		}
		text, isText := literal(one, sqlparse.Text)
		like, known := folded(text)
		if other, twice := texts[like]; !isText || !known && len(list) > 1 || twice && other != text {
			return 0
		}
		texts[like] = text
	}
	return len(texts)
}

// oneOf returns how values compare each of which is the value of one of several expressions. A
// literal text gets the collation of a column beside it. PostgreSQL gives a parameter the type of
// the values beside it.
func (c functions) oneOf(e sqlparse.Expr, list []sqlparse.Expr) (of Value) {
	if labels(list) > 0 {
		return Value{Type: merge.Type{Kind: merge.Bytes}, Texts: c.postgres, Unordered: labelOrder}
	}
	text := false
	var given []int
	for _, one := range list {
		if p, isParam := bare(one).(*sqlparse.Param); isParam && c.postgres {
			given = append(given, p.Index)
			continue
		}
		v, ok := numeral(one, c.integers)
		switch l, isLiteral := bare(one).(*sqlparse.Literal); {
		case isNull(one):
			continue
		case isLiteral && l.Kind == sqlparse.Text && ascii(l.Value):
			text = true
			continue
		case isLiteral && !ok:
			return c.unknown(e)
		case !isLiteral && !ok:
			v = c.typed(one)
		}
		switch {
		case of.Type.Kind == 0:
			of = v
		case v.numeric() && of.numeric():
			of.Type.Kind, of.Wide, of.As = max(of.Type.Kind, v.Type.Kind), of.Wide || v.Wide, max(of.As, v.As)
		case !v.same(of):
			return c.unknown(e)
		}
	}
	switch {
	case of.Type.Kind == 0 || of.As == Number || text && of.As != Weight && !of.isText():
		return c.unknown(e)
	case of.number():
		*c.integers = append(*c.integers, given...)
	case len(given) > 0 && !of.isText():
		return c.unknown(e)
	}
	return of
}
