// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// functions determines how the results of functions and operators compare.
type functions struct{ *comparer }

// call returns how the results of a function compare that is neither a window function nor an aggregate.
func (c functions) call(call *sqlparse.Call) catalog.Value {
	name := call.Function()
	switch {
	case name == "extract":
		return c.extracted(call)
	case odd(call) || sqlfunc.Aggregates[name] != 0:
		return c.unknown(call)
	case sqlfunc.Rounds[name]:
		return c.rounded(call)
	case sqlfunc.Joins[name] && c.Postgres:
		return c.joined(call, call.Args)
	case name == "json_unquote" && c.MySQL && c.isExtract(call.Args[0]):
		return c.unquoted()
	case name == "hex", sqlfunc.Digests[name] && c.MySQL: // digits and letters of one case, which every collation sorts alike
		return catalog.OfKind(merge.Bytes)
	case sqlfunc.Integers[name], name == "crc32" && c.MySQL:
		return whole
	}
	return c.ofArguments(call, name)
}

// operation returns how the results of an operator compare, and those of CASE and of casts.
func (c functions) operation(e *sqlparse.Operation) catalog.Value {
	switch {
	case e.Op <= sqlparse.Like: // true, false and NULL
		return whole
	case e.Op == sqlparse.Case:
		_, results := branches(e, c.Statement.Text)
		return c.oneOf(e, results)
	case e.Op == sqlparse.Cast && c.Postgres:
		return c.castOfPostgres(e)
	case e.Op == sqlparse.Cast:
		return c.cast(e)
	case e.Op == sqlparse.Opaque:
		return c.opaque(e)
	case (e.Op == sqlparse.Add || e.Op == sqlparse.Sub) && c.shifted(e.Operands):
		return catalog.OfKind(merge.Time)
	case e.Op == sqlparse.Add, e.Op == sqlparse.Sub, e.Op == sqlparse.Mul, e.Op == sqlparse.Mod:
		return c.arithmetic(e, e.Operands)
	case e.Op == sqlparse.Div:
		return c.quotient(e)
	}
	return c.unknown(e)
}

// ofArguments returns how the results of a function compare that depend on its arguments.
func (c functions) ofArguments(call *sqlparse.Call, name string) catalog.Value {
	args := call.Args
	switch n := len(args); {
	case name == "to_char" && n == 2:
		return c.formatted(call)
	case strings.HasPrefix(name, "concat") && c.MySQL:
		return c.concatenated(call, args)
	case name == "greatest" || name == "least":
		return c.extreme(call)
	case name == "nullif" && n == 2:
		return c.unless(call)
	case name == "mod" && n == 2:
		return c.arithmetic(call, args)
	case name == "from_unixtime" && n == 1: // in the time zone that all databases share
		return catalog.OfKind(merge.Time)
	case name == "coalesce" || name == "ifnull":
		return c.oneOf(call, args)
	case name == "if" && n == 3:
		return c.oneOf(call, args[1:])
	case name == "time" && n == 1 && c.MySQL && c.typed(args[0]).IsTime():
		return catalog.OfKind(merge.Duration)
	case (name == "date_trunc" || name == "date_part") && n == 2: // of PostgreSQL, which names the unit first
		args = []sqlparse.Expr{args[1], args[0]}
	case name == "date_trunc" && n == 3 && !computed(args[2]): // in a time zone
		args = []sqlparse.Expr{args[1], args[0]}
	}
	if v := resultOf(name, c.typed(args[0]), args[1:]); v.Type.Kind != 0 {
		return v
	}
	return c.unknown(call)
}

// The texts of EXTRACT between the part and the column or columns.
var (
	fromColumn  = regexp.MustCompile(`(?i)^extract\s*\(\s+from\s+\)$`)
	fromColumns = regexp.MustCompile(`(?i)^extract\s*\(\s+from\s+\(?\s*-\s*\)?\s*\)$`)
	// inZone is the text behind the column in EXTRACT(HOUR FROM x AT TIME ZONE 'UTC'), whose words the parser takes for columns.
	inZone = regexp.MustCompile(`(?i)^\s+at\s+time\s+zone\s+'[^']*'\s*\)?\s*\)$`)
)

