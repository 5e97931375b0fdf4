// SPDX-License-Identifier: Apache-2.0

// Package shapes generates random statements of many forms on a shop of two sharded tables, a
// broadcast table and one at home: joins, derived tables, common table expressions, subqueries
// anywhere, unions, windows, groups by expressions, and writes with subqueries and joins. Further queries
// compare columns of many types, of a sharded table and of one at home. The result of shards must be that of whole tables, unless they refuse the statement. Tests of the
// statement engine use it on any database.
package shapes

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Tables are the tables and their columns, for CREATE TABLE. An id modulo 4 equals user_id modulo
// 4, which is the shard. Items are on the shard of their orders.
var Tables = map[string]string{
	"orders":  " (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, paid INT, amount INT NOT NULL, note VARCHAR(20), region VARCHAR(10))",
	"items":   " (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, order_id BIGINT, qty INT, sku VARCHAR(20))",
	"regions": " (code VARCHAR(10) NOT NULL PRIMARY KEY, rank_no INT)",
	"coupons": " (code VARCHAR(10) NOT NULL PRIMARY KEY, user_id BIGINT, off_by INT)",
}

// columns are the integer columns and the text columns of a table.
var columns = map[string]struct{ numbers, texts []string }{
	"orders":  {[]string{"id", "user_id", "paid", "amount"}, []string{"note", "region"}},
	"items":   {[]string{"id", "user_id", "order_id", "qty"}, []string{"sku"}},
	"regions": {[]string{"rank_no"}, []string{"code"}},
	"coupons": {[]string{"user_id", "off_by"}, []string{"code"}},
}

// Statement is a random statement.
type Statement struct {
	Text string
	Args []any
	// Query means that it returns rows, and Ordered that they are in a total order.
	Query, Ordered bool
	Writes         bool
	// Folds means that of texts that are equal but for their case and spaces at their ends any may be returned.
	Folds bool
}

// Maker generates statements.
type Maker struct {
	dice

	dialect Dialect
}

// New returns a maker whose statements depend only on the seed.
func New(seed uint64, dialect Dialect) *Maker {
	return &Maker{dice{Rand: rand.New(rand.NewPCG(seed, 9))}, dialect}
}

// source is an element of FROM: an alias, and its columns.
type source struct {
	alias          string
	numbers, texts []string
}

// column returns a column of a source, without its alias if that is possible.
func (m *Maker) column(of []source, texts bool) string {
	for range 9 {
		s := of[m.IntN(len(of))]
		list := s.numbers
		if texts {
			list = s.texts
		}
		if len(list) == 0 {
			continue
		}
		name := list[m.IntN(len(list))]
		if m.chance(5) && m.alone(of, name) {
			return name
		}
		return s.alias + "." + name
	}
	if texts {
		return "'a'"
	}
	return "1"
}

// alone reports whether a name denotes the same column without its table: only the innermost
// source, which is the last one, has it, or another source if no table that is read has it.
func (m *Maker) alone(of []source, name string) bool {
	n := 0
	for _, s := range of {
		if slices.Contains(s.numbers, name) || slices.Contains(s.texts, name) {
			n++
		}
	}
	return n == 1
}

// number returns an integer expression.
func (m *Maker) number(of []source, depth int) string {
	if depth <= 0 {
		return m.column(of, false)
	}
	if m.dialect == PostgreSQL && m.chance(12) {
		return "(" + m.number(of, depth-1) + ")::" + m.pick("int", "bigint")
	}
	switch m.IntN(12) {
	case 0:
		return "(" + m.number(of, depth-1) + m.pick(" + ", " - ", " * ") + m.small() + ")"
	case 1:
		return "COALESCE(" + m.number(of, depth-1) + ", " + m.small() + ")"
	case 2:
		return "CASE WHEN " + m.condition(of, depth-1) + " THEN " + m.number(of, depth-1) + " ELSE " + m.small() + " END"
	case 3:
		return "NULLIF(" + m.number(of, depth-1) + ", " + m.small() + ")"
	case 4:
		return "ABS(" + m.number(of, depth-1) + ")"
	case 5:
		return "LENGTH(" + m.column(of, true) + ")"
	case 6:
		return m.scalar(of, depth-1)
	}
	return m.column(of, false)
}

