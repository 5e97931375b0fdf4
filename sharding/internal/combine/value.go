// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/splice"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// comparer finds how the values of expressions compare in the present SELECT of a query, and
// refuses expressions for which that is uncertain. It continues after a refusal, because the result
// is then not used.
type comparer struct {
	*analysis.Analysis
	core     *sqlparse.Core  // the present SELECT
	scope    *analysis.Scope // of the present SELECT
	integers *[]int          // arguments that must be whole numbers, because the kind of a result depends on theirs
	powers   bool            // a literal with an exponent is a number: 1e2
	derives  bool            // aggregates are ordinary values: of a derived table, or of groups that are on one shard each
	why      string          // the first refusal, and what to do instead
	untyped  bool            // the reason of the first refusal is that a column's type is unknown
	aliases  []splice.Edit   // names of ORDER BY that are aliases
}

// MayBeNumber returns false if the result of the query is known not to consist of single numbers.
func MayBeNumber(b *analysis.Analysis) bool {
	core := analysis.CoreOf(b.Statement.Query)
	if core == nil {
		return b.Statement.Query != nil
	}
	if len(core.Items) != 1 || sqlfunc.HasAggregate(core.Where) { // an aggregate in WHERE belongs to the query around it
		return false
	}
	if core.Items[0].Star {
		return true
	}
	c := &comparer{Analysis: b, integers: new([]int), derives: true}
	c.enter(core)
	v := c.typed(core.Items[0].Expr)
	return c.why != "" || v.IsNumeric() || v.Type.Kind == merge.Stored
}

// refuse records why results are not combined.
func (c *comparer) refuse(why string) {
	if c.why == "" {
		c.why = why
	}
}

// probe returns a comparer with which an expression is tried: its refusals do not count, and aggregates are ordinary values to it.
func probe(c *comparer) *comparer {
	of := *c
	of.why, of.derives = "", true
	return &of
}

// enter makes a SELECT the present one.
func (c *comparer) enter(core *sqlparse.Core) { c.core, c.scope = core, c.Scopes[core] }

// ordered returns the selected expression that a name or a number in ORDER BY or GROUP BY denotes,
// or the expression itself.
func (c *comparer) ordered(e sqlparse.Expr) sqlparse.Expr {
	e = sqlparse.Bare(e)
	if of, ok := analysis.Numbered(c.core, e); ok {
		return of
	}
	if sqlparse.Is[*sqlparse.Literal](e) {
		c.refuse("ORDER BY and GROUP BY take the number of a selected column, in a select list without *" + AddKey)
	}
	if at := slices.IndexFunc(c.core.Items, func(i sqlparse.Item) bool { return analysis.IsAlias(i, e) }); at >= 0 {
		return c.core.Items[at].Expr
	}
	return e
}

// ambiguous reports whether a name is a column and also the alias of another expression. In GROUP
// BY and HAVING some dialects use the one, and some the other.
func (c *comparer) ambiguous(e sqlparse.Expr) bool {
	own, known := c.scope.Column(e)
	return known && slices.ContainsFunc(c.core.Items, func(i sqlparse.Item) bool {
		aliased, _ := c.scope.Column(i.Expr)
		return analysis.IsAlias(i, e) && aliased != own
	})
}

// isOnlyAlias reports whether a name is the alias of an expression, and no column.
func (c *comparer) isOnlyAlias(e sqlparse.Expr) bool {
	_, known := c.scope.Column(e)
	return !known && slices.ContainsFunc(c.core.Items, func(i sqlparse.Item) bool { return analysis.IsAlias(i, e) })
}

func (c *comparer) unambiguous(e sqlparse.Expr) {
	if c.ambiguous(e) {
		c.refuse(c.text(e) + hasTwoMeanings)
	}
}

const hasTwoMeanings = " is a column and the alias of something else; give it another alias"

