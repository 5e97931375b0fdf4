// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
)

func (b *builder) expressions(list []sqlparse.Expr, s *scope, seen *names) {
	for _, e := range list {
		b.expression(e, s, seen)
	}
}

// expression finds the subqueries of an expression, and the columns that are qualified with the
// name of a table.
func (b *builder) expression(e sqlparse.Expr, s *scope, seen *names) {
	b.volatileReason = cmp.Or(b.volatileReason, b.unsteady(e)) // the first function or variable whose value may differ between databases
	b.instant(e)
	call, ok := e.(*sqlparse.Call)
	if ok && (call.Over || aggregates[call.Function()] == onlyShards) {
		b.windows = append(b.windows, window{call, s})
	}
	if ok && call.Over && s != nil {
		s.windows = append(s.windows, call)
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
		b.foreign = !s.qualified(e.Name) || !b.aliases[strings.ToLower(e.Name.Last().Name)] && s.lacks(e.Name) || b.foreign
	case *sqlparse.Subquery:
		b.query(e.Query, s, seen)
	default:
		operands := sqlparse.Operands(e)
		if ok && unitFirst[call.Function()] && len(operands) > 0 {
			operands = operands[1:]
		}
		b.expressions(operands, s, seen)
		if sqlparse.As(e, sqlparse.Exists) != nil { // any row suffices
			of := sqlparse.Operands(e)[0].(*sqlparse.Subquery).Query //nolint:forcetypeassert // EXISTS has a query
			b.limits = slices.DeleteFunc(b.limits, func(l limit) bool { return l.query == of })
		}
	}
}

// lacks reports whether certainly no table has a column with a name, which is not qualified.
func (s *scope) lacks(n sqlparse.Name) bool {
	name := strings.ToLower(n.Last().Name)
	if len(n.Parts) > 1 || everywhere[name] || clockNames[name] || s.named(name) != nil {
		return false
	}
	for ; s != nil; s = s.outer {
		if r, certain := s.find("", name); r != nil || !certain {
			return false
		}
	}
	return true
}

// everywhere lists the columns that each table of SQLite or PostgreSQL has.
var everywhere = words("rowid _rowid_ oid ctid tableoid xmin xmax cmin cmax")

// quantified reports whether an expression is ALL (SELECT …), ANY (SELECT …) or SOME (SELECT …),
// which the parser returns as calls.
func quantified(e sqlparse.Expr) bool {
	call, ok := e.(*sqlparse.Call)
	if !ok || len(call.Args) != 1 || !quantifiers[call.Function()] {
		return false
	}
	_, ok = call.Args[0].(*sqlparse.Subquery)
	return ok
}

var quantifiers = words("all any some")

// deterministic lists the functions whose value depends only on their arguments and on settings that all
// databases share, such as the time zone.
var deterministic = words(`abs mod sign power sqrt coalesce ifnull nullif if iif least greatest date_format from_unixtime json_extract
	hex unhex bit_count cast convert values last_day str_to_date
	makedate extract json_valid json_type json_unquote json_quote json_length json_array_length json_depth
	json_keys json_contains json_contains_path json_search json_array json_object json_set json_insert
	json_replace json_remove json_merge_patch json_merge_preserve json_overlaps json_exists json_query json_equals json_normalize
	json_array_append json_array_insert json_pretty json_compact json_loose json_detailed json json_patch json_each json_tree repeat crc32 typeof quote
	dayname monthname microsecond timediff time_format sec_to_time time_to_sec to_seconds from_days maketime
	period_add period_diff timestampadd addtime subtime format printf mid space elt conv bin oct pow exp ln log log2 log10
	pi degrees radians regexp_substr regexp_instr regexp_like to_base64 from_base64 inet_aton inet_ntoa json_value
	unicode date_trunc date_part to_char to_date to_number btrim starts_with position jsonb_extract_path
	jsonb_extract_path_text json_extract_path json_extract_path_text json_typeof jsonb_set jsonb_insert jsonb_exists
	jsonb_path_exists jsonb_path_match jsonb_path_query_first jsonb_typeof jsonb_array_length cardinality array_length encode decode sha256
	json_build_object json_build_array jsonb_build_object jsonb_build_array to_json to_jsonb row_to_json array_to_json json_strip_nulls jsonb_strip_nulls
	jsonb_pretty array_to_string string_to_array array_position array_positions array_append array_prepend array_remove array_replace array_cat
	array_upper array_lower host masklen network family to_hex chr char ord insert soundex sha224 sha384 sha512 div gcd lcm cbrt
	make_date make_time make_timestamp make_interval date_bin justify_days justify_hours justify_interval to_timestamp isfinite num_nulls num_nonnulls
	ts_rank ts_rank_cd setweight similarity int4range int8range numrange daterange tsrange tstzrange isempty lower_inc upper_inc
	sin cos tan cot asin acos atan atan2 inet6_aton inet6_ntoa bin_to_uuid uuid_to_bin is_uuid
	point st_x st_y st_distance st_distance_sphere st_dwithin st_contains st_within st_intersects st_astext st_geomfromtext st_makepoint st_setsrid`,
	folds, parts, clocks, shifts, digests, rounds, joins, integers)