// extracted returns how the results of EXTRACT(YEAR FROM x) compare, and on PostgreSQL those of the difference of two
// times.
func (c functions) extracted(call *sqlparse.Call) catalog.Value {
	times, text := call.Args[min(1, len(call.Args)):], between(call, c.Statement.Text)
	if c.Postgres && len(times) > 1 && inZone.MatchString(c.Statement.Text[times[0].Bytes().To:call.To]) {
		times = times[:1]
		before := c.Statement.Text[call.From:call.Args[0].Bytes().From] + c.Statement.Text[call.Args[0].Bytes().To:times[0].Bytes().From]
		text = strings.TrimRight(before, "(") + ")"
	}
	switch {
	case len(times) == 1 && fromColumn.MatchString(text), c.Postgres && len(times) == 2 && fromColumns.MatchString(text):
	default:
		return c.unknown(call)
	}
	if slices.ContainsFunc(times, func(of sqlparse.Expr) bool { return c.typed(of).Type.Kind != merge.Time }) {
		return c.unknown(call)
	}
	if c.Postgres {
		return catalog.OfKind(merge.Decimal)
	}
	return whole
}

// rounded returns how the results of ROUND and its like compare.
func (c functions) rounded(call *sqlparse.Call) catalog.Value {
	v := c.typed(call.Args[0])
	digits := len(call.Args) > 1
	switch {
	case !v.IsNumber(), digits && !isInteger(call.Args[1]), len(call.Args) > 2:
		return c.unknown(call)
	case !c.Postgres || v.Type.Kind != merge.Integer:
		v.Unordered = "" // all digits are returned
	case digits:
		return catalog.OfKind(merge.Decimal)
	default:
		return catalog.OfKind(merge.Float)
	}
	return v
}

// The formats of TO_CHAR and of DATE_FORMAT that write digits at fixed positions: such texts compare by
// their bytes, whatever the collation is, unless a space at the end is padding.
var (
	toChar = regexp.MustCompile(`^((I?YYYY|MM|DDD?|HH24|HH12|HH|MI|SS|MS|US|IW|WW|Q)[-/.: ]?)+$`)
	// dateFormat writes numbers of one length, between texts that are always the same.
	dateFormat = regexp.MustCompile(`^([-/.:_ A-Za-z0-9]*%[YmdHisuUvVxX])+([-/.:_ A-Za-z0-9]*[-/.:_A-Za-z0-9])?$`)
	// nameFormat also writes names, and numbers of one or two digits.
	nameFormat = regexp.MustCompile(`^([-/.:, ]*%[YymdHhIlkisSfWMabcejpTr])+([-/.:, ]*[-/.:])?$`)
)

// ofConnection is how texts such as the names of days compare, which have the collation of a
// connection, and are equal if their bytes are.
var ofConnection = catalog.Value{Type: merge.Type{Kind: merge.Bytes}, Unordered: labelOrder}

func hasFormat(e sqlparse.Expr, formats *regexp.Regexp) bool {
	format, ok := analysis.Literal(e, sqlparse.Text)
	return ok && formats.MatchString(format)
}

// formatted returns how the results of TO_CHAR of PostgreSQL compare.
func (c functions) formatted(call *sqlparse.Call) catalog.Value {
	v := c.joined(call, call.Args)
	if hasFormat(call.Args[1], toChar) && c.typed(call.Args[0]).Type.Kind == merge.Time {
		v.Unordered, v.Behind = "", ""
	}
	return v
}

// joined returns how texts of PostgreSQL compare that are made of other values. The default
// collation of a database is deterministic: texts are equal if their bytes are.
func (c functions) joined(e sqlparse.Expr, of []sqlparse.Expr) catalog.Value {
	texts, order, behind := 0, "", ""
	for _, one := range of {
		if !computed(one) {
			continue
		}
		v := c.typed(one)
		switch {
		case v.Type.Kind == 0:
			return c.unknown(e)
		case v.IsText():
			if texts > 0 && v.Behind != behind { // they have no common collation, or one of them prevails
				v.Behind = ""
			}
			texts, order, behind = texts+1, cmp.Or(order, v.Unordered), v.Behind
		}
	}
	if texts == 0 {
		return ofDatabase
	}
	return catalog.Value{Type: merge.Type{Kind: merge.Bytes}, Texts: true, Unordered: order, Behind: behind}
}