// scalar returns a subquery of one value.
func (m *Maker) scalar(of []source, depth int) string {
	from, s := m.table()
	all := append(slices.Clone(of), s)
	where := m.where(all, s, of, depth)
	if m.chance(4) {
		c := m.column([]source{s}, false)
		return "(SELECT " + c + " FROM " + from + where + " ORDER BY " + c + m.pick("", " DESC") + " LIMIT " + m.pick("1", "1", "1 OFFSET 1") + ")"
	}
	switch c := m.column([]source{s}, false); m.IntN(12) {
	case 0:
		return "(SELECT LENGTH(" + m.dialect.listed(c) + ") FROM " + from + where + ")"
	case 1: // each row has the same
		return "(SELECT SUM(" + c + ") OVER () FROM " + from + where + " LIMIT 1)"
	default:
		return "(SELECT " + m.pick("MAX(", "MIN(", "SUM(", "COUNT(") + c + ") FROM " + from + where + ")"
	}
}

// where returns the WHERE of a subquery: usually an equality with an outer row.
func (m *Maker) where(all []source, s source, outer []source, depth int) string {
	var list []string
	if len(outer) > 0 && slices.Contains(s.numbers, "user_id") && !m.chance(4) {
		o := outer[m.IntN(len(outer))]
		if slices.Contains(o.numbers, "user_id") {
			list = append(list, m.pick(s.alias+".user_id = "+o.alias+".user_id", o.alias+".user_id = "+s.alias+".user_id"))
		}
	}
	for range m.IntN(3) {
		list = append(list, m.condition(all, depth-1))
	}
	if len(list) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(list, " AND ")
}

// table returns a table with an alias.
func (m *Maker) table() (string, source) {
	name := m.pick("orders", "orders", "orders", "items", "items", "items", "regions", "coupons")
	if m.chance(3) && name != "coupons" {
		name = "orders"
	}
	return m.named(name)
}

func (m *Maker) named(name string) (string, source) {
	alias := m.name("t")
	c := columns[name]
	return name + m.pick(" ", " AS ") + alias, source{alias, c.numbers, c.texts}
}

// condition returns a condition on the sources.
func (m *Maker) condition(of []source, depth int) string {
	if depth > 0 {
		switch m.IntN(9) {
		case 0:
			return "(" + m.condition(of, depth-1) + m.pick(" OR ", " AND ") + m.condition(of, depth-1) + ")"
		case 1:
			return "NOT (" + m.condition(of, depth-1) + ")"
		case 2:
			return m.exists(of, depth-1)
		case 3:
			return m.member(of, depth-1)
		case 4:
			return m.number(of, depth-1) + m.pick(" = ", " < ", " >= ", " <> ") + m.number(of, depth-1)
		}
	}
	if m.chance(2) {
		if c := m.key(of); c != "" {
			return c
		}
	}
	switch m.IntN(8) {
	case 0:
		return m.column(of, true) + " = " + m.text()
	case 1:
		return m.column(of, true) + m.pick(" IS NULL", " IS NOT NULL")
	case 2:
		return m.column(of, true) + " LIKE " + m.pick("'a%'", "'%b'", "'_'")
	case 3:
		return m.column(of, false) + " BETWEEN " + m.small() + " AND " + m.value(int64(m.IntN(60)))
	case 4:
		return m.column(of, false) + " IN (" + m.small() + ", " + m.small() + ")"
	case 5:
		return m.column(of, false) + " = " + m.column(of, false)
	case 6:
		return m.column(of, false) + m.pick(" IS NULL", " IS NOT NULL")
	}
	return m.column(of, false) + m.pick(" = ", " < ", " > ", " <> ") + m.small()
}

