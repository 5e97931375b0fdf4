// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/splice"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// having records HAVING. The shards apply its conditions about columns of GROUP BY; the others must
// be about numbers.
func (c grouper) having() {
	having, g := c.core.Having, c.combination.group
	switch {
	case having == nil:
		return
	case len(c.core.GroupBy) == 0 && (c.SQLite || !sqlfunc.HasAggregate(having)) && !slices.ContainsFunc(c.core.Items, func(i sqlparse.Item) bool { return sqlfunc.HasAggregate(i.Expr) }):
		c.refuse("HAVING without GROUP BY and aggregates is not combined; write WHERE")
	case splice.Named(c.Statement) && c.hasParams(having):
		c.refuse("named parameters are not combined with HAVING; write ? for each")
	case sqlfunc.HasWindow(having) || slices.ContainsFunc(c.core.Items, func(i sqlparse.Item) bool {
		return sqlfunc.HasWindow(i.Expr) && sqlparse.Any(having, func(e sqlparse.Expr) bool { return analysis.IsAlias(i, e) })
	}):
		c.refuse("window functions are computed after HAVING, which no database lets read them; select it, and leave groups out in the program")
	case c.Postgres && sqlparse.Any(having, c.isOnlyAlias):
		c.refuse("HAVING of PostgreSQL accepts no alias; write the expression")
	}
	var rest []merge.Expr
	for _, e := range sqlparse.Conjuncts(having) {
		if c.ofGroup(e) {
			g.kept = append(g.kept, c.text(e))
		} else {
			steadyAverages(c, e)
			rest = append(rest, calculator{c}.condition(e))
			if c.Postgres && !c.hasParams(e) { // it refuses numbers of some types, and does not compute this
				g.kept = append(g.kept, "(TRUE OR "+c.text(e)+")")
			}
		}
	}
	if len(rest) > 0 {
		g.Having = merge.And(rest...)
	}
}

// ofGroup reports whether a condition compares a column of GROUP BY with literals, so that it has one
// value for all rows of a group. Texts that are equal may differ as numbers.
func (c grouper) ofGroup(e sqlparse.Expr) bool {
	o, ok := sqlparse.Bare(e).(*sqlparse.Operation)
	if !ok || o.Op < sqlparse.Equal || o.Op > sqlparse.IsNull {
		return false
	}
	at := c.by(o.Operands[0])
	if _, isColumn := c.scope.Column(o.Operands[0]); !isColumn || at < 0 {
		return false
	}
	c.unambiguous(o.Operands[0])
	return !slices.ContainsFunc(o.Operands[1:], func(e sqlparse.Expr) bool {
		l, ok := sqlparse.Bare(e).(*sqlparse.Literal)
		return !ok || l.Kind != sqlparse.Text && c.combination.group.keys[at].IsText()
	})
}

// calculator creates expressions over combined groups.
type calculator struct{ grouper }

// uncomputed refuses an expression, and stands for it.
func (c calculator) uncomputed(why string) (merge.Expr, merge.Kind) {
	c.refuse(why)
	return nil, 0
}

// onlyNumbers refuses an expression that is not a number.
func (c calculator) onlyNumbers() (merge.Expr, merge.Kind) {
	return c.uncomputed("only numbers are computed from aggregates and compared in HAVING; select the aggregates by themselves, and put a condition of HAVING into WHERE if it is about a column of GROUP BY")
}