// text returns the text of an expression, without parentheses around it, and with selected expressions in place of
// their aliases.
func (c *comparer) text(e sqlparse.Expr) string {
	return splice.Replaced(c.Statement.Text, sqlparse.Bare(e).Bytes(), c.aliases)
}

// aliased returns the selected item whose alias a name in an expression of ORDER BY is, or nil if it may be a column.
// PostgreSQL knows no alias there.
func aliased(c *comparer, e *sqlparse.Column) *sqlparse.Item {
	by := c.Statement.Query.OrderBy
	if c.Postgres || len(by) == 0 || e.From < by[0].Expr.Bytes().From || analysis.IsGrouped(c.core) {
		return nil
	}
	at := slices.IndexFunc(c.core.Items, func(i sqlparse.Item) bool { return analysis.IsAlias(i, e) && !analysis.Parametrized(i.Expr) })
	if at < 0 || c.scope.MayHave(analysis.Unqualified(e)) {
		return nil
	}
	return &c.core.Items[at]
}

// hasParams reports whether an expression contains parameters.
func (c *comparer) hasParams(e sqlparse.Expr) bool {
	return len(splice.ArgsIn(c.Statement, e.Bytes())) > 0
}

// alike reports whether two expressions have one text and the same parameters: each ? has its own argument.
func alike(c *comparer, a, b sqlparse.Expr) bool {
	return c.text(a) == c.text(b) && (a == b || slices.Equal(splice.ArgsIn(c.Statement, a.Bytes()), splice.ArgsIn(c.Statement, b.Bytes())))
}

// summand returns the type of the sum of an expression. MySQL's sums of integers are decimals, and
// so are PostgreSQL's of 64-bit integers.
func (c *comparer) summand(e sqlparse.Expr) catalog.Value {
	v := c.inOrder(e, c.typed(e)) // a sum of rounded sums has other digits
	switch {
	case v.As == catalog.Asked:
		c.refuse("only numbers can be added; " + c.text(e) + " is none; cast it to DECIMAL")
	case c.Postgres && v.Type.Kind == merge.Integer && !v.Wide:
		return catalog.Value{Type: v.Type, Wide: true}
	case v.As == catalog.Plain && (v.Type.Kind == merge.Integer || v.Type.Kind == merge.Decimal):
		return catalog.OfKind(merge.Decimal)
	case v.As == catalog.Double && c.Postgres:
		c.refuse("the sum of real " + c.text(e) + " is rounded at each addition; write SUM(CAST(" + c.text(e) + " AS double precision))" + AddKey)
	case v.As == catalog.Double:
		return catalog.Value{Type: v.Type}
	case v.As != catalog.Plain || v.Type.Kind != merge.Float && v.Type.Kind != merge.Stored:
		c.refuse("only numbers can be added; " + c.text(e) + " is none; cast it to DECIMAL" + AddKey)
	}
	return v
}

// value returns how the values of an expression compare that is copied to another place of the
// text.
func (c *comparer) value(e sqlparse.Expr) catalog.Value {
	v := c.typed(e)
	if c.hasParams(e) {
		c.refuse(c.text(e) + parametersCompared)
	}
	return v
}

// parametersCompared is why such a query is not combined for any arguments. Package plan writes some arguments into the text.
const parametersCompared = " has parameters, and is compared over several shards; write its values into the text, or compute it first" + AddKey

