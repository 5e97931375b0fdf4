// SPDX-License-Identifier: Apache-2.0

// Package selects generates random queries on one table, and compares the results of two databases:
// one with all rows in one table, and one with shards. Tests of the statement engine use it on any
// database.
package selects

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/testkit/corpus"
)

// Columns are the columns of the table orders. at is a time, and note, code, word, body and state
// are texts. All except id and user_id may be NULL.
var Columns = []string{"id", "user_id", "paid", "amount", "at", "note", "code", "word", "body", "state"}

// expressions are further expressions of orders and groups, for any database.
var expressions = []string{"paid + 1", "paid * user_id", "LOWER(note)", "UPPER(word)", "LOWER(body)", "note IS NULL",
	"CASE WHEN paid = 1 THEN 2 WHEN user_id > 9 THEN paid ELSE 0 END", "CASE paid WHEN 1 THEN user_id END", "COALESCE(paid, user_id)", "paid IN (1, 2)", "LENGTH(word)", "COALESCE(amount, 0)", "paid % 2", "user_id % paid", "TRIM(note)", "SUBSTR(word, 1, 1)", "COALESCE(note, 'none')", "DATE(at)", "(user_id - paid)", "CASE WHEN paid = 1 THEN 'one' WHEN paid = 2 THEN 'Two' ELSE 'many' END", "CAST(DATE(at) AS DATE)"}

// subqueries are conditions with a number of rows that the subquery reads. In the last ones it reads rows of all
// shards, whatever row is compared.
var subqueries = []string{
	"user_id IN (SELECT p.user_id FROM orders p WHERE p.id > %s)",
	"amount >= (SELECT AVG(p.amount) FROM orders p WHERE p.id > %s)",
	"paid < (SELECT MAX(p.paid) FROM orders p WHERE p.id < %s)",
	"id NOT IN (SELECT p.paid FROM orders p WHERE p.id > %s)",
	"id IN (SELECT MAX(p.id) FROM orders p WHERE p.id < %s GROUP BY p.paid)",
	"paid + (SELECT COUNT(*) FROM orders p WHERE p.id < %s) > 100",
	"amount * 2 > (SELECT SUM(p.amount) FROM orders p WHERE p.id BETWEEN 20 AND %s)",
}

// relatives are subqueries that depend on a row of orders, with a number.
var relatives = []string{
	"(SELECT COUNT(*) FROM orders c WHERE c.user_id = orders.user_id AND c.id < %s)",
	"COALESCE((SELECT SUM(c.paid) FROM orders AS c WHERE orders.user_id = c.user_id AND c.paid <> %s), -1)",
	"(SELECT COUNT(DISTINCT c.note) FROM orders c WHERE c.user_id = orders.user_id AND (c.paid > orders.paid OR c.id > %s))",
}

// texts are the columns whose collation may treat different texts as equal.
var texts = []string{"note", "code", "word", "body"}

// Query is a random query.
type Query struct {
	Text string
	Args []any
	// Open means that SQL does not define the order of the rows.
	Open bool
	// of are the text columns of the result's columns, "" for others: of equal texts SQL may return
	// any.
	of []string
}

// Fold returns the same text for all texts that are equal in a column.
type Fold func(column, text string) string

// Random returns a query that depends only on the random source. also are further expressions of
// the database for orders and groups.
func Random(random *rand.Rand, also ...string) Query {
	m := &maker{Rand: random, sorts: slices.Concat(Columns, expressions, also)}
	switch m.IntN(16) {
	case 0, 1:
		return m.groups()
	case 2, 3:
		return m.distinct()
	case 4:
		return m.union()
	case 5:
		return m.derived()
	case 6:
		return m.outer()
	case 7:
		return m.windows()
	case 8:
		return m.unionOfGroups()
	case 9:
		return Query{Text: "SELECT " + []string{"", "NOT "}[m.IntN(2)] + "EXISTS (SELECT id FROM orders" + m.where() + " ORDER BY id LIMIT " + m.value(m.Int64N(3)) + ") AS found", Args: m.args}
	case 10:
		return m.related()
	case 11:
		return m.totals()
	case 12:
		return m.counted()
	case 13:
		return m.derivedGroups()
	}
	return m.rows()
}

