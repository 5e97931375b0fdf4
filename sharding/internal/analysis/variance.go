// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// Variance records values that may differ between databases.
type Variance struct {
	text           string         // of the statement
	Rules          sqltext.Flavor // of the text
	Postgres       bool
	engine         merge.Engine
	VolatileReason string   // why its values may differ, whatever its conditions are
	Remains        string   // the function whose lock or setting stays on its connection, or ""
	Changes        bool     // a function changes, or locks, something in its database
	Gathers        bool     // it has an ARRAY (SELECT …), whose order each database chooses
	Ranks          int      // the number of variables and unknown functions in it
	Windows        []Window // of its SELECTs
	Times          []int    // parameters for which functions of SQLite may read the clock
	Zones          []Zone   // the time zones of CONVERT_TZ in it
	instants       []Instant
	labels         bool // a column of a result is named by a text with an Instant
}

// Instant is a function of a statement that reads the clock. Several databases would read different
// clocks. So a statement for several is planned again with the time of one of them: see the planner's At.
type Instant struct {
	sqlparse.Span

	Query   string // the expression with which a database returns its time as a text
	Sample  string // such a text, for a statement that is not executed
	Written string // the literal of the time, with % for the text
}

const (
	sampleDate   = "2000-01-01"
	sampleTime   = "00:00:00"
	sampleMoment = sampleDate + " " + sampleTime
)

// instants maps the functions that read the clock to the literals of their types, by the names of
// MySQL and MariaDB, of PostgreSQL, and of SQLite.
var instants = []map[string]Instant{
	merge.MySQL: instantsOf("CAST(% AS CHAR)", map[string]Instant{
		"now localtime localtimestamp current_timestamp utc_timestamp": {Written: "TIMESTAMP'%'", Sample: sampleMoment},
		"curdate current_date utc_date":                                {Written: "DATE'%'", Sample: sampleDate},
		"curtime current_time utc_time":                                {Written: "TIME'%'", Sample: sampleTime},
		"unix_timestamp":                                               {Written: "(%)", Sample: "946684800"}, // a name may follow without a space
	}),
	merge.PostgreSQL: instantsOf("CAST(% AS TEXT)", map[string]Instant{
		"now current_timestamp": {Written: "TIMESTAMPTZ '%'", Sample: sampleMoment},
		"localtimestamp":        {Written: "TIMESTAMP '%'", Sample: sampleMoment},
		"current_date":          {Written: "DATE '%'", Sample: sampleDate},
		"localtime":             {Written: "TIME '%'", Sample: sampleTime},
	}),
	merge.SQLite: instantsOf("%", map[string]Instant{
		"current_timestamp": {Written: "'%'", Sample: sampleMoment},
		"current_date":      {Written: "'%'", Sample: sampleDate},
		"current_time":      {Written: "'%'", Sample: sampleTime},
	}),
}

// instantsOf returns the instants by each of their names.
func instantsOf(query string, written map[string]Instant) map[string]Instant {
	all := map[string]Instant{}
	for names, made := range written {
		made.Query = query
		for name := range sqlfunc.Words(names) {
			all[name] = made
		}
	}
	return all
}

// instant records a function that reads the clock, if its value can be written as a literal.
func (v *Variance) instant(e sqlparse.Expr) {
	call, ok := e.(*sqlparse.Call)
	if !ok {
		return
	}
	name := call.Function()
	made, known := instants[v.engine][name]
	made.Span, made.Query = call.Span, strings.Replace(made.Query, "%", strings.ToLower(call.Of(v.text)), 1)
	switch {
	case known && len(call.Args) == 0:
	case known && len(call.Args) == 1 && name != "unix_timestamp":
		if digits, isLiteral := call.Args[0].(*sqlparse.Literal); !isLiteral || digits.Kind != sqlparse.Integer {
			return
		}
	case v.engine == merge.SQLite && sqlfunc.TimeFunctions[name]:
		v.nows(call)
		return
	default:
		return
	}
	v.instants = append(v.instants, made)
}

// nows records the texts 'now' among the arguments of a function of SQLite. Their time is in UTC,
// which the modifier 'utc' does not change.
func (v *Variance) nows(call *sqlparse.Call) {
	for _, arg := range call.Args {
		if l, ok := sqlparse.Bare(arg).(*sqlparse.Literal); ok && l.Kind == sqlparse.Text && strings.EqualFold(l.Value, "now") {
			v.instants = append(v.instants, Instant{Span: l.Span, Query: "strftime('%Y-%m-%d %H:%M:%f', 'now')", Sample: sampleMoment, Written: "'%Z'"})
		}
	}
}