// typed returns how the values of columns compare, and those of expressions whose type is certain.
func (c *comparer) typed(e sqlparse.Expr) catalog.Value {
	e = sqlparse.Bare(e)
	if found, ok := c.columnOf(e); ok {
		if found.Value.Type.Kind == 0 {
			return c.unsorted(e, found)
		}
		return found.Value
	}
	c.namesStay(e)
	switch e := e.(type) {
	case *sqlparse.Column:
		if i := aliased(c, e); i != nil {
			return c.typed(i.Expr)
		}
		if call := seriesOf(c, e); call != nil {
			return series(functions{c}, e, call)
		}
	case *sqlparse.Call:
		switch {
		case e.Over:
			return functions{c}.window(e)
		case c.derives && sqlfunc.IsAggregate(e):
			return c.aggregate(e)
		}
	case *sqlparse.Subquery:
		return functions{c}.scalar(e)
	}
	if c.SQLite {
		return c.stored(e)
	}
	if of, collation := collated(e, c.Statement.Text); c.Postgres && isBytewise(c, collation) {
		if isTextOf(c, of) {
			return catalog.Value{Type: merge.Type{Kind: merge.Bytes}, Texts: true}
		}
		v := c.typed(of) // whose texts compare by their bytes
		v.Unordered, v.Behind = "", ""
		return v
	}
	if c.Postgres && timeLiteral.MatchString(c.text(e)) {
		return catalog.OfKind(merge.Time)
	}
	switch e := e.(type) {
	case *sqlparse.Call:
		return functions{c}.call(e)
	case *sqlparse.Operation:
		return functions{c}.operation(e)
	}
	return c.unknown(e)
}

// timeLiteral is a date, or date and time, of PostgreSQL.
var timeLiteral = regexp.MustCompile(`^(?i:date|timestamp|timestamptz)\s*'[^'\\]*'$`)

// whole is how whole numbers compare, and counts how numbers of rows do.
var (
	whole  = catalog.OfKind(merge.Integer)
	counts = catalog.Value{Type: whole.Type, Wide: true}
)

// namesStay refuses names in an expression that denote something else where the expression is
// copied to.
func (c *comparer) namesStay(e sqlparse.Expr) {
	switch e := e.(type) {
	case *sqlparse.Subquery:
		if e.From >= c.core.ItemsEnd {
			c.aliasesStay(e)
		}
	case *sqlparse.Column:
		if i := aliased(c, e); i != nil {
			with := splice.Edit{Span: e.Span, With: "(" + c.text(i.Expr) + ")"}
			if !slices.ContainsFunc(c.aliases, func(a splice.Edit) bool { return a.Span == with.Span }) {
				c.aliases = append(c.aliases, with)
			}
		} else if c.ambiguous(e) || c.isOnlyAlias(e) {
			c.refuse(c.text(e) + hasTwoMeanings)
		}
	}
	for _, operand := range sqlfunc.Operands(e) {
		c.namesStay(operand)
	}
}

// aliasesStay refuses a subquery of ORDER BY in which a name is also an alias.
func (c *comparer) aliasesStay(e *sqlparse.Subquery) {
	text := e.Of(c.Statement.Text)
	scanner := sqltext.NewScanner(text, c.Rules)
	for t, ok := scanner.NextCode(); ok; t, ok = scanner.NextCode() {
		name := sqltext.Name(text, t)
		if slices.ContainsFunc(c.core.Items, func(i sqlparse.Item) bool { return name != "" && strings.EqualFold(i.Alias.Name, name) }) {
			c.refuse(name + " is the alias of a selected column, and stands in a subquery; give it another alias")
		}
	}
}

// stored returns how results of SQLite compare: by their bytes, if no column or COLLATE clause sets
// a collation.
func (c *comparer) stored(e sqlparse.Expr) catalog.Value {
	if cast := sqlparse.As(e, sqlparse.Cast); cast != nil { // CAST keeps the collation of its operand
		return c.typed(cast.Operands[0])
	}
	_, name := collated(e, c.Statement.Text)
	if collation, known := collations[strings.ToLower(strings.Trim(name, `"`))]; known && !sqlfunc.HasAggregate(e) {
		return catalog.Value{Type: merge.Type{Kind: merge.Stored, Collation: collation}}
	}
	signed := strings.HasPrefix(strings.TrimLeft(c.text(e), "( "), "+") // +x has the collation of x
	if sqlparse.Is[*sqlparse.Column](e) || signed || c.anyOfEqual(e) || sqltext.WordsMention(c.text(e), c.Rules, "collate") {
		return c.unknown(e)
	}
	return catalog.OfKind(merge.Stored)
}