// key returns a condition on a sharding key, or "".
func (m *Maker) key(of []source) string {
	s := of[m.IntN(len(of))]
	if !slices.Contains(s.numbers, "user_id") {
		return ""
	}
	column := s.alias + ".user_id"
	if len(of) == 1 && m.chance(4) {
		column = "user_id"
	}
	switch m.IntN(28) {
	case 0:
		return column + " IN (" + m.users() + ")"
	case 1:
		return m.user() + " = " + column
	case 2:
		return "(" + column + ", " + s.alias + "." + s.numbers[0] + ") = (" + m.user() + ", " + m.value(int64(m.IntN(60))) + ")"
	case 3:
		return "(" + s.alias + "." + s.numbers[0] + ", " + column + ") IN ((" + m.value(int64(m.IntN(60))) + ", " + m.user() + "), (" + m.value(int64(m.IntN(60))) + ", " + m.user() + "))"
	case 4:
		return column + " BETWEEN " + m.user() + " AND " + m.user()
	case 5:
		return column + m.pick(" IS ", " IS NOT ") + "NULL"
	case 6:
		return column + m.dialect.alike() + m.user()
	case 7:
		return "(" + column + " = " + m.user() + " OR " + column + " = " + m.user() + ")"
	case 8:
		return column + " + 0 = " + m.user()
	case 9:
		return "(" + column + " = " + m.user() + " AND " + column + m.pick(" = ", " < ", " <> ") + m.user() + ")"
	case 10:
		return column + m.pick(" < ", " >= ", " <> ") + m.user()
	case 11:
		return column + " = " + m.user() + " + " + m.value(int64(1))
	case 12:
		return column + " NOT IN (" + m.users() + ")"
	case 13:
		return column + " = " + m.user() + m.pick(" IS NULL", " IS NOT NULL", " = 1", " + 1", " OR 1 = 0", " AND 1 = 1", " IN (0, 1)", " IS TRUE", " BETWEEN 0 AND 1")
	case 14:
		return m.pick("COALESCE("+column+", 1)", "ABS("+column+")", "+"+column, "-"+column, "("+column+")", "CAST("+column+" AS "+m.dialect.text()+")", "CASE WHEN "+column+" > 3 THEN 1 ELSE "+column+" END") + " = " + m.user()
	case 15:
		return "NOT " + column + " = " + m.user()
	case 16:
		return m.pick("(", "NOT (") + column + " = " + m.user() + ") = " + m.pick(m.dialect.truths()...)
	case 17:
		return column + " LIKE " + m.user()
	case 18:
		if slices.Contains(s.numbers, "id") {
			return s.alias + ".id" + m.pick(" = ", " = ", " > ") + m.value(int64(m.IntN(80)))
		}
	}
	return column + " = " + m.user()
}

func (m *Maker) exists(of []source, depth int) string {
	from, s := m.table()
	return m.pick("EXISTS ", "NOT EXISTS ") + "(SELECT 1 FROM " + from + m.where(append(slices.Clone(of), s), s, of, depth) + ")"
}

func (m *Maker) member(of []source, depth int) string {
	from, s := m.table()
	in := m.pick(" IN ", " IN ", " NOT IN ")
	if m.dialect != SQLite && m.chance(5) {
		in = m.pick(" = ANY ", " >= ALL ", " <> ALL ", " <> ANY ", " = ALL ")
	}
	column, picked := m.column(of, false), m.column([]source{s}, false)
	if m.chance(2) && slices.Contains(s.numbers, "user_id") {
		column, picked = of[m.IntN(len(of))].alias+".user_id", s.alias+".user_id"
		if !slices.ContainsFunc(of, func(o source) bool {
			return strings.HasPrefix(column, o.alias+".") && slices.Contains(o.numbers, "user_id")
		}) {
			column = m.column(of, false)
		}
	}
	return column + in + "(SELECT " + picked + " FROM " + from + m.where(append(slices.Clone(of), s), s, of, depth) + ")"
}

