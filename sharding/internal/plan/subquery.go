// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/combine"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/splice"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// A query of several shards, or of one shard, may contain a subquery of all rows of another table, or
// of the same: WHERE total > (SELECT AVG(total) FROM orders). If the subquery does not depend on the
// row of the query around it, it can be executed first, and its result written in its place. (Vitess
// calls these pullout subqueries.)

// Subquery is a subquery of a query that may be executed first. Whether it depends on the query
// around it is known once a database has executed it: its names denote columns of its own tables
// first, so if all of them have a meaning without the query around it, they mean the same in it.
type Subquery struct {
	sqlparse.Span // with its parentheses

	// List is set for the right side of IN, which may have any number of rows.
	List bool
	// Compared is set for an operand of a comparison without parameters, in which exact numbers of any type
	// have one meaning. A parameter has the type of the other operand.
	Compared bool
	// Constant is set if the result must be a literal, because it leads to shards or is computed with the
	// results of several. A database treats a literal in another way than a subquery: MySQL converts it to
	// the type of the column that it is compared with.
	Constant bool
	// Computed is set if the subquery selects no column, but an expression to which SQLite converts no
	// other value that is compared with it.
	Computed bool
	// Divides is set if the subquery may contain an AVG or a quotient. A DECIMAL of MySQL and MariaDB then has
	// more digits than its text.
	Divides bool
	// Shown is set if the result is a column by itself.
	Shown bool
	// Exact is set for a List beside a column that is known to hold whole numbers or decimals.
	Exact bool
	// Collation is set if the subquery selects a column of texts, bytes or times, or the MIN or MAX of one, and is
	// compared with another column of the same [catalog.Column.Collation]. Then an argument is compared as the column.
	Collation string

	query *sqlparse.Query
}

// Result is what is written in the place of a subquery.
type Result struct {
	Text   string // with a ? for each of
	Values int    // arguments
}

// Subqueries returns the subqueries of a query that may be executed first, in the order of the text.
// Those in GROUP BY and ORDER BY are not among them, because a number there is the position of a column,
// and neither are those in a column without an alias, which would have another name.
func Subqueries(p *Plan) []Subquery {
	if p.Statement.Verb != sqlparse.Select || p.Statement.Executable || p.Statement.Explains || splice.Named(p.Statement) {
		return nil
	}
	b := analysis.Walk(p.Statement, p.Snapshot, p.Options)
	f := subqueryFinder{Analysis: b}
	f.query(p.Statement.Query)
	if f.ctes { // a subquery could read one
		return nil
	}
	if b.SQLite { // where "x" is a text if no column has the name
		f.found = slices.DeleteFunc(f.found, func(s Subquery) bool { return strings.Contains(s.Of(f.Statement.Text), `"`) })
	}
	slices.SortFunc(f.found, func(a, b Subquery) int { return a.From - b.From })
	return f.found
}

// readsHomeFirst reports whether a subquery that may be executed first reads a table of the home database.
func readsHomeFirst(p *Plan) bool {
	isHome := func(r *analysis.Reference) bool { return r.Role == analysis.Home && r.At != nil }
	return slices.ContainsFunc(p.Refs, isHome) && slices.ContainsFunc(Subqueries(p), func(s Subquery) bool {
		return slices.ContainsFunc(p.Refs, func(r *analysis.Reference) bool { return isHome(r) && r.At.Name.Span.In(s.Span) })
	})
}

// Surplus refuses a statement of PostgreSQL on routed tables that has more arguments than parameters, because
// its values are then other arguments: pgx accepts arguments for itself before them.
func Surplus(p *Plan, args int) error {
	if !p.Routed || !p.Single() || args <= p.Statement.Args {
		return nil
	}
	return p.Refusal(p.Table(), sharding.ErrMissingKey, fmt.Sprintf("it has %d parameters and %d arguments; leave the others out; "+
		"write $1, $2 for those of pgx.NamedArgs, and set options of pgx in the connection string, such as default_query_exec_mode", p.Statement.Args, args))
}