// conditions are the operators of conditions. The operands of those up to NOT are conditions, too, and
// those of the others numbers.
var conditions = map[sqlparse.Operator]func(d merge.Dialect, of []merge.Expr) merge.Expr{
	sqlparse.And:          func(_ merge.Dialect, of []merge.Expr) merge.Expr { return merge.And(of...) },
	sqlparse.Or:           func(_ merge.Dialect, of []merge.Expr) merge.Expr { return merge.Or(of...) },
	sqlparse.Not:          func(_ merge.Dialect, of []merge.Expr) merge.Expr { return merge.Not(of[0]) },
	sqlparse.Equal:        comparison("="),
	sqlparse.NotEqual:     comparison("<>"),
	sqlparse.Less:         comparison("<"),
	sqlparse.LessEqual:    comparison("<="),
	sqlparse.Greater:      comparison(">"),
	sqlparse.GreaterEqual: comparison(">="),
	sqlparse.IsNull:       func(_ merge.Dialect, of []merge.Expr) merge.Expr { return merge.IsNull(of[0]) },
	sqlparse.Between: func(d merge.Dialect, of []merge.Expr) merge.Expr {
		return merge.And(merge.Comparison(d, ">=", of[0], of[1]), merge.Comparison(d, "<=", of[0], of[2]))
	},
}

func comparison(op string) func(d merge.Dialect, of []merge.Expr) merge.Expr {
	return func(d merge.Dialect, of []merge.Expr) merge.Expr { return merge.Comparison(d, op, of[0], of[1]) }
}

func (c calculator) condition(e sqlparse.Expr) merge.Expr {
	o, ok := sqlparse.Bare(e).(*sqlparse.Operation)
	if !ok || conditions[o.Op] == nil {
		c.onlyNumbers()
		return nil
	}
	of, before := make([]merge.Expr, len(o.Operands)), c.combination.group.quotients
	for i, operand := range o.Operands {
		if o.Op <= sqlparse.Not {
			of[i] = c.condition(operand)
		} else {
			of[i], _ = c.number(operand)
		}
	}
	if c.combination.group.quotients > before && c.Options.Merge.IsMariaDB() {
		c.refuse("it is not known with how many digits MariaDB compares an AVG or a quotient; compare a SUM with a multiple of the COUNT" + AddKey)
	}
	c.givenWhole(o.Operands)
	made := conditions[o.Op](c.Options.Merge, of)
	if o.Not {
		return merge.Not(made)
	}
	return made
}

// givenWhole demands whole numbers as arguments beside whole numbers. PostgreSQL gives a parameter the type of
// the other operand, to which a driver may cut an argument.
func (c calculator) givenWhole(operands []sqlparse.Expr) {
	if !c.Postgres || !slices.ContainsFunc(operands, func(e sqlparse.Expr) bool { return c.kindOf(e) == merge.Integer }) {
		return
	}
	for _, e := range operands {
		if p, isParam := sqlparse.Bare(e).(*sqlparse.Param); isParam {
			*c.integers = append(*c.integers, p.Index)
		}
	}
}

// number returns an expression over aggregates, groups and numbers, and its kind. On SQLite each
// value has its own kind.
func (c calculator) number(e sqlparse.Expr) (merge.Expr, merge.Kind) {
	switch e := sqlparse.Bare(e).(type) {
	case *sqlparse.Literal:
		return c.literal(e)
	case *sqlparse.Param:
		c.combination.group.params = append(c.combination.group.params, e.Index)
		return merge.Argument(c.Options.Merge, e.Index), c.exact()
	case *sqlparse.Operation:
		switch {
		case c.by(e) >= 0:
		case conditions[e.Op] != nil:
			return c.condition(e), c.exact()
		case arithmetic[e.Op] != 0:
			return c.operation(e)
		case e.Op == sqlparse.Case:
			return c.choice(e)
		case e.Op == sqlparse.Cast && (sqlfunc.HasAggregate(e) || e.Keeps && isInteger(e.Operands[0])):
			return c.cast(e)
		}
		if of := Negated(e, c.Statement.Text); of != nil {
			return c.minus(of)
		}
	case *sqlparse.Call:
		return c.function(e)
	case *sqlparse.Column:
		if found := c.ordered(e); sqlfunc.HasAggregate(found) && !c.ambiguous(e) && !c.isSelected(e) {
			return c.number(found)
		}
	}
	return c.operand(e)
}