// timeFunctions lists the functions that read the clock without arguments, and those of SQLite that
// read it for the text 'now'.
var timeFunctions = words("date time datetime julianday unixepoch strftime timediff unix_timestamp")

// clockNames lists the functions that are written like columns and are not aggregates.
var clockNames = words("now sysdate curdate curtime current_date current_time current_timestamp localtime localtimestamp utc_date utc_time utc_timestamp rand random uuid")

var (
	folds = words("lower upper lcase ucase") // their results have the collation of the column
	// The results of parts have it, too, and on MySQL and MariaDB they are no longer than its
	// texts.
	parts = words("trim ltrim rtrim left right substr substring substring_index")
	// The arguments of clocks are times, and their results are integers.
	clocks = words("year month day hour minute second quarter dayofmonth dayofweek dayofyear weekday week weekofyear yearweek")
	// The results of shifts are times, as their first arguments are.
	shifts = words("date_add date_sub adddate subdate")
	// digests are written with digits and small letters on MySQL and MariaDB.
	digests = words("md5 sha sha1 sha2")
	rounds  = words("round truncate trunc floor ceil ceiling")
	// joins are the functions of PostgreSQL that make a text of other values.
	joins = words("concat concat_ws replace initcap lpad rpad reverse translate regexp_replace split_part md5")
	// The results of integers are integers, whatever their arguments are.
	integers = words("length char_length character_length octet_length bit_length instr locate strpos ascii field find_in_set strcmp datediff to_days timestampdiff isnull width_bucket")
)

// unitFirst lists the functions whose first argument is a word such as YEAR.
var unitFirst = words("extract timestampdiff timestampadd")

// searches lists the functions of PostgreSQL's text search whose first argument may be a configuration. Without one they use
// that of the session.
var searches = words("to_tsvector to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery")

// configured reports whether a call is deterministic because of its number of arguments.
func configured(e *sqlparse.Call, name string) bool {
	return (searches[name] || name == "age") && len(e.Args) == 2 && !e.Odd
}

// words returns the set of the words of a list, and of those of other sets.
func words(list string, more ...map[string]bool) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		all[word] = true
	}
	for _, set := range more {
		maps.Copy(all, set)
	}
	return all
}

// variance records values that may differ between databases.
type variance struct {
	text           string         // of the statement
	rules          sqltext.Flavor // of the text
	postgres       bool
	engine         merge.Engine
	volatileReason string   // why its values may differ, whatever its conditions are
	remains        string   // the function whose lock or setting stays on its connection, or ""
	changes        bool     // a function changes, or locks, something in its database
	ranks          int      // the number of variables and unknown functions in it
	windows        []window // the window functions in it, and the aggregates of onlyShards
	times          []int    // parameters for which functions of SQLite may read the clock
	instants       []Instant
	labels         bool // a column of a result is named by a text with an Instant
}