type maker struct {
	*rand.Rand
	args  []any
	sorts []string // the expressions for orders and groups
}

func pick[T any](m *maker, list []T) T { return list[m.IntN(len(list))] }

// some returns one to most elements of the list, each once, in random order.
func some(m *maker, list []string, most int) []string {
	list = slices.Clone(list)
	m.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:1+m.IntN(min(most, len(list)))]
}

func (m *maker) value(n int64) string {
	if m.IntN(2) == 0 {
		return strconv.FormatInt(n, 10)
	}
	m.args = append(m.args, n)
	return "?"
}

func (m *maker) where() string {
	if m.IntN(5) == 0 {
		return ""
	}
	text := " WHERE " + m.condition(2)
	if m.IntN(2) == 0 {
		text += " AND " + m.condition(1)
	}
	return text
}

func (m *maker) condition(depth int) string {
	if depth > 0 && m.IntN(4) == 0 {
		return "(" + m.condition(depth-1) + pick(m, []string{" OR ", " AND "}) + m.condition(depth-1) + ")"
	}
	switch m.IntN(9) {
	case 0:
		return "user_id = " + m.value(m.Int64N(20))
	case 1:
		list := []string{m.value(m.Int64N(20)), m.value(m.Int64N(20)), m.value(m.Int64N(20))}
		for len(list) < 40 && list[0] == "?" { // so many that each shard gets only its own
			list = append(list, m.value(m.Int64N(4)))
		}
		return pick(m, []string{"user_id IN (", "user_id NOT IN ("}) + strings.Join(list, ", ") + ")"
	case 2:
		return "NOT user_id = " + m.value(m.Int64N(20))
	case 3:
		return "paid " + pick(m, []string{"= ", "<> ", "< ", ">= "}) + m.value(m.Int64N(3))
	case 4:
		return pick(m, Columns) + pick(m, []string{" IS NULL", " IS NOT NULL"})
	case 5:
		return "note LIKE '%a%'"
	case 6:
		return fmt.Sprintf("id BETWEEN %s AND %s", m.value(m.Int64N(200)), m.value(100+m.Int64N(200)))
	case 7:
		// Not EXISTS: SQLite 3.53.0 ignores an OFFSET beside it.
		return fmt.Sprintf(pick(m, subqueries), m.value(m.Int64N(300)))
	}
	return "amount > " + m.value(m.Int64N(10))
}

// limit returns LIMIT and OFFSET, or nothing.
func (m *maker) limit() string {
	switch m.IntN(3) {
	case 0:
		return " LIMIT " + m.value(m.Int64N(12))
	case 1:
		return " LIMIT " + m.value(m.Int64N(12)) + " OFFSET " + m.value(m.Int64N(9))
	}
	return ""
}

func (m *maker) direction() string { return pick(m, []string{"", " DESC", " ASC"}) }