// wholeTypes are the types of whole numbers, and the numbers of their bits.
var wholeTypes = map[string]int{"bigint": 64, "int8": 64, "integer": 32, "int": 32, "int4": 32, "smallint": 16, "int2": 16}

func isDecimalType(name string) bool { return name == "numeric" || name == "decimal" }

// cast returns an aggregate as a whole number, as a decimal, or as a float of PostgreSQL.
func (c calculator) cast(e *sqlparse.Operation) (merge.Expr, merge.Kind) {
	of := e.Operands[0]
	made, kind := c.number(of)
	name, digits := castType(e, c.Statement.Text)
	isExact := kind != merge.Float
	hasAllDigits := isExact && (c.Postgres || !sqlparse.Any(of, isQuotient))
	switch {
	case isDecimalType(name) && !c.SQLite && (hasAllDigits || isExact && sqlfunc.IsAverage(sqlparse.Bare(of))):
		return c.toDecimal(made, of, digits)
	case c.MySQL && (name == "signed" || name == "signed integer") && hasAllDigits:
		return merge.ToInteger(c.Options.Merge, made, 64), c.exact()
	case !c.Postgres, digits != "": // of a float(24)
	case name == "float8" || name == "float" || name == "double precision":
		return merge.Arithmetic(c.Options.Merge, '*', made, merge.Constant(1.0, merge.Float)), merge.Float
	case wholeTypes[name] > 0:
		return merge.ToInteger(c.Options.Merge, made, wholeTypes[name]), c.exact()
	}
	return c.operand(e)
}

// toDecimal returns a number as a decimal with so many digits, of which some are after its point. PostgreSQL keeps all digits
// without these numbers.
func (c calculator) toDecimal(made merge.Expr, of sqlparse.Expr, digits string) (merge.Expr, merge.Kind) {
	before, after, _ := strings.Cut(digits, ",")
	all, _ := strconv.Atoi(strings.TrimSpace(before))
	scale, _ := strconv.Atoi(strings.TrimSpace(after))
	switch {
	case digits == "" && c.MySQL:
		all = 10
	case digits == "" && c.kindOf(of) == merge.Integer:
		return merge.Round(c.Options.Merge, made, 0), c.exact()
	case digits == "":
		return made, c.exact()
	}
	return merge.ToDecimal(c.Options.Merge, made, all, scale), c.exact()
}

// isQuotient reports whether an expression is an average or a quotient, whose digits depend on the server.
func isQuotient(e sqlparse.Expr) bool {
	return sqlfunc.IsAverage(e) || sqlparse.As(e, sqlparse.Div) != nil
}

// function returns an aggregate, or a function of aggregates.
func (c calculator) function(e *sqlparse.Call) (merge.Expr, merge.Kind) {
	switch name := e.Function(); {
	case e.Over:
		return c.window(e)
	case e.Odd && !e.Filtered:
	case (name == "if" || name == "iif") && len(e.Args) == 3:
		return c.choice(e)
	case (name == "floor" || name == "ceil" || name == "ceiling") && len(e.Args) == 1:
		return c.toWhole(e, name != "floor")
	case sqlfunc.Aggregates[name] == sqlfunc.Average && len(sqlfunc.AggregatedBy(e)) == 1 && !e.Distinct:
		exact := c.Options.Merge
		exact.Division.Rounds = false // MySQL rounds a quotient before further computation, but not an average
		return c.average(e, exact)
	case name == "round":
		return c.round(e)
	case len(e.Args) == 2 && (name == "ifnull" || name == "nullif"), name == "coalesce" && len(e.Args) > 0:
		return c.oneOf(e, name)
	}
	return c.operand(e)
}

// exact returns the kind of numbers that are not floats.
func (c calculator) exact() merge.Kind {
	if c.SQLite {
		return merge.Stored
	}
	return merge.Decimal
}