// one returns a table, a derived table or a common table expression.
func (m *Maker) one(ctes []source, depth int) (string, source) {
	if len(ctes) > 0 && !m.chance(3) {
		c := ctes[m.IntN(len(ctes))]
		alias := m.name("c")
		return c.alias + " AS " + alias, source{alias, c.numbers, c.texts}
	}
	if depth > 0 && m.chance(4) {
		text, numbers := m.body(ctes, depth-1, m.chance(4))
		alias := m.name("d")
		return "(" + text + ") AS " + alias, source{alias, numbers, nil}
	}
	return m.table()
}

// body returns a SELECT of integer columns, or a union of two, and the columns' names.
func (m *Maker) body(ctes []source, depth int, union bool) (string, []string) {
	names := []string{"user_id", "a1"}[:1+m.IntN(2)]
	if m.chance(6) {
		names = []string{"b1"}
	}
	text := m.branch(ctes, names, depth)
	if union {
		text += m.pick(" UNION ", " UNION ", " UNION ALL ", " UNION ALL ", " INTERSECT ", " EXCEPT ") + m.branch(ctes, names, depth)
	}
	return text, names
}

func (m *Maker) branch(ctes []source, names []string, depth int) string {
	at := len(m.args)
	from, of := m.from(ctes, depth)
	after := m.cut(at)
	var items, groups []string
	distinct := ""
	grouped := m.chance(3)
	for i, name := range names {
		var e string
		switch {
		case grouped && (i > 0 || len(names) == 1):
			e = m.aggregate(of)
		case i > 0 && m.chance(5):
			e = m.window(of)
		case name == "user_id" && !m.chance(8):
			e = m.userOf(of)
		case grouped:
			e = m.column(of, false)
		default:
			e = m.number(of, 1)
		}
		if grouped && i == 0 && len(names) > 1 {
			groups = append(groups, e)
		}
		items = append(items, e+" AS "+name)
	}
	if !grouped && m.chance(6) {
		distinct = "DISTINCT "
	}
	m.args = append(m.args, after...)
	text := "SELECT " + distinct + strings.Join(items, ", ") + " FROM " + from
	if !m.chance(4) {
		text += " WHERE " + m.condition(of, depth+1)
		if m.chance(2) {
			text += " AND " + m.condition(of, 0)
		}
	}
	if len(groups) > 0 {
		text += " GROUP BY " + strings.Join(groups, ", ")
		if m.chance(3) {
			text += " HAVING " + m.aggregate(of) + m.pick(" > ", " < ", " = ") + m.small()
		}
	}
	return text
}

// userOf returns a user_id, if a source has one.
func (m *Maker) userOf(of []source) string {
	e := m.column(of, false)
	for _, s := range of {
		if slices.Contains(s.numbers, "user_id") {
			e = s.alias + ".user_id"
		}
	}
	return e
}

func (m *Maker) aggregate(of []source) string {
	c := m.column(of, false)
	all := m.pick("COUNT(*)", "COUNT("+c+")", "SUM("+c+")", "MIN("+c+")", "MAX("+c+")", "COUNT(DISTINCT "+c+")", "SUM("+c+") - COUNT(*)", "COALESCE(MAX("+c+"), 0)")
	if m.dialect == PostgreSQL && m.chance(9) {
		return "COUNT(" + c + ") FILTER (WHERE " + m.column(of, false) + " > 2)"
	}
	return all
}

func (m *Maker) window(of []source) string {
	part := ""
	if !m.chance(4) {
		part = "PARTITION BY " + m.column(of, false) + " "
		for _, s := range of {
			if slices.Contains(s.numbers, "user_id") && !m.chance(3) {
				part = "PARTITION BY " + s.alias + ".user_id "
			}
		}
	}
	return m.pick("COUNT(*)", "SUM("+m.column(of, false)+")", "MAX("+m.column(of, false)+")") + " OVER (" + strings.TrimSpace(part) + ")"
}