// Instant is a function of a statement that reads the clock. Several databases would read different
// clocks. So a statement for several is planned again with the time of one of them: see [At].
type Instant struct {
	sqlparse.Span

	Query   string // the expression with which a database returns its time as a text
	Sample  string // such a text, for a statement that is not executed
	written string // the literal of the time, with % for the text
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
		"now localtime localtimestamp current_timestamp utc_timestamp": {written: "TIMESTAMP'%'", Sample: sampleMoment},
		"curdate current_date utc_date":                                {written: "DATE'%'", Sample: sampleDate},
		"curtime current_time utc_time":                                {written: "TIME'%'", Sample: sampleTime},
		"unix_timestamp":                                               {written: "(%)", Sample: "946684800"}, // a name may follow without a space
	}),
	merge.PostgreSQL: instantsOf("CAST(% AS TEXT)", map[string]Instant{
		"now current_timestamp": {written: "TIMESTAMPTZ '%'", Sample: sampleMoment},
		"localtimestamp":        {written: "TIMESTAMP '%'", Sample: sampleMoment},
		"current_date":          {written: "DATE '%'", Sample: sampleDate},
		"localtime":             {written: "TIME '%'", Sample: sampleTime},
	}),
	merge.SQLite: instantsOf("%", map[string]Instant{
		"current_timestamp": {written: "'%'", Sample: sampleMoment},
		"current_date":      {written: "'%'", Sample: sampleDate},
		"current_time":      {written: "'%'", Sample: sampleTime},
	}),
}

// instantsOf returns the instants by each of their names.
func instantsOf(query string, written map[string]Instant) map[string]Instant {
	all := map[string]Instant{}
	for names, made := range written {
		made.Query = query
		for name := range words(names) {
			all[name] = made
		}
	}
	return all
}

// instant records a function that reads the clock, if its value can be written as a literal.
func (v *variance) instant(e sqlparse.Expr) {
	call, ok := e.(*sqlparse.Call)
	if !ok || len(call.Name.Parts) > 1 {
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
	case v.engine == merge.SQLite && timeFunctions[name]:
		v.nows(call)
		return
	default:
		return
	}
	v.instants = append(v.instants, made)
}

// nows records the texts 'now' among the arguments of a function of SQLite. Their time is in UTC,
// which the modifier 'utc' does not change.
func (v *variance) nows(call *sqlparse.Call) {
	for _, arg := range call.Args {
		if l, ok := sqlparse.Bare(arg).(*sqlparse.Literal); ok && l.Kind == sqlparse.Text && strings.EqualFold(l.Value, "now") {
			v.instants = append(v.instants, Instant{Span: l.Span, Query: "strftime('%Y-%m-%d %H:%M:%f', 'now')", Sample: sampleMoment, written: "'%Z'"})
		}
	}
}

