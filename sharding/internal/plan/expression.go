// SPDX-License-Identifier: Apache-2.0

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

// expression finds the subqueries of an expression, and the columns that are qualified with the
// name of a table.
func (b *builder) expression(e sqlparse.Expr, s *scope, seen *names) {
	b.recordVolatile(e)
	call, ok := e.(*sqlparse.Call)
	if ok && call.Over {
		b.window(call, s)
	}
	if ok && s.isOuters(call) {
		b.ranks++
		b.volatileReason = "an aggregate in a subquery belongs to the outer query; write it there"
	}
	if s != nil && quantified(e) {
		s.quantified = true
	}
	switch e := e.(type) {
	case nil:
	case *sqlparse.Column:
		s.qualified(e.Name)
	case *sqlparse.Subquery:
		b.query(e.Query, s, seen)
	default:
		b.expressions(sqlparse.Operands(e), s, seen)
		if sqlparse.As(e, sqlparse.Exists) != nil { // any row suffices
			of := sqlparse.Operands(e)[0].(*sqlparse.Subquery).Query //nolint:forcetypeassert // EXISTS has a query
			b.limits = slices.DeleteFunc(b.limits, func(l limit) bool { return l.query == of })
		}
	}
}

// quantified reports whether an expression is ALL (SELECT …), ANY (SELECT …) or SOME (SELECT …),
// which the parser returns as calls.
func quantified(e sqlparse.Expr) bool {
	call, ok := e.(*sqlparse.Call)
	if !ok || len(call.Args) != 1 || !quantifiers[nameOf(call)] {
		return false
	}
	_, ok = call.Args[0].(*sqlparse.Subquery)
	return ok
}

var quantifiers = words("all any some")

// deterministic lists the functions whose value depends only on their arguments and on settings that all
// databases share, such as the time zone.
var deterministic = words("abs ceil ceiling floor round truncate trunc mod sign power sqrt lower upper lcase ucase length char_length character_length octet_length " +
	"trim ltrim rtrim substr substring left right replace concat concat_ws coalesce ifnull nullif if iif least greatest " +
	"year month day hour minute second date_format from_unixtime json_extract instr locate lpad rpad hex unhex md5 sha1 sha2 bit_count cast convert values " +
	"quarter dayofmonth dayofweek dayofyear weekday weekofyear yearweek last_day to_days datediff timestampdiff date_add date_sub adddate subdate str_to_date makedate extract " +
	"json_valid json_type json_unquote json_quote json_length json_array_length json_depth json_keys json_contains json_contains_path json_search " +
	"json_array json_object json_set json_insert json_replace json_remove json_merge_patch json_merge_preserve " +
	"ascii field find_in_set strcmp substring_index reverse repeat crc32 typeof quote unicode " +
	"date_trunc date_part to_char to_date to_number split_part btrim initcap starts_with strpos position translate regexp_replace " +
	"jsonb_extract_path jsonb_extract_path_text jsonb_typeof jsonb_array_length cardinality array_length encode decode sha256")

// timeFunctions lists the functions that read the clock without arguments, and those of SQLite that
// read it for the text 'now'.
var timeFunctions = words("date time datetime julianday unixepoch strftime unix_timestamp")

// clockNames lists the functions that are written like columns and are not aggregates.
var clockNames = words("now sysdate curdate curtime current_date current_time current_timestamp localtime localtimestamp utc_date utc_time utc_timestamp rand random uuid")

func words(list string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		all[word] = true
	}
	return all
}

// variance records values that may differ between databases.
type variance struct {
	text           string   // of the statement
	postgres       bool     // in which @ is a part of operators
	volatileReason string   // why its values may differ, whatever its conditions are
	ranks          int      // the number of variables and unknown functions in it
	windows        []window // the window functions in it
	times          []int    // parameters for which functions of SQLite may read the clock
}

// recordVolatile records the first function or variable whose value may differ between databases.
func (v *variance) recordVolatile(e sqlparse.Expr) {
	why := v.unsteady(e)
	if v.volatileReason == "" {
		v.volatileReason = why
	}
}