// Statement returns the next statement; one in three is a write.
func (m *Maker) Statement() Statement {
	if m.chance(3) {
		return m.Write()
	}
	return m.Query()
}

// Query returns a random query.
func (m *Maker) Query() Statement {
	m.dice = dice{Rand: m.Rand}
	var with []string
	var ctes []source
	if m.chance(5) {
		for range 1 + m.IntN(2) {
			name := m.name("w")
			text, numbers := m.body(ctes, 0, m.chance(4))
			with = append(with, name+" AS ("+text+")")
			ctes = append(ctes, source{name, numbers, nil})
		}
	}
	var text string
	var n int
	switch m.IntN(5) {
	case 0:
		if m.chance(3) {
			text, n = merged(m), 2
			break
		}
		if m.chance(3) {
			text, n = outerGroups(m, ctes), 1
			break
		}
		var names []string
		text, names = m.body(ctes, 1, true)
		n = len(names)
	case 1:
		text, n = m.grouped(ctes)
	default:
		text, n = m.rows(ctes)
	}
	s := Statement{Query: true}
	if s.Ordered = m.chance(2); s.Ordered {
		text = m.dialect.order(&m.dice, text, n)
	}
	if len(with) > 0 {
		text = "WITH " + strings.Join(with, ", ") + " " + text
	}
	s.Text, s.Args = m.dialect.Numbered(text), m.args
	return s
}

// rows selects rows, and grouped selects groups; both return the number of columns.
func (m *Maker) rows(ctes []source) (string, int) {
	var items []string
	at := len(m.args)
	from, of := m.from(ctes, 2)
	after := m.cut(at)
	for range 1 + m.IntN(3) {
		switch m.IntN(7) {
		case 0:
			items = append(items, m.column(of, slices.ContainsFunc(of, func(s source) bool { return len(s.texts) > 0 })))
		case 1:
			items = append(items, m.window(of))
		default:
			items = append(items, m.number(of, 2))
		}
	}
	m.args = append(m.args, after...)
	text := "SELECT " + m.pick("", "", "", "DISTINCT ") + strings.Join(items, ", ") + " FROM " + from
	if !m.chance(4) {
		conditions := []string{m.condition(of, 2)}
		for range m.IntN(3) {
			conditions = append(conditions, m.condition(of, 1))
		}
		text += " WHERE " + strings.Join(conditions, " AND ")
	}
	return text, len(items)
}

func (m *Maker) grouped(ctes []source) (string, int) {
	at := len(m.args)
	from, of := m.from(ctes, 1)
	after := m.cut(at)
	keys, items := []string(nil), []string(nil)
	for range m.IntN(3) {
		key := m.column(of, m.chance(3))
		if m.chance(3) {
			key = m.pick("LOWER("+m.column(of, true)+")", key+" IS NULL", "COALESCE("+m.column(of, false)+", 0)", "CASE WHEN "+m.column(of, false)+" > 2 THEN 1 ELSE 0 END", m.column(of, false)+" % 3")
		}
		keys = append(keys, key)
	}
	items = append(items, keys...)
	for range 1 + m.IntN(2) {
		items = append(items, m.aggregate(of))
	}
	for i := range items {
		items[i] += " AS k" + strconv.Itoa(i)
	}
	m.args = append(m.args, after...)
	text := "SELECT " + strings.Join(items, ", ") + " FROM " + from
	if !m.chance(3) {
		text += " WHERE " + m.condition(of, 2)
	}
	if len(keys) > 0 {
		by := slices.Clone(keys)
		for i := range by {
			if m.chance(3) {
				by[i] = strconv.Itoa(i + 1)
			}
		}
		text += " GROUP BY " + strings.Join(by, ", ")
		if m.chance(2) {
			text += " HAVING " + m.pick(m.dialect.having("k"+strconv.Itoa(len(keys)), m.aggregate(of), m.aggregate(of))...) + m.pick(" > ", " <= ", " <> ") + m.small()
		}
	}
	return text, len(items)
}
