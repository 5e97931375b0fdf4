package plan

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
)

func (b *builder) expressions(list []sqlparse.Expr, s *scope, seen *names) {
	for _, e := range list {
		b.expression(e, s, seen)
	}
}

// expression finds the subqueries of an expression, and the columns that are
// qualified with the name of a table.
func (b *builder) expression(e sqlparse.Expr, s *scope, seen *names) {
	b.steadily(e)
	if call, ok := e.(*sqlparse.Call); ok && s.isOuters(call) {
		b.ranks++
		b.restless = "an aggregate in a subquery is that of the query around it; write it there"
	}
	switch e := e.(type) {
	case nil:
	case *sqlparse.Column:
		s.qualifier(e.Name.Parts[:len(e.Name.Parts)-1])
	case *sqlparse.Subquery:
		b.query(e.Query, s, seen)
	default:
		b.expressions(sqlparse.Operands(e), s, seen)
		if sqlparse.As(e, sqlparse.Exists) != nil { // one row is as good as another
			of := sqlparse.Operands(e)[0].(*sqlparse.Subquery).Query //nolint:forcetypeassert // EXISTS has a query
			b.limits = slices.DeleteFunc(b.limits, func(l limit) bool { return l.query == of })
		}
	}
}

// steady are functions whose value depends on their arguments alone, and on settings that
// all databases share, such as the time zone.
var steady = words("abs ceil ceiling floor round mod sign power sqrt lower upper lcase ucase length char_length character_length octet_length " +
	"trim ltrim rtrim substr substring left right replace concat concat_ws coalesce ifnull nullif if iif least greatest " +
	"year month day hour minute second date_format from_unixtime json_extract instr locate lpad rpad hex unhex md5 sha1 sha2 bit_count cast convert values")

// timeFunctions are functions of SQLite that read the clock without arguments, and for the
// text now.
var timeFunctions = words("date time datetime julianday unixepoch strftime")

// clockNames are functions without a value of their own that are no aggregates.
var clockNames = words("now sysdate curdate curtime current_date current_time current_timestamp localtime localtimestamp utc_date utc_time utc_timestamp unix_timestamp rand random uuid")

func words(list string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		all[word] = true
	}
	return all
}

// steadily notes the first function or variable whose value may differ from one
// database to another.
func (b *builder) steadily(e sqlparse.Expr) {
	why := b.unsteady(e)
	if b.restless == "" {
		b.restless = why
	}
}

func (b *builder) unsteady(e sqlparse.Expr) string {
	switch e := e.(type) {
	case *sqlparse.Call:
		name := strings.ToLower(last(e.Name))
		switch {
		case e.Over:
			b.ranks++
			return "a window function sees the rows of one database only; add a condition on the sharding key, or compute it before and give it as an argument"
		case name == "last_insert_id" && len(e.Args) == 1: // it tells the value, and returns it
		case !steady[name] && !clockNames[name] && !timeFunctions[name] && aggregates[name] == 0:
			b.ranks++
			return name + " may be an aggregate, or have another value wherever it is computed; add a condition on the sharding key, or compute it before and give it as an argument"
		case clockNames[name], timeFunctions[name] && b.readsClock(e):
			return name + " may have another value wherever it is computed; compute it before, and give it as an argument"
		}
	case *sqlparse.Operation:
		if e.Op == sqlparse.Opaque && strings.Contains(e.Of(b.statement.Text), "@") {
			b.ranks++
			return "a variable has another value on each connection; give the value as an argument"
		}
	}
	return ""
}

// readsClock reports whether a function of SQLite reads the clock. Whether it does so for
// a parameter is known with the argument.
func (b *builder) readsClock(e *sqlparse.Call) bool {
	for _, arg := range e.Args {
		switch arg := bare(arg).(type) {
		case *sqlparse.Literal:
			if strings.EqualFold(arg.Value, "now") {
				return true
			}
		case *sqlparse.Param:
			b.clocks = append(b.clocks, arg.Index)
		}
	}
	return len(e.Args) == 0 || len(e.Args) == 1 && strings.EqualFold(e.Name.Parts[0].Name, "strftime")
}

// timeless refuses an argument for which each of several databases would read its clock.
func (p *Plan) timeless(args []any, as error) error {
	for _, i := range p.clocks {
		v, err := plain(operand{param: i}.value(args))
		if text, ok := v.(string); err == nil && ok && strings.EqualFold(text, "now") {
			return p.refusal(p.refs[0].label(), as, "each database would read its own clock for 'now'; give the time as an argument")
		}
	}
	return nil
}

// isOuters reports whether an aggregate in a subquery is over rows of a query around it:
// all of its columns are of there.
func (s *scope) isOuters(call *sqlparse.Call) bool {
	if s == nil || s.outer == nil || !aggregated(call) {
		return false
	}
	columns := s.columnsOf(call, nil)
	return len(columns) > 0 && !slices.ContainsFunc(columns, func(c column) bool { return slices.Contains(s.refs, c.of) })
}

// columnsOf adds the columns of an expression that are known.
func (s *scope) columnsOf(e sqlparse.Expr, found []column) []column {
	if e == nil {
		return found
	}
	if c, ok := s.column(e); ok {
		return append(found, c)
	}
	for _, operand := range sqlparse.Operands(e) {
		found = s.columnsOf(operand, found)
	}
	return found
}