// Executed returns the text of a subquery and its arguments among those of the statement.
func Executed(p *Plan, s Subquery) (text string, args []int) {
	return splice.Alone(p.Statement, s.query.Span)
}

// Averaged returns the text of a subquery that returns an average, with the sum and the count in place of the
// average, and its arguments. It returns "" for other subqueries. It is for MySQL, whose parameters have no numbers.
func Averaged(p *Plan, s Subquery) (text string, args []int) {
	item := onlyItem(s.query)
	if item == nil {
		return "", nil
	}
	call, ok := item.Expr.(*sqlparse.Call)
	if !ok || call.Function() != "avg" || len(call.Args) != 1 || call.Distinct || call.Odd || call.Over || item.Alias.Name != "" || analysis.Parametrized(call) ||
		len(divisions.FindAllString(s.Of(p.Statement.Text), 2)) > 1 {
		return "", nil
	}
	of := call.Args[0].Bytes().Of(p.Statement.Text)
	text = p.Statement.Text[s.query.From:call.From] + "SUM(" + of + "), COUNT(" + of + ")" + p.Statement.Text[call.To:s.query.To]
	return text, splice.ArgsIn(p.Statement, s.query.Span)
}

// Substituted returns the text of the statement with the results of some subqueries in their place, and
// its arguments among those of the statement, which the values of the results follow.
func Substituted(p *Plan, all []Subquery, results []Result) (text string, args []int) {
	edits, next := make([]splice.Edit, len(all)), p.Statement.Args
	for i, s := range all {
		r := results[i]
		edits[i] = splice.Edit{Span: s.Span, With: "(" + r.Text + ")"}
		for range r.Values {
			edits[i].Args = append(edits[i].Args, next)
			next++
		}
		if r.Values > 0 && (p.Options.Reads.Family == sqlparse.PostgreSQL || splice.Numbered(p.Statement)) {
			edits[i].With = splice.Marked(p.Statement, edits[i].With, edits[i].Args)
		}
	}
	return rewritten(p, edits)
}

// StandsAlone reports whether the statement of a plan may be executed before the query in which it is this
// subquery: it leaves no state, has one value for all rows of the query, names none of its tables, and
// its result is not known to be something else than a number or the values of a column.
func StandsAlone(p *Plan, s Subquery) bool {
	return p.Stateless && !p.Foreign && (p.mayBeNumber || s.Collation != "")
}

// subqueryFinder collects subqueries.
type subqueryFinder struct {
	*analysis.Analysis
	scope    *analysis.Scope // of the present SELECT
	derived  int             // the derived tables and the UNIONs around it
	found    []Subquery
	ctes     bool
	constant bool // of the present expression, as shown
	shown    bool
}

func (f *subqueryFinder) query(q *sqlparse.Query) {
	f.ctes = f.ctes || q.With != nil
	if len(q.Parts) > 1 {
		f.derived++
		defer func() { f.derived-- }()
	}
	for _, part := range q.Parts {
		switch {
		case part.Nested != nil:
			f.query(part.Nested)
		case part.Select != nil:
			f.core(part.Select)
		}
	}
}

func (f *subqueryFinder) core(c *sqlparse.Core) {
	defer func(outer *analysis.Scope) { f.scope = outer }(f.scope)
	f.scope = f.Scopes[c]
	for i := range c.From {
		f.source(&c.From[i])
	}
	for _, item := range c.Items {
		if item.Alias.Name != "" {
			f.shown = f.derived == 0 && sqlparse.Is[*sqlparse.Subquery](sqlparse.Bare(item.Expr))
			f.constant = f.shown || sqlfunc.HasAggregate(item.Expr)
			f.expression(item.Expr, false)
			f.constant, f.shown = false, false
		}
	}
	f.expression(c.Where, false)
	f.expression(c.Having, false)
}

func (f *subqueryFinder) source(s *sqlparse.Source) {
	switch {
	case s.Join != nil:
		f.source(s.Join.Left)
		f.source(s.Join.Right)
		f.expression(s.Join.On, false)
	case s.Query != nil:
		f.derived++
		f.query(s.Query)
		f.derived--
	}
}