// wider returns the kind of numbers of which some have one kind and some another.
func (c calculator) wider(of ...merge.Kind) merge.Kind {
	if !c.SQLite && slices.Contains(of, merge.Float) {
		return merge.Float
	}
	return c.exact()
}

// operand returns an aggregate, or an expression of GROUP BY.
func (c calculator) operand(e sqlparse.Expr) (merge.Expr, merge.Kind) {
	if sqlfunc.OfRows(e) && combined(e) == 0 {
		return c.uncomputed(c.text(e) + " is not combined: only + - * /, ROUND, CEIL, FLOOR, COALESCE, IFNULL, NULLIF, comparisons, CASE with whole numbers or literal texts as results, and casts to whole numbers and decimals are, of COUNT, SUM, AVG, MIN and MAX" + AddKey)
	}
	at := c.column(e)
	v := c.combination.group.values[at]
	if !v.IsNumber() && (v.As != catalog.Plain || v.Type.Kind != merge.Stored) {
		return c.onlyNumbers()
	}
	return merge.Column(at, v.Type.Kind), c.wider(v.Type.Kind)
}

func (c calculator) literal(e *sqlparse.Literal) (merge.Expr, merge.Kind) {
	n, err := strconv.ParseInt(e.Value, 10, 64)
	f, noFloat := strconv.ParseFloat(e.Value, 64)
	switch {
	case e.Kind == sqlparse.Integer && err == nil:
		return merge.Constant(n, merge.Integer), c.exact()
	case e.Kind == sqlparse.Null:
		return merge.Constant(nil, merge.Integer), c.exact()
	case e.Kind != sqlparse.Decimal || noFloat != nil:
		return c.onlyNumbers()
	case c.SQLite || !c.Postgres && strings.ContainsAny(e.Value, "eE"):
		return merge.Constant(f, merge.Float), c.wider(merge.Float)
	}
	return merge.Constant([]byte(withoutExponent(e.Value)), merge.Decimal), merge.Decimal
}

// withoutExponent returns a literal of PostgreSQL, where 1e2 is the decimal 100, and 1e-3 is 0.001.
func withoutExponent(text string) string {
	digits, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	n, err := strconv.Atoi(exponent)
	number, ok := new(big.Rat).SetString(text)
	if err != nil || !ok {
		return text
	}
	_, fraction, _ := strings.Cut(digits, ".")
	return number.FloatString(max(len(fraction)-n, 0))
}

var arithmetic = map[sqlparse.Operator]byte{sqlparse.Add: '+', sqlparse.Sub: '-', sqlparse.Mul: '*', sqlparse.Div: '/'}

func (c calculator) operation(e *sqlparse.Operation) (made merge.Expr, kind merge.Kind) {
	op := arithmetic[e.Op]
	if op == '/' {
		c.combination.group.quotients++
	}
	if c.MySQL && sqlparse.Any(e, sqlfunc.IsAverage) {
		c.refuse(unsteadyDigits)
	}
	roundsLast(c, e.Op == sqlparse.Div, e.Operands)
	c.givenWhole(e.Operands)
	for i, operand := range e.Operands {
		next, of := c.number(operand)
		if op == '/' && c.MySQL && sqlparse.Any(operand, mayLackDigits) {
			next = c.withDigits(next, operand)
		}
		if isUnsigned(&c.comparer, operand) {
			next = merge.Unsigned(next)
		}
		if i == 0 {
			made, kind = next, of
		} else {
			made, kind = merge.Arithmetic(c.Options.Merge, op, made, next), c.wider(kind, of)
		}
	}
	return fitting(c, made, e), kind
}

// isUnsigned reports whether an operand is a column of an unsigned type in GROUP BY, or the MIN or MAX of one.
func isUnsigned(c *comparer, e sqlparse.Expr) bool {
	e = sqlparse.Bare(e)
	if call, ok := e.(*sqlparse.Call); ok && !call.Over && len(call.Args) == 1 {
		switch sqlfunc.Aggregates[call.Function()] {
		case merge.Min, merge.Max, merge.First:
			e = call.Args[0]
		}
	}
	of, ok := c.scope.Column(e)
	return ok && of.Of.Schema.Columns[of.Name].Unsigned
}