// EveryInstant returns the instants in the order of the text, with those of the rows of an INSERT
// that are written like the row before them. It returns none if the time cannot be written into the
// text.
func (v *Variance) EveryInstant(of *sqlparse.Statement) []Instant {
	if v.labels {
		return nil
	}
	all := slices.Clone(v.instants)
	if in := of.Insert; in != nil {
		var written sqlparse.Row
		for _, row := range in.Rows {
			if !row.Shares() {
				written = row
				continue
			}
			for _, one := range v.instants {
				if one.Span.In(written.Span) {
					one.From, one.To = one.From+row.From-written.From, one.To+row.From-written.From
					all = append(all, one)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b Instant) int { return a.From - b.From })
	return all
}

// unsteady returns why the value of a function or variable may differ between databases, or "".
func (v *Variance) unsteady(e sqlparse.Expr) string {
	switch e := e.(type) {
	case *sqlparse.Call:
		name, last := e.Function(), strings.ToLower(e.Name.Last().Name) // an extension may have any schema
		if sqlfunc.Remaining[last] {
			v.Remains = last
		}
		v.Changes = v.Changes || sqlfunc.Changing[last]
		switch {
		case e.Over && sqlfunc.Ranking[name], sqlfunc.Quantified(e), sqlfunc.Configured(e, name):
		case sqlfunc.Gathers(e):
			v.Gathers = true
		case sqlfunc.Quantifiers[name] && len(e.Args) == 1: // of an array
		case name == "last_insert_id" && len(e.Args) == 1: // it stores its argument, and returns it
		case name == "convert_tz" && v.converts(e):
		case sqlfunc.RowSources[name]:
			v.Ranks++
			return name + " returns rows, which are combined only in FROM; write it there: FROM a, " + name + "(…) AS b"
		case name == "match" && v.engine == merge.MySQL:
			v.Ranks++
			return "the relevance of MATCH depends on all rows of a database; use it as a condition IN BOOLEAN MODE alone, or add a condition on the sharding key"
		case !sqlfunc.Deterministic[last] && !sqlfunc.ClockNames[name] && !sqlfunc.TimeFunctions[name] && sqlfunc.Aggregates[name] == 0:
			v.Ranks++
			return name + " may be an aggregate, or have another value in each database; add a condition on the sharding key, or compute it first and pass it as an argument"
		case sqlfunc.ClockNames[name], sqlfunc.TimeFunctions[name] && v.readsClock(e):
			if instants[v.engine][name].Query != "" {
				return name + " may have another value in each database; name the column of the result that it is in, or compute it first and pass it as an argument"
			}
			return name + " may have another value in each database; compute it first, and pass it as an argument"
		}
	case *sqlparse.Operation:
		if e.Op == sqlparse.Opaque && v.engine == merge.MySQL && sqltext.WordsMention(e.Of(v.text), v.Rules, "@") {
			v.Ranks++
			return "a variable may have another value on each connection; pass the value as an argument"
		}
	}
	return ""
}

// Zone is a time zone of CONVERT_TZ of MySQL and MariaDB: a literal, or the parameter with an index.
type Zone struct {
	Name  string
	Param int // -1 for a literal
}

// converts reports whether the zones of CONVERT_TZ are known, and records them.
func (v *Variance) converts(e *sqlparse.Call) bool {
	if len(e.Args) != 3 || e.Odd || e.Over {
		return false
	}
	for _, arg := range e.Args[1:] {
		zone, isText := Literal(arg, sqlparse.Text)
		param, isParam := sqlparse.Bare(arg).(*sqlparse.Param)
		switch {
		case isText:
			v.Zones = append(v.Zones, Zone{Name: zone, Param: -1})
		case isParam:
			v.Zones = append(v.Zones, Zone{Param: param.Index})
		default:
			return false
		}
	}
	return true
}

// Shuffles reports whether an expression is the random number by which a query sorts its rows. Each row has its own,
// whatever database it is in.
func Shuffles(b *Analysis, e sqlparse.Expr) bool {
	call, ok := e.(*sqlparse.Call)
	if !ok || len(call.Args) > 0 || call.Function() != [...]string{merge.MySQL: "rand", merge.SQLite: "random", merge.PostgreSQL: "random"}[b.engine] || b.Statement.Verb != sqlparse.Select {
		return false
	}
	q := b.Statement.Query
	core := q.Parts[0].Select
	return len(q.Parts) == 1 && core != nil && !core.Distinct && len(core.DistinctOn) == 0 && !IsGrouped(core) &&
		slices.ContainsFunc(q.OrderBy, func(o sqlparse.Order) bool { return sqlparse.Bare(o.Expr) == e })
}

// findsWords reports whether an expression is a condition of WHERE that searches texts in Boolean mode. A row satisfies it or not, whatever
// rows its database has besides. Its relevance, which it has in other places and modes, depends on these.
func findsWords(b *Analysis, e sqlparse.Expr) bool {
	call, ok := e.(*sqlparse.Call)
	if !ok || call.Function() != "match" || b.engine != merge.MySQL || b.Statement.Verb != sqlparse.Select {
		return false
	}
	words := strings.Join(strings.Fields(strings.ToLower(call.Of(b.Statement.Text))), " ")
	return strings.HasSuffix(strings.TrimRight(words, ") "), " in boolean mode") &&
		slices.ContainsFunc(b.Statement.Query.Parts, func(p *sqlparse.Part) bool {
			return p.Select != nil && slices.ContainsFunc(sqlparse.Conjuncts(p.Select.Where), func(c sqlparse.Expr) bool { return sqlparse.Bare(c) == e })
		})
}

// readsClock reports whether a call of one of these functions reads the clock. For a parameter that
// depends on the argument.
func (v *Variance) readsClock(e *sqlparse.Call) bool {
	first := 0
	if e.Function() == "strftime" {
		first = 1
	}
	for i, arg := range e.Args {
		switch arg := sqlparse.Bare(arg).(type) {
		case *sqlparse.Literal:
			if strings.EqualFold(arg.Value, "now") || i == first && strings.HasPrefix(strings.ToLower(arg.Value), "subsec") { // which omits 'now'
				return true
			}
		case *sqlparse.Param:
			v.Times = append(v.Times, arg.Index)
		}
	}
	return len(e.Args) <= first
}

// Window is a window function, or an aggregate that only a shard computes (sqlfunc.OnlyShards), and the scope whose rows it reads.
type Window struct {
	Call *sqlparse.Call
	Of   *Scope
}
