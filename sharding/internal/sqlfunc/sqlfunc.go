// SPDX-License-Identifier: Apache-2.0

package sqlfunc

import (
	"maps"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
)

// Words returns the set of the words of a list, and of those of other sets.
func Words(list string, more ...map[string]bool) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		all[word] = true
	}
	for _, set := range more {
		maps.Copy(all, set)
	}
	return all
}

// Quantifiers lists the words of Quantified.
var Quantifiers = Words("all any some")

// Quantified reports whether an expression is ALL (SELECT …), ANY (SELECT …) or SOME (SELECT …).
func Quantified(e sqlparse.Expr) bool { return Quantifiers[ofQuery(e)] }

// Gathers reports whether an expression is PostgreSQL's ARRAY (SELECT …).
func Gathers(e sqlparse.Expr) bool { return ofQuery(e) == "array" }

// ofQuery returns the word before (SELECT …), of which the parser makes a call, "" for another expression.
func ofQuery(e sqlparse.Expr) string {
	call, ok := e.(*sqlparse.Call)
	if !ok || len(call.Args) != 1 || !sqlparse.Is[*sqlparse.Subquery](call.Args[0]) {
		return ""
	}
	return call.Function()
}

// Deterministic lists the functions whose value depends only on their arguments and on settings that all
// databases share, such as the time zone.
var Deterministic = Words(`abs mod sign power sqrt coalesce ifnull nullif if iif least greatest date_format from_unixtime json_extract
	hex unhex bit_count cast convert values last_day str_to_date
	makedate extract json_valid json_type json_unquote json_quote json_length json_array_length json_depth
	json_keys json_contains json_contains_path json_search json_array json_object json_set json_insert
	json_replace json_remove json_merge_patch json_merge_preserve json_overlaps json_exists json_query json_equals json_normalize
	json_array_append json_array_insert json_pretty json_compact json_loose json_detailed json json_patch repeat crc32 typeof quote
	dayname monthname microsecond timediff time_format sec_to_time time_to_sec to_seconds from_days maketime
	period_add period_diff timestampadd addtime subtime format printf mid space elt conv bin oct pow exp ln log log2 log10
	pi degrees radians regexp_substr regexp_instr regexp_like to_base64 from_base64 inet_aton inet_ntoa json_value
	unicode date_trunc date_part to_char to_date to_number btrim starts_with position jsonb_extract_path
	jsonb_extract_path_text json_extract_path json_extract_path_text json_typeof jsonb_set jsonb_insert jsonb_exists
	jsonb_path_exists jsonb_path_match jsonb_path_query_first jsonb_typeof encode decode sha256
	json_build_object json_build_array jsonb_build_object jsonb_build_array to_json to_jsonb row_to_json array_to_json json_strip_nulls jsonb_strip_nulls
	jsonb_pretty array_to_string string_to_array array_positions array_append array_prepend array_remove array_replace array_cat
	array_upper array_lower host masklen network family to_hex chr char ord insert soundex sha224 sha384 sha512 div gcd lcm cbrt
	make_date make_time make_timestamp make_interval date_bin justify_days justify_hours justify_interval to_timestamp isfinite num_nulls num_nonnulls
	ts_rank ts_rank_cd setweight similarity int4range int8range numrange daterange tsrange tstzrange isempty lower_inc upper_inc
	sin cos tan cot asin acos atan atan2 inet6_aton inet6_ntoa bin_to_uuid uuid_to_bin is_uuid
	regexp_match regexp_count regexp_split_to_array jsonb_path_query_array jsonb_object quote_literal quote_ident quote_nullable overlay unistr
	array_dims array_fill trim_array trim_scale get_byte get_bit convert_from convert_to timezone make_timestamptz range_merge
	lower_inf upper_inf tsvector_to_array netmask hostmask inet_merge inet_same_family set_masklen array_to_tsvector ts_delete ts_filter
	jsonb_exists_any jsonb_exists_all jsonb_set_lax nummultirange int4multirange int8multirange datemultirange tsmultirange tstzmultirange
	word_similarity strict_word_similarity akeys avals hstore_to_json hstore_to_jsonb hstore_to_array sinh cosh tanh asinh acosh atanh
	point st_x st_y st_distance st_distance_sphere st_dwithin st_contains st_within st_intersects st_astext st_geomfromtext st_makepoint st_setsrid`,
	Folds, Parts, Clocks, Shifts, Digests, Rounds, Joins, Integers)