// ofDatabase is how texts of PostgreSQL compare that have the default collation of the database.
var ofDatabase = catalog.Value{Type: merge.Type{Kind: merge.Bytes}, Texts: true, Unordered: "the collation of the database may not be C; put it in parentheses, and write COLLATE \"C\" behind them", Behind: `COLLATE pg_catalog."default"`}

// window returns how the results of a window function compare. A server sorts by them as they are
// returned, unlike members of ENUM and texts of which several are equal.
func (c functions) window(call *sqlparse.Call) catalog.Value {
	switch name := call.Function(); {
	case sqlfunc.Counting[name] && c.SQLite:
		return catalog.OfKind(merge.Stored)
	case sqlfunc.Counting[name]:
		return counts
	case isNeighbour(call) && (len(call.Args) == 1 || len(call.Args) == 2) && c.typed(call.Args[0]).IsExact(): // a default may have another type
		return c.typed(call.Args[0])
	case sqlfunc.Aggregates[name] == 0 || odd(call) || c.typed(call.Args[0]).Type.Collation != merge.Binary:
		return c.unknown(call)
	}
	if v := c.aggregate(call); v.As == catalog.Plain {
		return v
	}
	return c.unknown(call)
}

// extreme returns how the results of GREATEST and LEAST of numbers compare. Equal decimals of
// PostgreSQL may have several numbers of digits, of which any may be returned.
func (c functions) extreme(call *sqlparse.Call) catalog.Value {
	v := c.oneOf(call, call.Args)
	if c.Postgres && v.Type.Kind == merge.Time {
		return v
	}
	if !v.IsNumeric() || c.Postgres && v.Type.Kind == merge.Decimal {
		return c.unknown(call)
	}
	return v
}

// unless returns how the results of NULLIF compare, which have the type of its first argument.
// MariaDB loses rows in DISTINCT of such results, unless they are those of groups.
func (c functions) unless(call *sqlparse.Call) catalog.Value {
	v := c.typed(call.Args[0])
	other, isNumber := numeral(call.Args[1], c.integers)
	text, isText := analysis.Literal(call.Args[1], sqlparse.Text)
	switch {
	case c.Options.Merge.IsMariaDB() && !sqlfunc.HasAggregate(call):
	case v.IsNumber() && isNumber && other.Type.Kind <= v.Type.Kind, v.IsText() && isText && ascii(text):
		return v
	case (v.IsNumber() || v.IsText()) && computed(call.Args[1]) && c.typed(call.Args[1]).Same(v):
		return v
	}
	return c.unknown(call)
}

// concatenated returns how texts of MySQL and MariaDB compare that are made of other values. They
// have the collation of the columns of texts among them. Without any they have that of the
// connection; they are then digits between the same signs, which are equal if their bytes are.
func (c functions) concatenated(e sqlparse.Expr, of []sqlparse.Expr) catalog.Value {
	made := ofConnection
	for _, one := range of {
		text, isText := analysis.Literal(one, sqlparse.Text)
		_, isNumber := numeral(one, nil)
		if isNumber || isText && ascii(text) {
			continue
		}
		v := c.typed(one)
		switch {
		case v.As == catalog.Weight && v.Type.Kind == merge.Bytes && (made.As == catalog.Plain || made.Type.Pad == v.Type.Pad && made.Type.Prefix == v.Type.Prefix):
			if made.As == catalog.Weight {
				v = v.With(made)
			}
			made = v
			made.Type.Most = mostConcatenated
			if v.Type.Prefix > 0 {
				made.Type.Most = v.Type.Prefix / 4 // a weight has at most four bytes
			}
		case !computed(one), !v.IsNumber() && !v.IsTime():
			return c.unknown(e)
		}
	}
	return made
}

// mostConcatenated is the number of bytes of a text whose weights are requested if a server compares
// whole texts. The weights must fit into a packet.
const mostConcatenated = 4096

