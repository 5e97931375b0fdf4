// SPDX-License-Identifier: Apache-2.0

package parsers_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// view is what a parser sees in a statement.
type view struct {
	tables  map[string]int // in lower case, without schemas
	columns map[string]int // with what qualifies them
	facts   map[string]int // conditions that hold for every row: "user_id = ?0"
	params  int
	rows    int // of VALUES
}

func newView() *view {
	return &view{tables: map[string]int{}, columns: map[string]int{}, facts: map[string]int{}}
}

// column notes a column and returns its name.
func (v *view) column(parts ...string) string {
	name := strings.ToLower(strings.Join(parts, "."))
	v.columns[name]++
	return name
}

func (v *view) fact(parts ...string) {
	if !slices.Contains(parts, "") {
		v.facts[strings.Join(parts, " ")]++
	}
}

// sees begins what is said of a column that sqlparse does not see.
const sees = "the other sees the column "

// differences returns what the other parser sees otherwise.
func (v *view) differences(other *view) []string {
	var list []string
	if !maps.Equal(v.tables, other.tables) {
		list = append(list, fmt.Sprintf("tables %v, the other %v", v.tables, other.tables))
	}
	for _, c := range slices.Sorted(maps.Keys(other.columns)) {
		if v.columns[c] == 0 {
			list = append(list, sees+c)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(v.facts)) {
		if v.facts[f] > other.facts[f] {
			list = append(list, "the other does not see the condition "+f)
		}
	}
	if v.params != other.params {
		list = append(list, fmt.Sprintf("%d parameters, the other %d", v.params, other.params))
	}
	if v.rows != other.rows {
		list = append(list, fmt.Sprintf("%d rows, the other %d", v.rows, other.rows))
	}
	return list
}

// tuple returns how a tuple is called in a fact.
func tuple(items []string) string {
	if slices.Contains(items, "") {
		return ""
	}
	return "(" + strings.Join(items, ", ") + ")"
}