func (f *subqueryFinder) expression(e sqlparse.Expr, compared bool) {
	switch e := e.(type) {
	case *sqlparse.Subquery:
		f.add(Subquery{Span: e.Span, Compared: compared, query: e.Query})
	case *sqlparse.Call:
		if e.Over || e.Odd || sqlfunc.Quantified(e) {
			return
		}
		args := e.Args
		if digits[e.Function()] { // the digits of the result depend on whether their number is a constant
			args = args[:min(len(args), 1)]
		}
		for _, arg := range args {
			f.expression(arg, false)
		}
	case *sqlparse.Operation:
		f.operation(e)
	}
}

// divisions matches what may have a result with more digits than its text.
var divisions = regexp.MustCompile(`(?i)/|\bavg\b`)

// digits lists the functions whose second argument is a number of digits.
var digits = sqlfunc.Words("round truncate")

// add omits ARRAY(SELECT …) and the like, whose parentheses are not those of the subquery, and SQLite's
// x IN table. In two pairs of parentheses a subquery after IN is a scalar of some databases.
func (f *subqueryFinder) add(s Subquery) {
	if f.Statement.Text[s.From] == '(' && f.Statement.Text[s.query.From] != '(' {
		s.Constant, s.Shown, s.Computed, s.Divides = f.constant, f.shown, selectsComputed(s.query), divisions.MatchString(s.Of(f.Statement.Text))
		f.found = append(f.found, s)
	}
}

// onlyItem returns the item of a query that is one SELECT of one item, otherwise nil.
func onlyItem(q *sqlparse.Query) *sqlparse.Item {
	if core := analysis.CoreOf(q); core != nil && len(core.Items) == 1 {
		return &core.Items[0]
	}
	return nil
}

// selectsComputed reports whether a query selects the result of a function, or of arithmetic.
func selectsComputed(q *sqlparse.Query) bool {
	item := onlyItem(q)
	if item == nil {
		return false
	}
	switch e := sqlparse.Bare(item.Expr).(type) {
	case *sqlparse.Call, *sqlparse.Literal:
		return true
	case *sqlparse.Operation:
		return e.Op >= sqlparse.Add && e.Op <= sqlparse.Mod
	}
	return false
}

// isNumber reports whether MySQL compares an operand with a list of numbers as it does with a subquery: it may
// convert the numbers beside a time, a year or a text. A table whose columns are unknown does not exist.
func (f *subqueryFinder) isNumber(e sqlparse.Expr) bool {
	e = sqlparse.Bare(e)
	switch e := e.(type) {
	case *sqlparse.Column:
		of, ok := f.scope.Column(e)
		return ok && of.IsNumber() || len(f.Options.Schema) == 0
	case *sqlparse.Call:
		name := e.Function()
		if sqlfunc.Integers[name] || sqlfunc.Aggregates[name] == merge.Count {
			return true
		}
		if !ofNumbers[name] {
			return false
		}
	case *sqlparse.Operation:
		if e.Op != sqlparse.Case && (e.Op < sqlparse.Add || e.Op > sqlparse.Mod) && combine.Negated(e, f.Statement.Text) == nil {
			return false
		}
	}
	return !slices.ContainsFunc(sqlparse.Operands(e), func(e sqlparse.Expr) bool { return !f.isNumber(e) })
}

// ofNumbers lists the functions whose results are numbers if their arguments are.
var ofNumbers = sqlfunc.Words("abs mod sign coalesce ifnull nullif if greatest least sum avg min max", sqlfunc.Rounds)