// castTo maps the names of types of MySQL and MariaDB to the kinds of their values.
var castTo = map[string]merge.Kind{
	"date": merge.Time, "datetime": merge.Time, "time": merge.Duration,
	"signed": merge.Integer, "signed integer": merge.Integer, "signed int": merge.Integer,
	"unsigned": merge.Integer, "unsigned integer": merge.Integer, "unsigned int": merge.Integer,
	"decimal": merge.Decimal, "double": merge.Float, "double precision": merge.Float,
}

// cast returns how values of MySQL and MariaDB compare that are cast to another type.
func (c functions) cast(e *sqlparse.Operation) catalog.Value {
	name, digits := castType(e, c.Statement.Text)
	to := castTo[name]
	switch {
	case name == "char" && digits == "":
		if v := c.concatenated(e, e.Operands); v.As == catalog.Plain {
			return v
		}
	case to == merge.Integer, to == merge.Decimal, to == merge.Float:
		return catalog.OfKind(to) // whatever is cast, such as a value of a JSON document
	case to != 0:
		v := c.typed(e.Operands[0])
		if today := v.Type.Kind == merge.Duration && to == merge.Time; !today && (v.IsNumeric() || v.IsTime() || v.IsText()) {
			return catalog.OfKind(to)
		}
	}
	return c.unknown(e)
}

// readsTime reports whether an expression has a cast of a text or a number to a time, which is NULL if it is none.
func (c functions) readsTime(e sqlparse.Expr) bool {
	return sqlparse.Any(e, func(e sqlparse.Expr) bool {
		cast := sqlparse.As(e, sqlparse.Cast)
		if cast == nil {
			return false
		}
		name, _ := castType(cast, c.Statement.Text)
		return (castTo[name] == merge.Time || castTo[name] == merge.Duration) && !c.typed(cast.Operands[0]).IsTime()
	})
}

// postgresTypes maps the names of types of PostgreSQL, other than whole numbers, to how their values compare.
var postgresTypes = map[string]catalog.Value{
	"boolean": whole, "bool": whole,
	"numeric": catalog.OfKind(merge.Decimal), "decimal": catalog.OfKind(merge.Decimal),
	"float8": catalog.OfKind(merge.Float), "double precision": catalog.OfKind(merge.Float),
	"date": catalog.OfKind(merge.Time), "timestamp": catalog.OfKind(merge.Time), "timestamptz": catalog.OfKind(merge.Time),
}

// castOfPostgres returns how values of PostgreSQL compare that are cast to another type. The name of a type that is
// not one of PostgreSQL's own does not determine it.
func (c functions) castOfPostgres(e *sqlparse.Operation) catalog.Value {
	if isTextType(e, c.Statement.Text) {
		return c.joined(e, e.Operands)
	}
	name, _ := castType(e, c.Statement.Text)
	if size := wholeTypes[name]; size > 0 {
		return catalog.Value{Type: whole.Type, Wide: size == 64, Narrow: size == 16}
	}
	if v, known := postgresTypes[name]; known {
		return v
	}
	return c.unknown(e)
}

// scalar returns how the results of a subquery compare: like those of the expression that it selects. Its text is
// copied to the selected expressions.
func (c functions) scalar(e *sqlparse.Subquery) catalog.Value {
	core := analysis.CoreOf(e.Query)
	if core == nil || len(core.Items) != 1 || analysis.HasStar(core) {
		return c.unknown(e)
	}
	inner := probe(c.comparer)
	inner.enter(core)
	item := sqlparse.Bare(core.Items[0].Expr)
	if call, isCall := item.(*sqlparse.Call); c.SQLite && !(isCall && slices.Contains(numbersOnly, call.Function())) {
		return c.unknown(e)
	}
	if v := inner.typed(item); inner.why == "" {
		return v
	}
	return c.unknown(e)
}

// numbersOnly are aggregates of SQLite whose results are numbers whatever their arguments.
var numbersOnly = []string{"count", "sum", "avg", "total"}

