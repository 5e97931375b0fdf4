// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// listed plans a statement on orders, of which users 0, 4, … are in orders_0, 1, 5, … in orders_1 and so on.
func listed(t *testing.T, text string, family sqlparse.Family) *plan.Plan {
	t.Helper()
	m, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	r, err := sharding.New(sharding.DBs{"a": closed(t), "b": closed(t)}, sharding.Tables(sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m}))
	if err != nil {
		t.Fatal(err)
	}
	dialect := sqlparse.Dialect{Family: family}
	return plan.Of(sqlparse.Parse(text, dialect), r.Snapshot(), analysis.Options{Reads: dialect, Quote: func(name string) string { return name }})
}

// parts returns the texts of the shards, and their arguments.
func parts(t *testing.T, p *plan.Plan, args []any) (texts []string, values [][]any) {
	t.Helper()
	to, err := p.Bind(args, sharding.Hint{})
	if err != nil {
		t.Fatal(err)
	}
	add := func(text string, which []int) {
		own := make([]any, len(which))
		for i, at := range which {
			own[i] = args[at]
		}
		texts, values = append(texts, text), append(values, own)
	}
	if to.Writes != nil {
		for _, s := range to.Writes.Parts {
			add(s.Text, s.Args)
		}
		return texts, values
	}
	for _, s := range to.Shards.Targets {
		add(s.Text, s.Args)
	}
	return texts, values
}

func numbersTo(n int) (all []any) {
	for i := range n {
		all = append(all, int64(i))
	}
	return all
}

func TestALongListIsDividedAmongTheShards(t *testing.T) {
	for _, verb := range []string{"SELECT id FROM orders", "UPDATE orders SET note = ?", "DELETE FROM orders"} {
		args := numbersTo(40)
		before := strings.Count(verb, "?")
		for range before {
			args = append([]any{"first"}, args...)
		}
		p := listed(t, verb+" WHERE user_id IN (?"+strings.Repeat(",?", 39)+") AND note <> ?", sqlparse.MySQL)
		texts, values := parts(t, p, append(args, "last"))
		for shard, text := range texts {
			list := strings.Repeat("?, ", 9) + "?"
			if want := strings.ReplaceAll(verb, "orders", fmt.Sprintf("orders_%d", shard)) + " WHERE user_id IN (" + list + ") AND note <> ?"; strings.ReplaceAll(text, " AS orders", "") != want {
				t.Errorf("text  %s\nwant  %s", text, want)
			}
			own := values[shard][before : len(values[shard])-1]
			if len(own) != 10 || values[shard][len(values[shard])-1] != "last" {
				t.Errorf("%s has the arguments %v", text, values[shard])
			}
			for i, v := range own {
				if v != int64(4*i+shard) {
					t.Errorf("%s has the arguments %v", text, values[shard])
				}
			}
		}
	}
}

func TestNumberedParametersOfADividedListAreNumberedAgain(t *testing.T) {
	var list strings.Builder
	list.WriteString("$3")
	for i := range 39 {
		fmt.Fprintf(&list, ", $%d", i+4)
	}
	p := listed(t, "SELECT id FROM orders WHERE note <> $1 AND user_id IN ("+list.String()+") AND kind = $2", sqlparse.PostgreSQL)
	texts, values := parts(t, p, append([]any{"note", "kind"}, numbersTo(40)...))
	want := "SELECT id FROM orders_1 AS orders WHERE note <> $1 AND user_id IN ($3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AND kind = $2"
	if texts[1] != want || !reflect.DeepEqual(values[1][:4], []any{"note", "kind", int64(1), int64(5)}) {
		t.Errorf("text  %s\nwant  %s\narguments %v", texts[1], want, values[1])
	}
}

// A row equals none of the values of other shards, but NOT IN with a NULL is never true.
func TestADividedListKeepsNULLAndIsNeverEmpty(t *testing.T) {
	p := listed(t, "SELECT id FROM orders WHERE user_id NOT IN (NULL, 1"+strings.Repeat(", 5", 40)+")", sqlparse.MySQL)
	texts, _ := parts(t, p, nil)
	if want := "SELECT id FROM orders_0 AS orders WHERE user_id NOT IN (NULL)"; texts[0] != want {
		t.Errorf("text  %s\nwant  %s", texts[0], want)
	}
	p = listed(t, "SELECT id FROM orders WHERE user_id NOT IN (1"+strings.Repeat(", 5", 40)+")", sqlparse.MySQL)
	texts, _ = parts(t, p, nil)
	if want := "SELECT id FROM orders_0 AS orders WHERE user_id NOT IN (1)"; texts[0] != want {
		t.Errorf("text  %s\nwant  %s", texts[0], want)
	}
}

// Otherwise a driver that prepares each new text would prepare one for each length.
func TestListsOfSimilarLengthHaveOneText(t *testing.T) {
	seen := map[string]bool{}
	for n := 4 * 101; n <= 4*104; n++ {
		p := listed(t, "SELECT id FROM orders WHERE user_id IN (?"+strings.Repeat(", ?", n-1)+")", sqlparse.MySQL)
		texts, values := parts(t, p, numbersTo(n))
		seen[texts[0]] = true
		if len(values[0]) != 104 || values[0][103] != values[0][(n+3)/4-1] {
			t.Errorf("%d values: %d are sent, the last one is %v", n, len(values[0]), values[0][len(values[0])-1])
		}
	}
	if len(seen) != 1 {
		t.Errorf("%d texts", len(seen))
	}
}

func TestAShortListIsSentWhole(t *testing.T) {
	texts, values := parts(t, listed(t, "SELECT id FROM orders WHERE user_id IN (?"+strings.Repeat(",?", 30)+")", sqlparse.MySQL), numbersTo(31))
	if !strings.HasSuffix(texts[0], "(?"+strings.Repeat(",?", 30)+")") || len(values[0]) != 31 {
		t.Errorf("%s with %v", texts[0], values[0])
	}
}