// TimeFunctions lists the functions that read the clock without arguments, and those of SQLite that
// read it for the text 'now'.
var TimeFunctions = Words("date time datetime julianday unixepoch strftime timediff unix_timestamp")

// ClockNames lists the functions that are written like columns and are not aggregates.
var ClockNames = Words("now sysdate curdate curtime current_date current_time current_timestamp localtime localtimestamp utc_date utc_time utc_timestamp rand random uuid")

var (
	// Folds have results with the collation of the column.
	Folds = Words("lower upper lcase ucase")
	// Parts have such results, too, which on MySQL and MariaDB are no longer than the texts of the column.
	Parts = Words("trim ltrim rtrim left right substr substring substring_index")
	// Clocks have times as arguments, and integers as results.
	Clocks = Words("year month day hour minute second quarter dayofmonth dayofweek dayofyear weekday week weekofyear yearweek")
	// Shifts have times as results, as their first arguments are.
	Shifts = Words("date_add date_sub adddate subdate")
	// Digests have results that are written with digits and small letters on MySQL and MariaDB.
	Digests = Words("md5 sha sha1 sha2")
	// Rounds have numbers as results.
	Rounds = Words("round truncate trunc floor ceil ceiling")
	// Joins are the functions of PostgreSQL that make a text of other values.
	Joins = Words("concat concat_ws replace initcap lpad rpad reverse translate regexp_replace split_part md5")
	// Integers have integers as results, whatever their arguments are.
	Integers = Words("length char_length character_length octet_length bit_length instr locate strpos ascii field find_in_set strcmp datediff to_days timestampdiff isnull width_bucket array_position cardinality array_length array_ndims jsonb_array_length")
)

// unitFirst lists the functions whose first argument is a word such as YEAR.
var unitFirst = Words("extract timestampdiff timestampadd")

// Operands returns the expressions directly below an expression, without words such as YEAR.
func Operands(e sqlparse.Expr) []sqlparse.Expr {
	all := sqlparse.Operands(e)
	if call, ok := e.(*sqlparse.Call); ok && unitFirst[call.Function()] && len(all) > 0 {
		return all[1:]
	}
	return all
}

// searches lists the functions of PostgreSQL's text search whose first argument may be a configuration. Without one they use
// that of the session.
var searches = Words("to_tsvector to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery")

// Configured reports whether a call is deterministic because of its number of arguments.
func Configured(e *sqlparse.Call, name string) bool {
	switch n := len(e.Args); {
	case e.Odd:
		return false
	case name == "ts_headline" && n == 3: // the last argument may be a query, or the options without a configuration
		query, isCall := sqlparse.Bare(e.Args[2]).(*sqlparse.Call)
		return isCall && searches[query.Function()]
	case name == "ts_headline":
		return n == 4
	default:
		return (searches[name] || name == "age") && n == 2
	}
}

// Remaining lists the functions that change locks or settings of their connection.
var Remaining = Words(`get_lock release_lock release_all_locks set_config pg_advisory_lock pg_advisory_lock_shared pg_try_advisory_lock
	pg_try_advisory_lock_shared pg_advisory_unlock pg_advisory_unlock_shared pg_advisory_unlock_all`)

// RowSources lists the functions in FROM whose rows depend only on their arguments.
var RowSources = Words(`unnest generate_series generate_subscripts json_each json_tree json_each_text jsonb_each jsonb_each_text json_array_elements
	json_array_elements_text jsonb_array_elements jsonb_array_elements_text json_object_keys jsonb_object_keys regexp_split_to_table
	string_to_table regexp_matches json_to_record jsonb_to_record json_to_recordset jsonb_to_recordset jsonb_path_query`)

// Changing lists the functions that change, or lock, something in their database, or are about that, so that no copy may
// execute them.
var Changing = Words(`nextval setval currval lastval is_free_lock is_used_lock pg_notify pg_advisory_xact_lock pg_advisory_xact_lock_shared
	pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared txid_current pg_current_xact_id lo_create lo_creat lo_from_bytea lo_put lo_unlink
	dblink dblink_exec`)

// Ranking lists the window functions whose values depend only on the rows of their partition;
// Counting lists those of them that count rows.
var (
	Ranking  = Words("row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value count sum avg min max")
	Counting = Words("row_number rank dense_rank ntile count")
)