// shifted reports whether a sum or difference consists of a time and intervals. To a date of PostgreSQL, days may be
// added as an integer, and to no other time.
func (c functions) shifted(of []sqlparse.Expr) bool {
	other := func(e sqlparse.Expr) bool { return !interval.MatchString(c.text(e)) && !(c.Postgres && isInt(e)) }
	return !slices.ContainsFunc(of[1:], other) && c.typed(of[0]).Type.Kind == merge.Time
}

var interval = regexp.MustCompile(`(?i)^interval[\s'(]`)

// quotient returns how quotients compare. MariaDB sorts rows, unlike groups, by digits that it does
// not return.
func (c functions) quotient(e *sqlparse.Operation) catalog.Value {
	v := c.arithmetic(e, e.Operands)
	if c.MySQL && v.Type.Kind == merge.Integer {
		v = catalog.OfKind(merge.Decimal)
	}
	if c.Options.Merge.IsMariaDB() && v.Type.Kind == merge.Decimal && !sqlfunc.HasAggregate(e) {
		v.Unordered = "MariaDB sorts by digits of a quotient that it does not return; sort by ROUND(…)"
	}
	return v
}

var onlyBars = regexp.MustCompile(`^(\s*\|\|\s*)+$`)

// opaque returns how the values of -x compare, and on PostgreSQL those of texts with || between
// them.
func (c functions) opaque(e *sqlparse.Operation) catalog.Value {
	if of := Negated(e, c.Statement.Text); of != nil {
		if v := c.typed(of); v.IsNumber() {
			return v
		}
	}
	if len(e.Operands) == 2 && wholeOperators[c.Postgres][strings.ToLower(strings.TrimSpace(between(e, c.Statement.Text)))] {
		v := c.arithmetic(e, e.Operands)
		if v.Type.Kind == 0 || c.Postgres && v.Type.Kind != merge.Integer {
			return c.unknown(e)
		}
		return catalog.Value{Type: whole.Type, Wide: v.Wide}
	}
	switch {
	case c.MySQL && isUnquotes(e, c.Statement.Text):
		return c.unquoted()
	case c.Postgres && c.isMember(e):
		return ofDatabase
	case c.Postgres && c.isZoned(e):
		return catalog.OfKind(merge.Time)
	case c.Postgres && onlyBars.MatchString(between(e, c.Statement.Text)) && slices.ContainsFunc(e.Operands, func(of sqlparse.Expr) bool { return computed(of) && c.typed(of).IsText() }):
		return c.joined(e, e.Operands)
	}
	return c.unknown(e)
}

var toZone = regexp.MustCompile(`(?i)^\s*at\s+time\s+zone\s*$`)

// isZoned reports whether an expression is a time of PostgreSQL in another zone: x AT TIME ZONE 'UTC'.
func (c functions) isZoned(e *sqlparse.Operation) bool {
	if len(e.Operands) != 2 || !toZone.MatchString(between(e, c.Statement.Text)) {
		return false
	}
	return isText(e.Operands[1]) && c.typed(e.Operands[0]).Type.Kind == merge.Time
}

// wholeOperators are the operators whose results are whole numbers, those of PostgreSQL and others.
var wholeOperators = map[bool]map[string]bool{true: sqlfunc.Words("& | # << >>"), false: sqlfunc.Words("& | ^ << >> div")}