// anyOfEqual reports whether an expression contains an aggregate that returns any of several equal
// texts of SQLite, or an aggregate of groups that are not computed by one shard.
func (c *comparer) anyOfEqual(e sqlparse.Expr) bool {
	return sqlparse.Any(e, func(e sqlparse.Expr) bool {
		return sqlfunc.IsAggregate(e) && (!c.derives || slices.ContainsFunc(e.(*sqlparse.Call).Args, func(arg sqlparse.Expr) bool { // it is an aggregate
			return c.typed(arg).Type.Collation != merge.Binary
		}))
	})
}

func ascii(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// collations are those of SQLite.
var collations = map[string]merge.Collation{"binary": merge.Binary, "nocase": merge.NoCase, "rtrim": merge.RTrim}

// computed reports whether an expression is neither a literal nor an argument.
func computed(e sqlparse.Expr) bool {
	return !isParam(e) && !sqlparse.Is[*sqlparse.Literal](sqlparse.Bare(e))
}

// written returns the number of different texts of a column that is a literal text in every branch
// of a UNION, 0 for any other column.
func written(branches []*sqlparse.Core, at int) int {
	var column []sqlparse.Expr
	for _, core := range branches {
		if at >= len(core.Items) || isNull(core.Items[at].Expr) {
			return 0
		}
		column = append(column, core.Items[at].Expr)
	}
	return labels(column)
}

func isParam(e sqlparse.Expr) bool { return sqlparse.Is[*sqlparse.Param](sqlparse.Bare(e)) }

func isInteger(e sqlparse.Expr) bool { return analysis.IsLiteral(e, sqlparse.Integer) }

func isText(e sqlparse.Expr) bool { return analysis.IsLiteral(e, sqlparse.Text) }

func isNull(e sqlparse.Expr) bool { return analysis.IsLiteral(e, sqlparse.Null) }

// numeral returns how the values of a literal or argument compare that is a whole number or a decimal, or of a sum, difference or
// product of such literals. It adds an argument to the list of those which must be whole numbers, if there is a list.
func numeral(e sqlparse.Expr, integers *[]int) (_ catalog.Value, ok bool) {
	switch e := sqlparse.Bare(e).(type) {
	case *sqlparse.Param:
		if integers == nil {
			return catalog.Value{}, false
		}
		*integers = append(*integers, e.Index)
		return whole, true
	case *sqlparse.Literal:
		switch {
		case e.Kind == sqlparse.Integer && len(e.Value) <= 18:
			_, tooLarge := strconv.ParseInt(e.Value, 10, 32)
			return catalog.Value{Type: whole.Type, Wide: tooLarge != nil}, true
		case e.Kind == sqlparse.Decimal && !strings.ContainsAny(e.Value, "eE"):
			return catalog.OfKind(merge.Decimal), true
		}
	case *sqlparse.Operation:
		v, ok := whole, e.Op == sqlparse.Add || e.Op == sqlparse.Sub || e.Op == sqlparse.Mul
		for _, operand := range e.Operands {
			of, isNumber := numeral(operand, nil) // a parameter is none
			ok = ok && isNumber
			v = catalog.Value{Type: merge.Type{Kind: max(v.Type.Kind, of.Type.Kind)}, Wide: v.Wide || of.Wide}
		}
		if ok {
			return v, true
		}
	}
	return catalog.Value{}, false
}

// numeralOf is numeral for the arguments of c. If c.powers is set, 1e2 is a number, too: a decimal of PostgreSQL, and a float of
// other databases.
func numeralOf(c *comparer, e sqlparse.Expr) (v catalog.Value, ok bool) {
	l, isLiteral := sqlparse.Bare(e).(*sqlparse.Literal)
	switch {
	case !c.powers || !isLiteral || l.Kind != sqlparse.Decimal:
		return numeral(e, c.integers)
	case !c.Postgres && strings.ContainsAny(l.Value, "eE"):
		return catalog.OfKind(merge.Float), true
	}
	return catalog.OfKind(merge.Decimal), true
}

// averaged returns the kind of averages of numbers of a kind. PostgreSQL's averages of integers are
// decimals.
func averaged(of merge.Kind) merge.Kind {
	if of == merge.Integer {
		return merge.Decimal
	}
	return of
}

// arithmetic returns how sums, differences, products and remainders of columns and numbers compare.
func (c *comparer) arithmetic(e sqlparse.Expr, of []sqlparse.Expr) catalog.Value {
	kind, columns, wide, narrow, unordered := merge.Integer, 0, false, true, ""
	for _, operand := range of {
		v, written := numeralOf(c, operand)
		if !written {
			v = c.typed(operand)
			columns++
		}
		if !isParam(operand) { // it has the type of the other operand
			narrow = narrow && v.Narrow
		}
		if !v.IsNumber() && (v.As != catalog.Double || c.Postgres) { // float4 * float4 is a float4
			return c.unknown(e)
		}
		kind, wide, unordered = max(kind, v.Type.Kind), wide || v.Wide, cmp.Or(unordered, v.Unordered)
	}
	if columns == 0 {
		return c.unknown(e)
	}
	return catalog.Value{Type: merge.Type{Kind: kind}, Wide: wide, Narrow: narrow, Unordered: unordered}
}

// orderOf returns how the values of an expression of ORDER BY compare. Of a text with a COLLATE of its own only the order is known,
// and not which of them are equal.
func orderOf(c *comparer, e sqlparse.Expr) catalog.Value {
	if !isCollated(c, e) {
		return c.inOrder(e, c.typed(e))
	}
	c.namesStay(e)
	of, collation := collated(sqlparse.Bare(e), c.Statement.Text)
	if !c.typed(of).IsText() {
		return c.unknown(e)
	}
	return catalog.Value{Type: whole.Type, As: catalog.Asked, Behind: "COLLATE " + collation}
}

// inOrder returns how the values of an expression compare, if their order is known. Texts with the collation of a
// connection have weights on MySQL and MariaDB. For the order of texts and members of ENUM of PostgreSQL a database is asked.
func (c *comparer) inOrder(e sqlparse.Expr, v catalog.Value) catalog.Value {
	switch {
	case v.Behind != "":
		return catalog.Value{Type: whole.Type, As: catalog.Asked, Behind: v.Behind}
	case v.Unordered == labelOrder && c.MySQL:
		return catalog.Value{Type: v.Type, As: catalog.Weight}
	}
	if v.Unordered != "" {
		c.refuse(c.text(e) + " is not sorted over several shards, because " + v.Unordered + AddKey)
	}
	return v
}

// least returns how the values of an expression compare for MIN and MAX.
func (c *comparer) least(e sqlparse.Expr) catalog.Value {
	found, ok := c.columnOf(e)
	switch {
	case !ok || found.Value.As != catalog.Number:
		return c.inOrder(e, c.value(e))
	case found.Least.Type.Kind == 0:
		return c.unsorted(e, found)
	}
	return found.Least
}

// refuseMember refuses to sort by an aggregate that is the least or the greatest member of ENUM or SET,
// or one of several texts that NOCASE or RTRIM treats as equal.
func (c *comparer) refuseMember(e sqlparse.Expr) {
	call := e.(*sqlparse.Call) // it is an aggregate
	if len(sqlfunc.AggregatedBy(call)) != 1 || sqlfunc.Aggregates[call.Function()] == merge.Count {
		return
	}
	found, _ := c.columnOf(call.Args[0])
	switch {
	case found.Value.As == catalog.Number && !found.Least.Same(found.Value):
		c.refuse(c.text(call) + " compares texts, but servers sort by the position of a member; select it without ORDER BY")
	case c.typed(call.Args[0]).Type.Collation != merge.Binary:
		c.refuse(c.text(call) + " may be any of several equal texts, and SQLite sorts it by bytes; select it without ORDER BY")
	}
}

// unknown refuses an expression whose comparison is unknown.
func (c *comparer) unknown(e sqlparse.Expr) catalog.Value { return c.unsorted(e, catalog.Column{}) }

func (c *comparer) unsorted(e sqlparse.Expr, found catalog.Column) catalog.Value {
	byText := ""
	if c.Postgres && isBytewise(c, `"C"`) && isOfRow(e) {
		byText = `; to group or sort by its text, write CAST(… AS text) COLLATE "C"`
	}
	if found.Unsorted != "" {
		c.refuse(c.text(e) + " is not compared over several shards, because " + found.Unsorted + byText + AddKey)
	}
	c.untyped = c.untyped || sqlparse.Is[*sqlparse.Column](sqlparse.Bare(e)) && c.why == ""
	remedy := byText + unread(c, e)
	if strings.Contains(c.text(e), "->") {
		remedy = "; cast the value of the document to a number" + remedy
	}
	c.refuse(cmp.Or(c.Unresolved(c.scope, e), "it is not known how values of "+c.text(e)+" are compared"+remedy))
	return catalog.Value{}
}

// unread says what to do about a column of unknown type.
func unread(c *comparer, e sqlparse.Expr) string {
	if found, ok := c.scope.Column(e); ok && found.Of != nil && found.Of.Role == analysis.Broadcast && !found.Of.Known {
		return ", because the columns of the broadcast table " + found.Of.Label() + " are not known; create it in the home database, too"
	}
	return AddKey
}

// columnOf returns the database's description of the column that an expression is, or the
// description of the expression that a derived table selects for it.
func (c *comparer) columnOf(e sqlparse.Expr) (catalog.Column, bool) {
	col, ok := c.scope.Column(e)
	if !ok || !col.Of.Known {
		return catalog.Column{}, false
	}
	found, ok := col.Of.Schema.Columns[col.Name]
	if q := col.Of.Query; q != nil && found.Value.Type.Kind == 0 {
		inner := probe(c)
		inner.enter(q.Parts[0].Select)
		for _, item := range inner.core.Items {
			if strings.EqualFold(item.Alias.Name, col.Name) {
				if found.Value = inner.selects(item.Expr); inner.why != "" {
					found = catalog.Column{Unsorted: strings.TrimSuffix(inner.why, AddKey)}
				}
			}
		}
	}
	return found, ok
}

// selects returns how the values of an expression compare that a derived table selects.
func (c *comparer) selects(e sqlparse.Expr) catalog.Value {
	if call, ok := sqlparse.Bare(e).(*sqlparse.Call); ok && sqlfunc.IsAggregate(call) {
		return c.aggregate(call)
	}
	return c.typed(e)
}

// aggregate returns how the results of an aggregate compare, or those of a window function that has
// its name.
func (c *comparer) aggregate(call *sqlparse.Call) catalog.Value {
	switch function := sqlfunc.Aggregates[call.Function()]; {
	case function == sqlfunc.OnlyShards:
		return c.unknown(call)
	case function == merge.Count && c.SQLite:
		return catalog.OfKind(merge.Stored)
	case function == merge.Count:
		return counts
	case len(call.Args) == 0:
		return c.unknown(call)
	case function == merge.Sum:
		return c.summand(call.Args[0])
	case function == sqlfunc.Average:
		return catalog.OfKind(averaged(c.summand(call.Args[0]).Type.Kind))
	}
	v := c.least(call.Args[0])
	if v.As == catalog.Asked { // the result is a text, which may be grouped and computed with
		v = c.typed(call.Args[0])
	}
	v.Type.Collation = merge.Binary
	return v
}