func (m *maker) rows() Query {
	items := "*"
	if m.IntN(2) == 0 {
		items = strings.Join(some(m, Columns, 4), ", ")
	}
	given := m.IntN(3) == 0
	if given {
		items += ", paid * " + m.value(m.Int64N(3)) + " AS x, 'some' AS kind"
	}
	counted := m.IntN(4) == 0
	if counted {
		items = pick(m, []string{"COUNT(*) OVER () AS total, orders." + items, items + ", COUNT(paid) OVER () AS total"})
	}
	order := some(m, m.sorts, 2)
	for i := range order {
		order[i] += m.direction()
	}
	ranked := m.IntN(4) == 0
	if ranked {
		items += ", " + m.rank(order) + " AS place"
		if m.IntN(3) == 0 {
			items += ", " + pick(m, []string{"SUM(paid)", "SUM(amount)", "COUNT(note)", "COUNT(*)"}) + " OVER (ORDER BY " + strings.Join(order, ", ") + ", id) AS balance"
		}
	}
	text := "SELECT " + items + " FROM orders" + m.where()
	if !ranked && m.IntN(4) == 0 {
		return Query{Text: text, Args: m.args, Open: true}
	}
	if counted && m.IntN(3) == 0 {
		order = slices.Insert(order, m.IntN(len(order)+1), "total")
	}
	if ranked && m.IntN(2) == 0 && !strings.Contains(items, " AS balance") {
		order = []string{"place"}
	}
	if given && !ranked {
		order = append(order, "x"+m.direction(), "CASE WHEN user_id = "+m.value(m.Int64N(20))+" THEN "+m.value(1)+" ELSE paid - "+m.value(1)+" END"+m.direction())
		m.Shuffle(len(order)-2, func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return Query{Text: text + " ORDER BY " + strings.Join(append(order, "id"), ", ") + m.limit(), Args: m.args}
}

// rank returns a window function that numbers the rows of an order. Only the order of all rows numbers each of them.
func (m *maker) rank(order []string) string {
	if m.IntN(3) == 0 {
		return "ROW_NUMBER() OVER (ORDER BY " + strings.Join(append(slices.Clone(order), "id"), ", ") + ")"
	}
	return pick(m, []string{"RANK", "DENSE_RANK"}) + "() OVER (ORDER BY " + strings.Join(order[:1+m.IntN(len(order))], ", ") + ")"
}

// related returns rows in the order of a subquery of rows with the same sharding key.
func (m *maker) related() Query {
	of := pick(m, relatives)
	given := func() string { return fmt.Sprintf(of, m.value(m.Int64N(200))) }
	items, by := strings.Join(some(m, Columns, 4), ", "), "shown"
	shown := m.IntN(2) == 0
	if shown {
		items += ", " + given() + " AS shown"
	}
	text := "SELECT " + items + " FROM orders" + m.where()
	if !shown {
		by = given()
	}
	return Query{Text: text + " ORDER BY " + by + m.direction() + ", id" + m.limit(), Args: m.args}
}

func (m *maker) distinct() Query {
	items := some(m, m.sorts, 2)
	of := about(items)
	more, by := "", ""
	switch m.IntN(6) {
	case 0:
		more = ", 'x' AS kind, 7"
	case 1:
		more, by = ", user_id + "+m.value(2)+" AS z", ", z"
	}
	text := "SELECT DISTINCT " + strings.Join(items, ", ") + more + " FROM orders" + m.where()
	if m.IntN(3) == 0 {
		return Query{Text: text, Args: m.args, Open: true, of: of}
	}
	for i := range items {
		items[i] += m.direction()
	}
	return Query{Text: text + " ORDER BY " + strings.Join(items, ", ") + by + m.limit(), Args: m.args, of: of}
}

// union returns a UNION, or another set operation, of two or three branches. Rows with equal columns cannot be distinguished.
func (m *maker) union() Query {
	items := some(m, Columns, 3)
	if m.IntN(3) == 0 && !slices.Contains(items, "user_id") {
		items = append(items, "user_id")
	}
	of := about(items)
	kinds, by := []string{"", "", ""}, ""
	switch m.IntN(6) {
	case 0:
		kinds = []string{", 'paid' AS kind", ", 'open'", ", 'paid'"} // kind is not sorted
	case 1:
		kinds, by = []string{", 2 AS kind", ", 1", ", 2"}, ", kind"
	}
	branch := func(i int) string {
		return "SELECT " + strings.Join(items, ", ") + kinds[i] + " FROM orders" + m.where()
	}
	set := pick(m, []string{" UNION ", " UNION ALL "})
	if slices.Contains(items, "user_id") && m.IntN(3) == 0 { // otherwise several shards may have equal rows
		set = pick(m, []string{" EXCEPT ", " INTERSECT "})
	}
	text := branch(0) + set + branch(1)
	if m.IntN(2) == 0 {
		if set == " EXCEPT " {
			set = pick(m, []string{set, " UNION ALL "})
		}
		text += set + branch(2)
	}
	if m.IntN(3) == 0 || kinds[0] != "" && by == "" {
		return Query{Text: text, Args: m.args, Open: true, of: of}
	}
	for i := range items {
		items[i] += m.direction()
	}
	return Query{Text: text + " ORDER BY " + strings.Join(items, ", ") + by + m.limit(), Args: m.args, of: of}
}

// outer joins rows of users, and may omit those without another row. It may count the others of each row.
func (m *maker) outer() Query {
	grouped := m.IntN(3) == 0
	text := "SELECT o.id, p.id AS other, p.paid"
	if grouped {
		text = "SELECT " + pick(m, []string{"o.*", "o.id, o.note, o.paid"}) + ", COUNT(p.id) AS n, MAX(p.paid) AS most"
	}
	text += " FROM orders o LEFT JOIN orders p ON p.user_id = o.user_id AND p.paid = " + m.value(m.Int64N(3)) + " WHERE o.id < " + m.value(m.Int64N(99))
	switch m.IntN(5) {
	case 0:
		text += " AND p.user_id = " + m.value(m.Int64N(20))
	case 1:
		text += " AND (p.user_id = " + m.value(m.Int64N(20)) + " OR p.user_id IS NULL)"
	case 2:
		text += " AND p.id > " + m.value(m.Int64N(300)) + " AND o.user_id = " + m.value(m.Int64N(20))
	case 3:
		text += " AND p.user_id IN (" + m.value(m.Int64N(20)) + ", " + m.value(m.Int64N(20)) + ")"
	}
	if !grouped {
		return Query{Text: text + " ORDER BY o.id, other" + m.limit(), Args: m.args}
	}
	text += " GROUP BY o.id"
	if m.IntN(3) == 0 {
		text += " HAVING COUNT(p.id) > " + m.value(m.Int64N(3))
	}
	return Query{Text: text + " ORDER BY n" + m.direction() + ", o.id" + m.limit(), Args: m.args}
}

// windows returns a query with a window over the rows of each user, beside each row or in a derived
// table.
func (m *maker) windows() Query {
	call := pick(m, []string{"ROW_NUMBER()", "RANK()", "DENSE_RANK()", "COUNT(paid)", "NTILE(3)", "SUM(paid)", "AVG(paid)", "MAX(id)", "LAG(id)", "FIRST_VALUE(paid)"})
	order := pick(m, Columns[:4]) + m.direction()
	if call != "RANK()" && call != "DENSE_RANK()" || m.IntN(2) == 0 {
		order += ", id"
	}
	call += " OVER (PARTITION BY " + pick(m, []string{"user_id", "user_id, paid", "orders.user_id"}) + " ORDER BY " + order + ")"
	by := []string{"id"}
	if !strings.HasPrefix(call, "L") && m.IntN(2) == 0 {
		by = []string{"w" + m.direction(), "id"}
	}
	text := "SELECT id, user_id, " + call + " AS w FROM orders" + m.where()
	switch m.IntN(3) {
	case 0:
		text = "SELECT id, w, t.user_id FROM (" + text + ") AS t WHERE w <= " + m.value(m.Int64N(9))
		if m.IntN(2) == 0 {
			text += " AND t.user_id IN (" + m.value(m.Int64N(20)) + ", " + m.value(m.Int64N(20)) + ")"
		}
	case 1:
		text = "WITH t AS (" + text + ") SELECT id, w FROM t"
	}
	return Query{Text: text + " ORDER BY " + strings.Join(by, ", ") + m.limit(), Args: m.args}
}

// totals returns a UNION ALL of aggregates without groups.
func (m *maker) totals() Query {
	first := pick(m, []string{"COUNT(*)", "SUM(paid)", "SUM(amount)", "MIN(id)", "MAX(at)", "MAX(note)", "COUNT(DISTINCT user_id)", "DATE(MIN(at))"})
	items := []string{"1", first}
	var selects []string
	for i := range 1 + m.IntN(3) {
		other := first
		switch {
		case i == 0:
		case (first == "COUNT(*)" || strings.HasPrefix(first, "SUM")) && m.IntN(3) == 0:
			other = pick(m, []string{"COUNT(*)", "SUM(amount)", "SUM(user_id)", m.number()})
		}
		selects = append(selects, "SELECT "+strconv.Itoa(i)+" AS n, "+other+" AS x FROM orders"+m.where())
	}
	text := strings.Join(selects, " UNION ALL ")
	if m.IntN(2) == 0 {
		return Query{Text: text, Args: m.args, Open: true, of: about(items)}
	}
	return Query{Text: text + " ORDER BY n" + m.direction() + m.limit(), Args: m.args, of: about(items)}
}

// unionOfGroups returns a UNION of groups by user_id, or of rows with user_id that are returned
// once.
func (m *maker) unionOfGroups() Query {
	items := "user_id, " + pick(m, []string{"COUNT(*)", "SUM(paid)", "MIN(id)", "MAX(note)", "COUNT(note)"}) + " AS x"
	branch := func() string {
		text := "SELECT " + items + " FROM orders" + m.where() + " GROUP BY user_id"
		switch m.IntN(3) {
		case 0:
			text += ", note"
		case 1:
			text += " HAVING " + m.number() + " > " + m.value(m.Int64N(9))
		}
		return text
	}
	if m.IntN(3) == 0 {
		items = "user_id, " + pick(m, Columns[2:]) + " AS x"
		branch = func() string { return "SELECT DISTINCT " + items + " FROM orders" + m.where() }
	}
	of := about(strings.Split(strings.ReplaceAll(items, " AS x", ""), ", "))
	text := branch() + pick(m, []string{" UNION ", " UNION ALL "}) + branch()
	if m.IntN(2) == 0 {
		return Query{Text: text, Args: m.args, Open: true, of: of}
	}
	return Query{Text: text + " ORDER BY user_id" + m.direction() + ", x" + m.direction() + m.limit(), Args: m.args, of: of}
}

// number returns an aggregate that compares with numbers.
func (m *maker) number() string {
	return pick(m, []string{"COUNT(*)", "COUNT(paid)", "SUM(paid)", "SUM(user_id)", "MIN(id)", "MAX(id)", "AVG(paid)", "COUNT(DISTINCT note)", "COALESCE(SUM(paid), 0)", "SUM(user_id) - SUM(paid)", "AVG(paid) * COUNT(*)", "COUNT(*) * 1.0 / COUNT(paid)", "SUM(user_id) / COUNT(*)"})
}

// sortable returns an aggregate that every database can sort, unlike aggregates of members of ENUM.
func (m *maker) sortable() string {
	for {
		if made := m.aggregate(); !strings.Contains(made, "state") {
			return made
		}
	}
}

func (m *maker) aggregate() string {
	return pick(m, []string{
		"COUNT(*)", "COUNT(paid)", "SUM(paid)", "SUM(user_id)", "MIN(id)", "MAX(id)", "MIN(paid)", "MAX(user_id)", "COUNT(note)",
		"MIN(note)", "MAX(note)", "MIN(code)", "MAX(word)", "MIN(body)", "COUNT(DISTINCT body)", "COUNT(DISTINCT word)", "MIN(state)", "MAX(state)",
		"AVG(paid)", "AVG(amount)", "AVG(user_id)", "COUNT(DISTINCT paid)", "COUNT(DISTINCT note)", "COUNT(DISTINCT user_id)", "COUNT(DISTINCT at)",
		"SUM(CASE WHEN paid = 1 THEN amount ELSE 0 END)", "COUNT(CASE WHEN note LIKE 'a%' THEN 1 END)", "SUM(paid = 1)", "AVG(CASE WHEN paid = 1 THEN 1.0 ELSE 0 END)", "MAX(COALESCE(paid, 7))",
		"SUM(paid) - SUM(user_id)", "ROUND(AVG(paid), 2)", "ROUND(AVG(user_id))", "COUNT(*) * 1.0 / COUNT(DISTINCT user_id)", "COALESCE(AVG(amount), 0)", "SUM(paid) / COUNT(*) * 3", "ROUND(SUM(amount) * 100.0 / SUM(paid), 1)",
		"SUM(paid) / NULLIF(COUNT(note), 0)", "MAX(id) - MIN(id)", "ROUND(SUM(amount), 1)", "SUM(amount) * 2 / COUNT(*) + 0.25", "IFNULL(MAX(paid), 0.5)",
		"COUNT(*) > 3", "SUM(paid) >= SUM(user_id) OR MAX(id) IS NULL", "CASE WHEN COUNT(*) > 9 THEN 1 WHEN MAX(paid) = 2 THEN -2 ELSE 0 END", "CASE WHEN COUNT(*) > 3 THEN 'many' WHEN MAX(paid) = 2 THEN 'Two' ELSE 'few' END", "CASE WHEN SUM(paid) > 9 THEN 'much' END", "CEIL(COUNT(*) / 10.0)", "FLOOR(SUM(amount) * -0.1)",
		"COALESCE(SUM(paid), 0)", "IFNULL(SUM(amount), 0)", "SUM(amount)", "SUM(paid * user_id)", "SUM(amount + 1)", "MIN(LOWER(note))", "MAX(paid - 1)",
		"SUM(DISTINCT paid)", "SUM(DISTINCT amount)", "SUM(DISTINCT user_id)", "COALESCE(MAX(note), 'none')", "NULLIF(MIN(note), 'a')", "UPPER(MAX(word))", "DATE(MAX(at))", "ABS(MIN(paid))",
		"CAST(SUM(amount) AS DECIMAL(12, 1))", "CAST(AVG(paid) AS DECIMAL(10, 2))", "CAST(AVG(amount) AS DECIMAL(10, 3))", "CAST(COUNT(*) AS DECIMAL(10, 2))",
	})
}

// about returns the text columns in selected columns and aggregates.
func about(items []string) []string {
	of := make([]string, len(items))
	for i, item := range items {
		for _, column := range texts {
			if item == column || strings.HasPrefix(item, column+" COLLATE ") || strings.Contains(item, "("+column+" AS ") || !strings.HasPrefix(item, "COUNT") && (strings.Contains(item, "("+column+")") || strings.Contains(item, "("+column+",") || strings.Contains(item, ", "+column+",")) {
				of[i] = column
			}
		}
	}
	return of
}

func (m *maker) groups() Query {
	aggregates := []string{m.aggregate(), m.sortable() + " AS x"}
	if m.IntN(6) == 0 {
		aggregates[1] = m.overGroups() + " AS x"
	}
	if m.IntN(4) == 0 {
		return Query{Text: "SELECT " + strings.Join(aggregates, ", ") + " FROM orders" + m.where(), Args: m.args, of: about(aggregates)}
	}
	keys := some(m, m.sorts, 2)
	if m.IntN(3) == 0 && !slices.Contains(keys, "user_id") {
		keys = append(keys, "user_id")
	}
	if m.IntN(8) == 0 {
		aggregates[1] = m.neighbour(keys) + " AS x"
	}
	items := append(slices.Clone(keys), aggregates...)
	if key := keys[0]; m.IntN(5) == 0 && slices.Contains(Columns, key) {
		items[0] = m.dependent(key)
	}
	of := about(items)
	text := "SELECT " + strings.Join(items, ", ") + " FROM orders" + m.where() + " GROUP BY " + strings.Join(keys, ", ")
	if m.IntN(2) == 0 {
		text += " HAVING " + m.number() + pick(m, []string{" > ", " <= ", " = ", " <> "}) + m.value(m.Int64N(30))
		text += m.ofGroup(keys[0])
	}
	if m.IntN(3) == 0 {
		return Query{Text: text, Args: m.args, Open: true, of: of}
	}
	text += " ORDER BY "
	if m.IntN(2) == 0 {
		text += pick(m, []string{"x", m.sortable()}) + m.direction() + ", "
	}
	for i := range keys {
		keys[i] += m.direction()
	}
	return Query{Text: text + strings.Join(keys, ", ") + m.limit(), Args: m.args, of: of}
}

// overGroups returns a window function over groups.
func (m *maker) overGroups() string {
	partition := pick(m, []string{"", "", "PARTITION BY COUNT(*) ", "PARTITION BY MAX(paid) "})
	order := "ORDER BY " + pick(m, []string{"COUNT(*)", "SUM(paid)", "MAX(id)", "SUM(amount)", "COUNT(note), MIN(paid)"}) + m.direction()
	return pick(m, []string{
		"SUM(COUNT(*)) OVER (" + partition + ")", "SUM(SUM(amount)) OVER (" + partition + order + ")", "COUNT(*) OVER (" + partition + ")", "COUNT(SUM(paid)) OVER (" + order + ")",
		"RANK() OVER (" + partition + order + ")", "DENSE_RANK() OVER (" + partition + order + ")", "ROW_NUMBER() OVER (" + partition + "ORDER BY MIN(id))",
		"ROUND(COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (), 2)", "SUM(paid) - SUM(SUM(paid)) OVER (" + partition + ")", "COALESCE(SUM(SUM(paid)) OVER (" + order + "), -1)",
	})
}

// dependent returns an expression over a column of GROUP BY.
func (m *maker) dependent(key string) string {
	switch {
	case slices.Contains(texts, key):
		return pick(m, []string{"LOWER(" + key + ")", "COALESCE(" + key + ", 'none')"})
	case slices.Contains(Columns[:4], key):
		return pick(m, []string{key + " * 2 - 1", "COALESCE(" + key + ", 7)", "CASE WHEN " + key + " > 2 THEN 1 ELSE 0 END"})
	}
	return key
}

// neighbour returns an expression with the value of another group.
func (m *maker) neighbour(keys []string) string {
	of := pick(m, []string{"COUNT(*)", "SUM(paid)", "SUM(amount)", "COUNT(note)", "MAX(id)", "MIN(paid)", "COUNT(DISTINCT user_id)"})
	over := "ORDER BY " + strings.Join(keys, m.direction()+", ")
	if len(keys) > 1 && m.IntN(2) == 0 {
		over = "PARTITION BY " + keys[0] + " ORDER BY " + strings.Join(keys[1:], ", ") + m.direction()
	}
	beside := pick(m, []string{"LAG(", "LEAD("}) + of + pick(m, []string{"", ", 2", ", 0"}) + ") OVER (" + over + ")"
	return pick(m, []string{beside, beside, of + " - " + beside, "COALESCE(" + beside + ", 0)", "ROUND(100.0 * (COUNT(*) - " + beside + ") / COUNT(*), 1)"})
}

// ofGroup returns a further condition of HAVING, about a column of GROUP BY.
func (m *maker) ofGroup(key string) string {
	switch {
	case m.IntN(2) == 0:
	case slices.Contains(texts, key) || key == "state":
		return " AND " + key + pick(m, []string{" IS NOT NULL", " IN ('a', 'B', 'new')", " <> 'á'", " BETWEEN 'a' AND 'b'"})
	case slices.Contains(Columns[:4], key):
		return " AND " + key + pick(m, []string{" IS NULL", " IN (1, 3)", " <> 2", " >= 1"})
	}
	return ""
}

// ForPostgreSQL returns the query in PostgreSQL's dialect, with numbered parameters.
func (q Query) ForPostgreSQL() Query {
	q.Text = strings.NewReplacer("IFNULL(", "COALESCE(", "COALESCE(amount, 0)", "COALESCE(amount, 0.00)", "SUM(paid = 1)", "SUM(CAST(paid = 1 AS INT))", "ROUND(AVG(user_id))", "ROUND(AVG(user_id), 0)").Replace(q.Text)
	q.Text = corpus.Numbered(q.Text)
	return q
}

// Database is a *sql.DB or a *sql.Tx.
type Database interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Answer returns the names of the columns and the rows of a query as texts. It sorts the rows if
// their order is undefined. fold may be nil if equal texts have equal bytes.
func (q Query) Answer(ctx context.Context, db Database, fold Fold) (rows []string, err error) {
	found, err := db.QueryContext(ctx, q.Text, q.Args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = found.Close() }()
	columns, err := found.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]any, len(columns))
	for found.Next() {
		for i := range values {
			values[i] = new(any)
		}
		if err := found.Scan(values...); err != nil {
			return nil, err
		}
		parts := texted(values)
		for i, column := range q.of {
			if column != "" && fold != nil {
				parts[i] = fold(column, parts[i])
			}
		}
		rows = append(rows, strings.Join(parts, "|"))
	}
	if q.Open {
		slices.Sort(rows)
	}
	return append([]string{strings.Join(columns, "|")}, rows...), found.Err()
}

// texted returns the values as texts.
func texted(values []any) []string {
	parts := make([]string, len(values))
	for i, v := range values {
		switch v := (*v.(*any)).(type) {
		case []byte:
			if parts[i] = string(v); len(v) == 1 && v[0] < ' ' { // a BIT of MariaDB is a byte, or a number if the server made a temporary table
				parts[i] = strconv.Itoa(int(v[0]))
			}
		default:
			parts[i] = fmt.Sprint(v)
		}
	}
	return parts
}