// Negated returns the x of -x, or nil.
func Negated(e sqlparse.Expr, text string) sqlparse.Expr {
	o := sqlparse.As(sqlparse.Bare(e), sqlparse.Opaque)
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
func resultOf(name string, v catalog.Value, more []sqlparse.Expr) catalog.Value {
	n := len(more)
	switch {
	case sqlfunc.Parts[name] && v.IsText() && !slices.ContainsFunc(more, computed),
		n == 0 && sqlfunc.Folds[name] && v.IsText(),
		n == 0 && name == "abs" && v.IsNumber():
		return v
	case v.Type.Kind == merge.Time:
		return resultOfTime(name, v, more)
	}
	return catalog.Value{}
}

// resultOfTime is resultOf for a function of a time.
func resultOfTime(name string, v catalog.Value, more []sqlparse.Expr) catalog.Value {
	switch n := len(more); {
	case n == 0 && (name == "date" || name == "last_day"), n == 1 && (name == "date_trunc" || sqlfunc.Shifts[name]), n == 2 && name == "convert_tz":
		return v
	case n == 0 && sqlfunc.Clocks[name], n == 1 && (name == "yearweek" || name == "week"):
		return whole
	case n == 0 && name == "unix_timestamp":
		return catalog.OfKind(merge.Decimal)
	case n == 1 && name == "date_part":
		return catalog.OfKind(merge.Float)
	case n == 1 && name == "date_format" && hasFormat(more[0], dateFormat):
		return catalog.OfKind(merge.Bytes)
	case n == 0 && (name == "dayname" || name == "monthname"), n == 1 && name == "date_format" && hasFormat(more[0], nameFormat):
		return ofConnection
	}
	return catalog.Value{}
}

// odd reports whether a call has another form than f(x, …).
func odd(call *sqlparse.Call) bool { return call.Odd || call.Distinct || len(call.Args) == 0 }

// branches returns the conditions and the results of CASE WHEN … and of IF. Of CASE x WHEN … it returns no conditions, and of another
// expression nothing.
func branches(e sqlparse.Expr, text string) (conditions, results []sqlparse.Expr) {
	if call, isCall := e.(*sqlparse.Call); isCall && (call.Function() == "if" || call.Function() == "iif") && len(call.Args) == 3 {
		return call.Args[:1], call.Args[1:]
	}
	of := sqlparse.As(e, sqlparse.Case)
	if of == nil || len(of.Operands) == 0 {
		return nil, nil
	}
	all, isCompared := of.Operands, false
	switch before := strings.TrimSpace(text[of.From+len("case") : all[0].Bytes().From]); {
	case before == "":
		all, isCompared = all[1:], true
	case !strings.EqualFold(before, "when"):
		return nil, nil
	}
	for ; len(all) > 1; all = all[2:] {
		conditions, results = append(conditions, all[0]), append(results, all[1])
	}
	if isCompared {
		conditions = nil
	}
	return conditions, append(results, all...)
}

const labelOrder = "only the collation of a connection knows the order of literal texts and of names; order by numbers"

// labels returns the number of different literal texts if all expressions are literal texts or NULL.
// They compare by their bytes, because no collation treats two of them as equal; their order depends
// on the collation. It returns 0 for other expressions.
func labels(list []sqlparse.Expr) int {
	texts := map[string]string{}
	for _, one := range list {
		if isNull(one) {
			continue
		}
		text, isText := analysis.Literal(one, sqlparse.Text)
		like, known := catalog.Fold(text)
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
func (c functions) oneOf(e sqlparse.Expr, list []sqlparse.Expr) (of catalog.Value) {
	switch isLabel := labels(list) > 0; {
	case isLabel && c.Postgres:
		return ofDatabase
	case isLabel:
		return catalog.Value{Type: merge.Type{Kind: merge.Bytes}, Unordered: labelOrder}
	}
	text := false
	var given []int
	for _, one := range list {
		if p, isParam := sqlparse.Bare(one).(*sqlparse.Param); isParam && c.Postgres {
			given = append(given, p.Index)
			continue
		}
		v, ok := numeralOf(c.comparer, one)
		switch l, isLiteral := sqlparse.Bare(one).(*sqlparse.Literal); {
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
		case v.IsNumeric() && of.IsNumeric():
			of.Type.Kind, of.Wide, of.As, of.Unordered = max(of.Type.Kind, v.Type.Kind), of.Wide || v.Wide, max(of.As, v.As), cmp.Or(of.Unordered, v.Unordered)
			of.Narrow = of.Narrow && v.Narrow
		case !v.Same(of):
			return c.unknown(e)
		default:
			of = of.With(v)
		}
	}
	switch {
	case of.Type.Kind == 0 || of.As == catalog.Number || text && of.As != catalog.Weight && !of.IsText():
		return c.unknown(e)
	case of.IsNumber():
		*c.integers = append(*c.integers, given...)
	case len(given) > 0 && !of.IsText():
		return c.unknown(e)
	}
	return of
}
