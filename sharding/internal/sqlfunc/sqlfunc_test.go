// SPDX-License-Identifier: Apache-2.0

package sqlfunc_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/sqlfunc"
)

// selected returns an expression of a text of PostgreSQL.
func selected(t *testing.T, text string) sqlparse.Expr {
	t.Helper()
	st := sqlparse.Parse("SELECT "+text, sqlparse.Dialect{Family: sqlparse.PostgreSQL})
	if st.Verb != sqlparse.Select {
		t.Fatalf("%s is not parsed: %s", text, st.Why)
	}
	return st.Query.Parts[0].Select.Items[0].Expr
}

func TestAnAggregateIsKnownByItsNameAndItsForm(t *testing.T) {
	for text, want := range map[string]bool{
		"COUNT(*)": true, "pg_catalog.count(*)": true, "COUNT(DISTINCT a, b)": true, "bool_or(a)": true,
		"string_agg(a, ',')": true, "SUM(a) FILTER (WHERE b)": true,
		"lower(a)": false, "public.count(a)": false,
		"MAX(a, b)":       false, // the greater one, on SQLite
		"SUM(a) OVER ()":  false,
		"SUM(a) + 1":      false, // it has one
		"(SELECT MAX(a))": false,
	} {
		if got := sqlfunc.IsAggregate(selected(t, text)); got != want {
			t.Errorf("%s is an aggregate: %v", text, got)
		}
	}
}

func TestAnAggregateIsFoundBelowAnExpressionButNotInItsSubqueries(t *testing.T) {
	for text, want := range map[string]bool{
		"1 + COALESCE(SUM(a), 0)": true, "SUM(COUNT(*)) OVER ()": true, "MAX(a)": true,
		"a + 1": false, "1 + (SELECT SUM(a))": false, "SUM(a) OVER ()": false,
	} {
		if got := sqlfunc.HasAggregate(selected(t, text)); got != want {
			t.Errorf("%s has an aggregate: %v", text, got)
		}
	}
}

func TestPartialResultsAreCombinedByWhatTheAggregateDoes(t *testing.T) {
	for name, want := range map[string]merge.Function{
		"count": merge.Count, "sum": merge.Sum, "min": merge.Min, "bool_and": merge.Min, "every": merge.Min, "max": merge.Max, "bool_or": merge.Max,
		"any_value": merge.First, "avg": sqlfunc.Average, "group_concat": sqlfunc.OnlyShards, "stddev": sqlfunc.OnlyShards, "mode": sqlfunc.OnlyShards, "regr_slope": sqlfunc.OnlyShards, "range_agg": sqlfunc.OnlyShards, "lower": 0,
	} {
		if got := sqlfunc.Aggregates[name]; got != want {
			t.Errorf("%s is combined by %d, not %d", name, got, want)
		}
	}
	if !sqlfunc.IsAverage(selected(t, "avg(a)")) || sqlfunc.IsAverage(selected(t, "sum(a)")) {
		t.Error("an average is AVG(…)")
	}
}

func TestTheConditionOfFilterIsNoArgument(t *testing.T) {
	for text, want := range map[string]int{"SUM(a) FILTER (WHERE b)": 1, "SUM(a)": 1, "COUNT(*) FILTER (WHERE b)": 0} {
		call := selected(t, text).(*sqlparse.Call)
		if got := len(sqlfunc.AggregatedBy(call)); got != want {
			t.Errorf("%s aggregates %d arguments", text, got)
		}
	}
}

func TestAWordIsNoOperand(t *testing.T) {
	for text, want := range map[string]int{"EXTRACT(YEAR FROM a)": 1, "TIMESTAMPDIFF(YEAR, a, b)": 2, "date_part('year', a)": 2, "a + b": 2, "a": 0, "extract()": 0} {
		if got := len(sqlfunc.Operands(selected(t, text))); got != want {
			t.Errorf("%s has %d operands", text, got)
		}
	}
}

func TestAComparisonWithAQueryIsQuantified(t *testing.T) {
	for text, want := range map[string]bool{"ANY (SELECT a)": true, "some (SELECT a)": true, "ALL (SELECT a)": true, "ANY (a)": false, "any()": false, "max((SELECT a))": false, "a": false} {
		e := selected(t, "b = "+text).(*sqlparse.Operation).Operands[1]
		if got := sqlfunc.Quantified(e); got != want {
			t.Errorf("%s is quantified: %v", text, got)
		}
	}
}

func TestAConfigurationMakesATextSearchDeterministic(t *testing.T) {
	for text, want := range map[string]bool{"to_tsvector('english', a)": true, "age(a, b)": true, "ts_headline('english', a, to_tsquery('english', b))": true, "ts_headline('english', a, b, 'MaxWords=9')": true,
		"ts_headline(a, b)": false, "ts_headline(a, b, 'MaxWords=9')": false, "to_tsvector(a)": false, "age(a)": false, "max(a, b)": false} {
		call := selected(t, text).(*sqlparse.Call)
		if got := sqlfunc.Configured(call, call.Function()); got != want {
			t.Errorf("%s is deterministic: %v", text, got)
		}
	}
}

// A function may be listed as deterministic only if it is not listed as one that depends on something else.
func TestNoFunctionIsBothDeterministicAndNot(t *testing.T) {
	others := sqlfunc.Words("", sqlfunc.ClockNames, sqlfunc.Remaining, sqlfunc.Changing, sqlfunc.Quantifiers)
	for name := range sqlfunc.Aggregates {
		others[name] = true
	}
	for name := range sqlfunc.Deterministic {
		if others[name] {
			t.Error(name)
		}
	}
	for name := range sqlfunc.TimeFunctions {
		if sqlfunc.Deterministic[name] && name != "timediff" { // it reads the clock for the texts of SQLite only
			t.Error(name)
		}
	}
	for name := range sqlfunc.Counting {
		if !sqlfunc.Ranking[name] {
			t.Error(name)
		}
	}
}

func TestWhatReadsAClockOrChangesSomethingIsNotDeterministic(t *testing.T) {
	for _, of := range []struct {
		names string
		in    map[string]bool
	}{
		{"now current_timestamp uuid rand random sysdate", sqlfunc.ClockNames},
		{"date strftime unix_timestamp", sqlfunc.TimeFunctions},
		{"get_lock pg_advisory_lock set_config", sqlfunc.Remaining},
		{"nextval pg_notify lo_create dblink_exec", sqlfunc.Changing},
	} {
		for name := range sqlfunc.Words(of.names) {
			if !of.in[name] || sqlfunc.Deterministic[name] {
				t.Error(name)
			}
		}
	}
}

func TestFunctionsWithKnownResultsAreDeterministic(t *testing.T) {
	for _, names := range []string{"lower", "substr", "year", "date_add", "md5", "round", "concat", "length"} {
		if !sqlfunc.Deterministic[names] {
			t.Error(names)
		}
	}
	for _, unknown := range []string{"", "my_function", "pg_sleep", "version", "connection_id", "last_insert_id"} {
		if sqlfunc.Deterministic[unknown] {
			t.Errorf("nothing is known of %q", unknown)
		}
	}
}

func TestWordsAreThoseOfTheListAndOfTheOtherSets(t *testing.T) {
	names := slices.Sorted(maps.Keys(sqlfunc.Words(" a\n b", sqlfunc.Words("c"), sqlfunc.Words("b d"))))
	if !slices.Equal(names, []string{"a", "b", "c", "d"}) {
		t.Error(names)
	}
}