func (v *variance) unsteady(e sqlparse.Expr) string {
	switch e := e.(type) {
	case *sqlparse.Call:
		name := strings.ToLower(last(e.Name))
		switch {
		case e.Over && ranking[name], quantified(e):
		case quantifiers[name] && len(e.Args) == 1: // of an array
		case name == "last_insert_id" && len(e.Args) == 1: // it stores its argument, and returns it
		case !deterministic[name] && !clockNames[name] && !timeFunctions[name] && aggregates[name] == 0:
			v.ranks++
			return name + " may be an aggregate, or have another value in each database; add a condition on the sharding key, or compute it first and pass it as an argument"
		case clockNames[name], timeFunctions[name] && v.readsClock(e):
			return name + " may have another value in each database; compute it first, and pass it as an argument"
		}
	case *sqlparse.Operation:
		if e.Op == sqlparse.Opaque && !v.postgres && strings.Contains(e.Of(v.text), "@") {
			v.ranks++
			return "a variable may have another value on each connection; pass the value as an argument"
		}
	}
	return ""
}

// readsClock reports whether a call of one of these functions reads the clock. For a parameter that
// depends on the argument.
func (v *variance) readsClock(e *sqlparse.Call) bool {
	for _, arg := range e.Args {
		switch arg := bare(arg).(type) {
		case *sqlparse.Literal:
			if strings.EqualFold(arg.Value, "now") {
				return true
			}
		case *sqlparse.Param:
			v.times = append(v.times, arg.Index)
		}
	}
	return len(e.Args) == 0 || len(e.Args) == 1 && strings.EqualFold(e.Name.Parts[0].Name, "strftime")
}

// timeless refuses an argument for which each of several databases would read its clock.
func (p *binding) timeless(as error) error {
	for _, i := range p.clocks {
		v, err := plain(operand{param: i}.value(p.args))
		if text, ok := v.(string); err == nil && ok && strings.EqualFold(text, "now") {
			return p.refusal(p.refs[0].label(), as, "each database would read its own clock for 'now'; pass the time as an argument")
		}
	}
	return nil
}

// isOuters reports whether an aggregate in a subquery belongs to an outer query: all of its columns
// are columns of that query.
func (s *scope) isOuters(call *sqlparse.Call) bool {
	if s == nil || s.outer == nil || !aggregated(call) {
		return false
	}
	columns := s.columnsOf(call, nil)
	return len(columns) > 0 && !slices.ContainsFunc(columns, func(c column) bool { return slices.Contains(s.refs, c.of) })
}

// columnsOf appends the known columns of an expression.
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

// window is a window function, and the scope whose rows it reads.
type window struct {
	call *sqlparse.Call
	of   *scope
}

// ranking lists the window functions whose values depend only on the rows of their partition;
// counting lists those of them that count rows.
var (
	ranking  = words("row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value count sum avg min max")
	counting = words("row_number rank dense_rank ntile count")
)

// window records a window function.
func (v *variance) window(call *sqlparse.Call, s *scope) {
	v.windows = append(v.windows, window{call, s})
	if s != nil {
		s.windows = append(s.windows, call)
	}
}

// differs returns why several databases may compute different values for a part of the statement,
// or "".
func (b *builder) differs() string {
	switch {
	case b.volatileReason != "":
		return b.volatileReason
	case slices.ContainsFunc(b.windows, func(w window) bool { return !b.partitioned(w) }):
		return "a window function sees the rows of one database only; add PARTITION BY with the sharding key to it, or a condition on the sharding key to the query, or compute it first and pass it as an argument"
	}
	return ""
}

// partitioned reports whether each partition is on one shard.
func (b *builder) partitioned(w window) bool {
	return w.of != nil && !w.call.Odd && slices.ContainsFunc(w.call.Window[:w.call.Partition], func(e sqlparse.Expr) bool {
		c, ok := w.of.column(e)
		return ok && slices.Contains(w.of.refs, c.of) && b.keyed(w.of, e)
	})
}