// everyInstant returns the instants in the order of the text, with those of the rows of an INSERT
// that are written like the row before them. It returns none if the time cannot be written into the
// text.
func (v *variance) everyInstant(of *sqlparse.Statement) []Instant {
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

// Instants returns the functions of a plan's statement that read the clock, if their values can be
// written into it.
func Instants(p *Plan) []Instant { return p.instants }

// At returns the plan of the statement that has these times in place of its instants.
func At(p *Plan, times []string) *Plan {
	edits := make([]edit, len(times))
	for i, one := range p.instants {
		edits[i] = edit{Span: one.Span, with: strings.Replace(one.written, "%", times[i], 1)}
	}
	return Of(sqlparse.Parse(p.written(edits, nil), p.options.Reads), p.snapshot, p.options)
}

// Sampled returns p for a statement that needs no value of a database before it can be routed.
// Otherwise it returns the plan of the statement with sample times and sample results of subqueries:
// for a statement that is not executed. It also returns the arguments of that statement.
func Sampled(p *Plan, args []any, hint sharding.Hint) (*Plan, []any) {
	if _, err := p.Bind(args, hint); err == nil {
		return p, args
	}
	if made, values, ok := sampledSubqueries(p, args, hint); ok {
		return made, values
	}
	if len(p.instants) == 0 {
		return p, args
	}
	times := make([]string, len(p.instants))
	for i, one := range p.instants {
		times[i] = one.Sample
	}
	return At(p, times), args
}

// remaining lists the functions that change locks or settings of their connection.
var remaining = words(`get_lock release_lock release_all_locks set_config pg_advisory_lock pg_advisory_lock_shared pg_try_advisory_lock
	pg_try_advisory_lock_shared pg_advisory_unlock pg_advisory_unlock_shared pg_advisory_unlock_all`)

// changing lists the functions that change, or lock, something in their database, or are about that, so that no copy may
// execute them.
var changing = words(`nextval setval currval lastval is_free_lock is_used_lock pg_notify pg_advisory_xact_lock pg_advisory_xact_lock_shared
	pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared txid_current pg_current_xact_id lo_create lo_creat lo_from_bytea lo_put lo_unlink
	dblink dblink_exec`)

// stayAtHome refuses such a function in a statement on shards: no later statement would find its lock or setting,
// and the pool would keep it.
func stayAtHome(b *builder) {
	for _, r := range b.refs {
		if r.role == sharded && b.remains != "" {
			b.recordRefusal(r.table.Name, fmt.Errorf("%w: %s holds on one connection, and the session keeps none to a shard", sharding.ErrSettings, b.remains),
				"send "+b.remains+" in a statement without the table, with the values as arguments")
		}
	}
}

// unsteady returns why the value of a function or variable may differ between databases, or "".
func (v *variance) unsteady(e sqlparse.Expr) string {
	switch e := e.(type) {
	case *sqlparse.Call:
		name := strings.ToLower(e.Name.Last().Name)
		if remaining[name] {
			v.remains = name
		}
		v.changes = v.changes || changing[name]
		switch {
		case e.Over && ranking[name], quantified(e), configured(e, name):
		case quantifiers[name] && len(e.Args) == 1: // of an array
		case name == "last_insert_id" && len(e.Args) == 1: // it stores its argument, and returns it
		case !deterministic[name] && !clockNames[name] && !timeFunctions[name] && aggregates[name] == 0:
			v.ranks++
			return name + " may be an aggregate, or have another value in each database; add a condition on the sharding key, or compute it first and pass it as an argument"
		case clockNames[name], timeFunctions[name] && v.readsClock(e):
			if instants[v.engine][name].Query != "" {
				return name + " may have another value in each database; name the column of the result that it is in, or compute it first and pass it as an argument"
			}
			return name + " may have another value in each database; compute it first, and pass it as an argument"
		}
	case *sqlparse.Operation:
		if e.Op == sqlparse.Opaque && v.engine == merge.MySQL && sqltext.WordsMention(e.Of(v.text), v.rules, "@") {
			v.ranks++
			return "a variable may have another value on each connection; pass the value as an argument"
		}
	}
	return ""
}

// readsClock reports whether a call of one of these functions reads the clock. For a parameter that
// depends on the argument.
func (v *variance) readsClock(e *sqlparse.Call) bool {
	first := 0
	if strings.EqualFold(e.Name.Parts[0].Name, "strftime") {
		first = 1
	}
	for i, arg := range e.Args {
		switch arg := sqlparse.Bare(arg).(type) {
		case *sqlparse.Literal:
			if strings.EqualFold(arg.Value, "now") || i == first && strings.HasPrefix(strings.ToLower(arg.Value), "subsec") { // which omits 'now'
				return true
			}
		case *sqlparse.Param:
			v.times = append(v.times, arg.Index)
		}
	}
	return len(e.Args) <= first
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
	hasColumns := false
	return !sqlparse.Any(call, func(e sqlparse.Expr) bool {
		c, known := s.column(e)
		hasColumns = hasColumns || known
		return known && slices.Contains(s.refs, c.of)
	}) && hasColumns
}

// window is a window function, or an aggregate of onlyShards, and the scope whose rows it reads.
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

// differs returns why several databases may compute different values for a part of the statement,
// or "".
func (b *builder) differs() string {
	if b.volatileReason != "" {
		return b.volatileReason
	}
	at := slices.IndexFunc(b.windows, func(w window) bool { return !b.partitioned(w) })
	switch {
	case at < 0:
		return ""
	case b.windows[at].call.Over:
		return "a window function sees the rows of one database only; add PARTITION BY with the sharding key to it, or a condition on the sharding key to the query, or compute it first and pass it as an argument"
	}
	return b.windows[at].call.Of(b.statement.Text) + " needs all rows of a group, and a database has only its own; add the sharding key to GROUP BY, or a condition on the sharding key, or compute it first and pass it as an argument"
}

// partitioned reports whether each partition, or each group, is on one shard.
func (b *builder) partitioned(w window) bool {
	if w.of == nil || w.call.Over && w.call.Odd && !w.call.Filtered {
		return false
	}
	by := w.of.groupBy
	if w.call.Over {
		by = w.call.Window[:w.call.Partition]
	}
	return slices.ContainsFunc(by, func(e sqlparse.Expr) bool {
		c, ok := w.of.column(e)
		return ok && slices.Contains(w.of.refs, c.of) && b.keyed(w.of, e)
	})
}
