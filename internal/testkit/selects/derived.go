// SPDX-License-Identifier: Apache-2.0

package selects

import (
	"fmt"
	"slices"
	"strings"
)

// derived returns a query of a derived table or a CTE: of rows, or of groups by user_id.
func (m *maker) derived() Query {
	items := slices.Concat([]string{"id", "user_id"}, some(m, Columns[2:], 2))
	from := " FROM orders" + m.where()
	inner, by, of := strings.Join(items, ", ")+from, "t.id", about(items)
	if m.IntN(2) == 0 {
		inner, of = "user_id, MIN(id) AS id, COUNT(*) AS n, SUM(paid) AS s"+from+" GROUP BY user_id", nil
		by = pick(m, []string{"t.user_id", "n, t.id", "s DESC, user_id", "id"})
	}
	text := fmt.Sprintf(pick(m, []string{"SELECT * FROM (SELECT %s) AS t", "WITH t AS (SELECT %s) SELECT * FROM t"}), inner)
	switch m.IntN(3) {
	case 0:
		text += " WHERE t.user_id = " + m.value(m.Int64N(20))
	case 1:
		text += " WHERE user_id IN (" + m.value(m.Int64N(20)) + ", " + m.value(m.Int64N(20)) + ")"
	}
	return Query{Text: text + " ORDER BY " + by + m.limit(), Args: m.args, of: of}
}

// counted returns the number of distinct rows, of groups, or of rows of a UNION.
func (m *maker) counted() Query {
	var of string
	switch m.IntN(4) {
	case 0:
		of = m.distinct().Text
	case 1:
		of = m.union().Text
	case 2:
		of = m.unionOfGroups().Text
	default:
		of = "SELECT COUNT(*) AS n, MAX(id) AS last FROM orders" + m.where() + " GROUP BY " + strings.Join(some(m, m.sorts, 2), ", ")
		if m.IntN(2) == 0 {
			of += " HAVING " + m.number() + " > " + m.value(m.Int64N(9))
		}
	}
	return Query{Text: fmt.Sprintf(pick(m, []string{"SELECT COUNT(*) FROM (%s) AS t", "WITH t AS (%s) SELECT COUNT(*) AS n FROM t"}), of), Args: m.args}
}

// derivedGroups returns a query that reads groups from a derived table or a CTE. Each group has another first id.
func (m *maker) derivedGroups() Query {
	key := pick(m, Columns)
	if m.IntN(4) == 0 {
		key = pick(m, m.sorts)
	}
	items := pick(m, [][]string{{"*"}, {"t.*"}, {"k", "n", "first"}, {"t.first", "t.k AS label", "s", "x"}, {"x", "n AS many"}})
	shown := pick(m, []string{m.aggregate(), m.sortable(), "MAX(paid)"})
	if items[0] == "k" { // what is not read is not left out, if a database may refuse it
		shown = pick(m, []string{"MAX(paid)", "COUNT(*)", "SUM(user_id)"})
	}
	inner := "SELECT " + key + " AS k, COUNT(*) AS n, SUM(paid) AS s, MIN(id) AS first, " + shown + " AS x FROM orders" + m.where() +
		" GROUP BY " + pick(m, []string{key, "k", "1"})
	if m.IntN(4) == 0 {
		inner += " HAVING " + m.number() + " > " + m.value(m.Int64N(9))
	}
	if m.IntN(2) == 0 {
		items = append(slices.Clone(items), pick(m, []string{
			"n * 2 AS twice", "s / n AS mean", "COALESCE(s, 0) - n AS less", "CASE WHEN n > 3 THEN 1 ELSE 0 END AS often",
			"SUM(n) OVER (ORDER BY first) AS running", "RANK() OVER (ORDER BY n DESC) AS place", "ROW_NUMBER() OVER (ORDER BY t.s, first DESC) AS place", "SUM(s) OVER () AS total",
		}))
	}
	text := fmt.Sprintf(pick(m, []string{"SELECT %s FROM (%s) AS t", "WITH t AS (%[2]s) SELECT %[1]s FROM t"}), strings.Join(items, ", "), inner)
	text += pick(m, []string{"", " WHERE n > 2", " WHERE t.s IS NOT NULL AND n <> 3", " WHERE NOT (first < 9 OR n = 1)", " WHERE first BETWEEN 3 AND 40 AND s >= n"})
	text += " ORDER BY " + pick(m, []string{"first", "n DESC, t.first", "s, first DESC", "n * 2 - first, first"})
	of := make([]string, 0, len(items))
	for _, item := range items {
		of = append(of, folded(item, key, shown)...)
	}
	return Query{Text: text + m.limit(), Args: m.args, of: of}
}

// folded returns the text columns in a column of derivedGroups.
func folded(item, key, shown string) []string {
	switch item {
	case "*", "t.*":
		return about([]string{key, "n", "s", "first", shown})
	case "k", "t.k AS label":
		return about([]string{key})
	case "x":
		return about([]string{shown})
	}
	return []string{""}
}