// fitting returns what an expression of whole numbers of PostgreSQL computes, which fails if it does not fit into their type.
func fitting(c calculator, made merge.Expr, e sqlparse.Expr) merge.Expr {
	v := ofGroups(c).typed(e)
	switch {
	case !c.Postgres || v.Type.Kind != merge.Integer || v.Wide: // the merge itself computes with 64 bits
		return made
	case v.Narrow:
		return merge.Fitting(made, 16)
	}
	return merge.Fitting(made, 32)
}

// mayLackDigits reports whether an expression is a function of MySQL and MariaDB whose result may have more digits than the
// number that it returns.
func mayLackDigits(e sqlparse.Expr) bool {
	call, ok := e.(*sqlparse.Call)
	return ok && (call.Function() == "coalesce" || call.Function() == "ifnull" || call.Function() == "round")
}

// withDigits returns an operand of a division with as many digits as the shards give it. The quotient has more than these.
func (c calculator) withDigits(made merge.Expr, e sqlparse.Expr) merge.Expr {
	if c.hasParams(e) {
		c.refuse("parameters in " + c.text(e) + ", which is divided or divides, are not combined; write the number")
	}
	g, text := c.combination.group, c.text(e)
	g.always = append(g.always, text)
	return merge.WithDigits(made, addHidden(c.grouper, text, catalog.Value{}))
}

// minus returns -x, which SQLite computes as 0 - x.
func (c calculator) minus(of sqlparse.Expr) (merge.Expr, merge.Kind) {
	made, kind := c.number(of)
	if c.SQLite {
		return merge.Arithmetic(c.Options.Merge, '-', merge.Constant(int64(0), merge.Integer), made), kind
	}
	return merge.Negated(c.Options.Merge, made), kind
}

// oneOf returns COALESCE, IFNULL or NULLIF.
func (c calculator) oneOf(e *sqlparse.Call, name string) (merge.Expr, merge.Kind) {
	parts, kind := make([]merge.Expr, len(e.Args)), merge.Kind(0)
	roundsLast(c, false, e.Args)
	c.givenWhole(e.Args)
	for i, arg := range e.Args {
		made, of := alternative(c, arg, e)
		if name == "nullif" && c.Options.Merge.IsMariaDB() && sqlparse.Any(arg, mayLackDigits) && sqlparse.Any(arg, isQuotient) {
			made = c.withDigits(made, arg) // MariaDB compares the digits that it returns
		}
		if parts[i] = made; i == 0 || name != "nullif" || !c.MySQL { // there it has the type of its first argument
			kind = c.wider(kind, of)
		}
	}
	var unit merge.Expr // of the type of all values, whichever is returned
	switch {
	case kind == merge.Float && (c.Postgres || name != "nullif"):
		unit = merge.Constant(1.0, merge.Float)
	case c.Postgres && slices.ContainsFunc(e.Args, c.isDecimal):
		unit = merge.Constant([]byte("1"), merge.Decimal)
	}
	for i, part := range parts {
		if unit != nil {
			parts[i] = merge.Arithmetic(c.Options.Merge, '*', part, unit)
		}
	}
	if name == "nullif" {
		return merge.NullIf(c.Options.Merge, parts[0], parts[1]), kind
	}
	c.combination.group.zero = true
	return merge.Coalesce(parts...), kind
}

// choice returns one of several whole numbers. Other results have the digits of their common type.
func (c calculator) choice(e sqlparse.Expr) (merge.Expr, merge.Kind) {
	conditions, results := branches(e, c.Statement.Text)
	if len(conditions) == 0 || slices.ContainsFunc(results, func(e sqlparse.Expr) bool { return !isInteger(e) && !isNull(e) }) {
		return c.operand(e)
	}
	return chosen(c, conditions, results, func(e sqlparse.Expr) merge.Expr {
		made, _ := c.number(e)
		return made
	}), c.exact()
}