// converts reports whether a database may convert a literal beside an operand, or the operand beside a subquery of
// numbers. SQLite converts a text beside a column of numbers, and a literal has no such column.
func (f *subqueryFinder) converts(e sqlparse.Expr) bool {
	e = sqlparse.Bare(e)
	switch e := e.(type) {
	case *sqlparse.Column:
		of, ok := f.scope.Column(e)
		return !f.Postgres && !(ok && of.IsNumber())
	case *sqlparse.Literal:
		return e.Kind == sqlparse.Text
	case *sqlparse.Call:
		if sqlfunc.IsAggregate(e) {
			return f.SQLite && sqlfunc.Aggregates[e.Function()] != merge.Count && sqlfunc.Aggregates[e.Function()] != merge.Sum && !sqlfunc.IsAverage(e)
		}
	case *sqlparse.Subquery:
		return false
	}
	return slices.ContainsFunc(sqlparse.Operands(e), f.converts)
}

// isExact reports whether an operand is a column that is known to hold whole numbers or decimals.
func (f *subqueryFinder) isExact(e sqlparse.Expr) bool {
	c, ok := f.scope.Column(e)
	return ok && c.IsNumber() && c.Of.Schema.Columns[c.Name].Value.Type.Kind != merge.Float
}

// leads reports whether an operand is a column of whole numbers that leads to shards.
func (f *subqueryFinder) leads(e sqlparse.Expr) bool {
	c, ok := f.scope.Column(e)
	if !ok {
		return false
	}
	l := c.Of.Lead(c.Name)
	return l != nil && l.Rule != nil && l.Holds == catalog.Integers
}

func (f *subqueryFinder) operation(o *sqlparse.Operation) {
	switch o.Op {
	case sqlparse.Opaque, sqlparse.Exists, sqlparse.Tuple:
		return
	}
	isComparison := o.Op >= sqlparse.Equal && o.Op <= sqlparse.Between
	compares := isComparison && !slices.ContainsFunc(o.Operands, analysis.Parametrized)
	if isComparison {
		defer func(before bool) { f.constant = before }(f.constant)
		combined := f.constant || slices.ContainsFunc(o.Operands, sqlfunc.HasAggregate)
		f.constant = slices.ContainsFunc(o.Operands, f.leads) || combined && !slices.ContainsFunc(o.Operands, f.converts)
	}
	for i, operand := range o.Operands {
		sub, is := operand.(*sqlparse.Subquery)
		switch {
		case is && o.Op == sqlparse.In && i == 1 && len(o.Operands) == 2:
			left := o.Operands[0]
			collation := f.collation(left, sub.Query)
			if !f.MySQL || collation != "" || f.isNumber(left) {
				f.constant = f.leads(left)
				f.add(Subquery{Span: sub.Span, List: true, Compared: compares, Exact: f.isExact(left), Collation: collation, query: sub.Query})
			}
		case is && o.Op >= sqlparse.Equal && o.Op <= sqlparse.GreaterEqual && len(o.Operands) == 2:
			f.add(Subquery{Span: sub.Span, Compared: compares, Collation: f.collation(o.Operands[1-i], sub.Query), query: sub.Query})
		default:
			f.expression(operand, compares)
		}
	}
}

// collation returns the collation of an operand and of the column that a query beside it selects, if it is
// the same. It returns "" for others.
func (f *subqueryFinder) collation(beside sqlparse.Expr, q *sqlparse.Query) string {
	item := onlyItem(q)
	if item == nil || item.Star || sqlfunc.HasAggregate(q.Parts[0].Select.Where) { // an aggregate in WHERE belongs to the query around it
		return ""
	}
	selected := sqlparse.Bare(item.Expr)
	if call, ok := selected.(*sqlparse.Call); ok && sqlfunc.IsAggregate(call) && len(call.Args) == 1 && !call.Over && !call.Odd && (sqlfunc.Aggregates[call.Function()] == merge.Min || sqlfunc.Aggregates[call.Function()] == merge.Max) {
		selected = call.Args[0]
	}
	one, known := f.scope.Column(beside)
	other, isColumn := f.Scopes[q.Parts[0].Select].Column(selected)
	if !known || !isColumn {
		return ""
	}
	if name := one.Of.Schema.Columns[one.Name].Collation; name == other.Of.Schema.Columns[other.Name].Collation {
		return name
	}
	return ""
}