// chosen returns the result of the first condition that is true.
func chosen(c calculator, conditions, results []sqlparse.Expr, result func(sqlparse.Expr) merge.Expr) merge.Expr {
	var when, then []merge.Expr
	for _, condition := range conditions {
		when = append(when, c.condition(condition))
	}
	for _, of := range results {
		then = append(then, result(of))
	}
	return merge.Choice(when, then)
}

// label returns one of several literal texts, which the shards select, so that it has the form of their driver. It returns nil
// for another expression.
func (c calculator) label(e sqlparse.Expr) merge.Expr {
	conditions, results := branches(sqlparse.Bare(e), c.Statement.Text)
	if len(c.cores) > 1 || len(conditions) == 0 || !slices.ContainsFunc(results, isText) || slices.ContainsFunc(results, func(e sqlparse.Expr) bool { return !isText(e) && !isNull(e) }) {
		return nil
	}
	g := c.combination.group
	g.zero = true
	return chosen(c, conditions, results, func(e sqlparse.Expr) merge.Expr {
		if isNull(e) {
			return merge.Constant(nil, merge.Integer)
		}
		text := c.text(e)
		g.always = append(g.always, text)
		return merge.AsIs(addHidden(c.grouper, text, catalog.Value{Unordered: labelOrder}))
	})
}

// toWhole returns FLOOR or CEIL. PostgreSQL returns floats for integers.
func (c calculator) toWhole(e *sqlparse.Call, up bool) (merge.Expr, merge.Kind) {
	if c.Postgres && c.kindOf(e.Args[0]) != merge.Decimal {
		return c.operand(e)
	}
	made, kind := c.number(e.Args[0])
	return merge.Whole(made, up), c.wider(kind)
}

// ofGroups returns a comparer of expressions over groups, which refuses nothing.
func ofGroups(c calculator) *comparer {
	of := probe(&c.comparer)
	of.integers, of.powers = new([]int), true
	return of
}

// kindOf returns the kind of an expression over groups, 0 if that is unknown.
func (c calculator) kindOf(e sqlparse.Expr) merge.Kind {
	of := ofGroups(c)
	if sqlparse.Is[*sqlparse.Literal](sqlparse.Bare(e)) {
		v, _ := numeralOf(of, e)
		return v.Type.Kind
	}
	return of.typed(e).Type.Kind
}

// isDecimal reports whether an expression over groups is a decimal of PostgreSQL.
func (c calculator) isDecimal(e sqlparse.Expr) bool {
	v, written := numeral(e, nil)
	if !written && !isParam(e) && !isNull(e) {
		if v.Type.Kind = c.kindOf(e); v.Type.Kind == 0 {
			c.unknown(e)
		}
	}
	return v.Type.Kind == merge.Decimal
}

// round returns ROUND. PostgreSQL's of one integer is a float.
func (c calculator) round(e *sqlparse.Call) (merge.Expr, merge.Kind) {
	digits := int64(0)
	switch n := len(e.Args); {
	case n == 1 && c.Postgres && c.kindOf(e.Args[0]) != merge.Decimal && c.kindOf(e.Args[0]) != merge.Float: // it may be an integer
		return c.operand(e)
	case n == 1:
	case n == 2:
		v, _ := proof.Constant(e.Args[1])
		n, isNumber := v.Literal.(int64)
		if digits = n; !isNumber || n < 0 || n > 30 {
			c.refuse("ROUND is combined only with 0 to 30 digits")
		}
	default:
		return c.onlyNumbers()
	}
	made, kind := c.number(e.Args[0])
	return merge.Round(c.Options.Merge, made, int(digits)), c.wider(kind)
}
