// SPDX-License-Identifier: Apache-2.0

package shapes

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// The tables goods, which is sharded by user_id, and facts, which is at home, have the same columns of many
// types. Queries of them compare values of different types, which databases convert to each other.

// kind is a column of goods and facts: its types and literals in the order of the dialects.
type kind struct {
	name   string
	types  [4]string
	values []string
	bits   bool // the literals are written with a prefix
	sums   bool // sums of the values are exact in any order
	other  bool // than that of the values beside it
}

func everywhere(name string) [4]string { return [4]string{name, name, name, name} }

var kinds = []kind{
	{name: "id", types: everywhere("BIGINT NOT NULL PRIMARY KEY"), values: []string{"1", "5", "17", "30"}, sums: true},
	{name: "user_id", types: everywhere("BIGINT NOT NULL"), values: []string{"0", "1", "2", "5", "7"}, sums: true},
	{name: "small", types: everywhere("INT"), values: []string{"0", "1", "2", "-3", "24", "2004", "20240102"}, sums: true},
	{name: "big", types: [4]string{"BIGINT", "BIGINT UNSIGNED", "BIGINT UNSIGNED", "NUMERIC(20)"}, values: []string{"0", "2", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551615"}, sums: true},
	{name: "money", types: everywhere("DECIMAL(20,6)"), values: []string{"0.000000", "0.100000", "-2.500000", "2.000000", "99999999999999.999999", "0.333333", "2004.000000"}, sums: true},
	{name: "dyadic", types: [4]string{"DOUBLE", "DOUBLE", "DOUBLE", "DOUBLE PRECISION"}, values: []string{"0", "0.5", "-2.5", "2", "1048576.25"}, sums: true},
	{name: "ratio", types: [4]string{"DOUBLE", "DOUBLE", "DOUBLE", "DOUBLE PRECISION"}, values: []string{"0.1", "0.3333333333333333", "1e300", "-1e-7", "9007199254740992", "2", "18446744073709551616"}},
	{name: "approx", types: everywhere("REAL"), values: []string{"0.1", "0.5", "2", "16777216", "-2.5"}},
	{name: "flo", types: [4]string{"FLOAT", "FLOAT", "FLOAT", "REAL"}, values: []string{"0.1", "0.5", "2", "16777216", "-2.5"}},
	{name: "day", types: everywhere("DATE"), values: []string{"'2024-01-02'", "'2024-02-29'", "'1999-12-31'", "'2004-01-01'"}},
	{name: "made", types: [4]string{"DATETIME", "DATETIME(6)", "DATETIME(6)", "TIMESTAMPTZ"}, values: []string{"'2024-01-02 00:00:00'", "'2024-01-02 00:00:00.000001'", "'2004-01-01 10:20:30.5'", "'1999-12-31 23:59:59.999999'"}},
	{name: "clock", types: [4]string{"TIME", "TIME(3)", "TIME(3)", "TIME"}, values: []string{"'00:00:00'", "'10:20:30.5'", "'23:59:59'", "'00:00:02'"}},
	{name: "since", types: [4]string{"YEAR", "YEAR", "YEAR", "SMALLINT"}, values: []string{"1999", "2004", "2024", "2001"}, sums: true},
	{name: "ok", types: everywhere("BOOLEAN"), values: []string{"TRUE", "FALSE"}},
	{name: "word", types: [4]string{"VARCHAR(20) COLLATE NOCASE", "VARCHAR(20) COLLATE utf8mb4_unicode_ci", "VARCHAR(20) COLLATE utf8mb4_unicode_ci", `VARCHAR(20) COLLATE "C"`}, values: []string{"'a'", "'A'", "'b'", "''", "'2'", "'02'", "'2.50'", "'2024-01-02'"}},
	{name: "exact", types: [4]string{"VARCHAR(20)", "VARCHAR(20) COLLATE utf8mb4_bin", "VARCHAR(20) COLLATE utf8mb4_bin", "TEXT"}, values: []string{"'a'", "'A'", "'é'", "''", "'24'", "'1e0'", "'10:20:30'"}},
	{name: "code", types: everywhere("CHAR(5)"), values: []string{"'a'", "'A'", "'b c'", "'2'"}},
	{name: "bits", types: [4]string{"BIT", "BIT(8)", "BIT(8)", "BIT(8)"}, values: []string{"00000000", "00000001", "00000010", "11111111"}, bits: true},
	{name: "size", types: [4]string{"VARCHAR(5)", "ENUM('s','m','l','2')", "ENUM('s','m','l','2')", "VARCHAR(5)"}, values: []string{"'s'", "'m'", "'l'", "'2'"}},
	{name: "doc", types: [4]string{"TEXT", "JSON", "JSON", "JSONB"}, values: []string{`'{"a": 1}'`, `'2'`, `'[1, 2]'`, `'"a"'`}},
}

// mixer generates queries of columns of many types.
type mixer struct{ *Maker }

// Read returns a query of any kind.
func Read(seed uint64, dialect Dialect) Statement {
	if s := New(seed, dialect).Statement(); !s.Writes {
		return s
	}
	return Mixed(seed, dialect)
}

// Mixed returns a random query of columns of many types, which depends only on the seed.
func Mixed(seed uint64, dialect Dialect) Statement { return mixer{New(seed, dialect)}.query() }

// mixedColumns are the columns of goods and facts, for CREATE TABLE.
func (d Dialect) mixedColumns() string {
	list := make([]string, len(kinds))
	for i, k := range kinds {
		list[i] = k.name + " " + k.types[d]
	}
	return " (" + strings.Join(list, ", ") + ")"
}

// row returns an INSERT of a row into goods or facts.
func (m mixer) row(table string, id int) string {
	names, list := []string{"id", "user_id"}, []string{strconv.Itoa(id), strconv.Itoa(m.IntN(8))}
	for _, k := range kinds[2:] {
		names = append(names, k.name)
		if m.chance(6) {
			list = append(list, "NULL")
		} else {
			list = append(list, m.literal(k))
		}
	}
	return "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(list, ", ") + ")"
}

// literal returns a value of a kind of column.
func (m mixer) literal(k kind) string {
	v := m.pick(k.values...)
	if !k.bits {
		return v
	}
	if m.dialect == SQLite {
		n, _ := strconv.ParseInt(v, 2, 64)
		return strconv.FormatInt(n, 10)
	}
	return "B'" + v + "'"
}

// given returns a value of a kind, as a literal or as an argument.
func (m mixer) given(k kind) string {
	v := m.literal(k)
	if strings.HasPrefix(v, "B'") || m.chance(2) || k.other && m.dialect == MySQL { // where it changes how others compare
		return v
	}
	var arg any = strings.Trim(v, "'")
	whole, notWhole := strconv.ParseInt(v, 10, 64)
	at, notTime := time.Parse("2006-01-02 15:04:05.999999", strings.Trim(v, "'"))
	float, notFloat := strconv.ParseFloat(v, 64)
	switch {
	case v == "TRUE" || v == "FALSE":
		arg = v == "TRUE"
	case notWhole == nil && !m.chance(4):
		arg = whole
	case notFloat == nil && strings.ContainsAny(v, ".e") && m.chance(2):
		arg = float
	case notTime == nil && m.dialect != SQLite && m.chance(2):
		arg = at
	}
	m.args = append(m.args, arg)
	return "?"
}

func (m mixer) kind() kind { return kinds[m.IntN(len(kinds))] }

// table returns a table of mixed columns, with an alias.
func (m mixer) table() (text, alias string) {
	alias = m.name("m")
	return m.pick("goods", "goods", "facts") + " " + alias, alias
}

func (m mixer) query() Statement {
	var text string
	var n int
	switch m.IntN(9) {
	case 0, 1:
		text, n = m.groups()
	case 3:
		text, n = m.totals()
	case 2:
		n = 1 + m.IntN(2)
		columns := make([]kind, n)
		for i := range columns {
			columns[i] = m.kind()
		}
		text = m.some(columns) + m.pick(" UNION ", " UNION ALL ") + m.some(columns)
	default:
		text, n = m.rows()
	}
	s := Statement{Query: true, Folds: true}
	if s.Ordered = m.chance(2); s.Ordered {
		by := make([]string, n)
		for i, column := range m.Perm(n) {
			by[i] = strconv.Itoa(column+1) + m.pick("", " DESC")
		}
		limits := []string{"", "", " LIMIT 5", " LIMIT 4 OFFSET 3"}
		if m.dialect == MariaDB { // which ignores an OFFSET beside DISTINCT of constants
			limits = limits[:3]
		}
		text += " ORDER BY " + strings.Join(by, ", ") + m.pick(limits...)
	}
	s.Text, s.Args = m.dialect.Numbered(text), m.args
	return s
}

// some selects some columns.
func (m mixer) some(columns []kind) string {
	from, alias := m.table()
	items := make([]string, len(columns))
	for i, k := range columns {
		items[i] = alias + "." + k.name
	}
	return "SELECT " + strings.Join(items, ", ") + " FROM " + from + m.where(alias, 1)
}

func (m mixer) where(alias string, depth int) string {
	if m.chance(3) {
		return ""
	}
	return " WHERE " + m.condition(alias, depth)
}

// rows selects rows.
func (m mixer) rows() (string, int) {
	from, alias := m.table()
	items := make([]string, 1+m.IntN(3))
	for i := range items {
		items[i] = m.value(alias, m.kind(), 1) + " AS k" + strconv.Itoa(i)
	}
	return "SELECT " + m.pick("", "", "DISTINCT ") + strings.Join(items, ", ") + " FROM " + from + m.where(alias, 2), len(items)
}

// groups selects groups.
func (m mixer) groups() (string, int) {
	from, alias := m.table()
	var items, keys []string
	for range m.IntN(3) {
		key := alias + "." + m.kind().name
		if m.chance(3) {
			before := len(m.args)
			if key = m.value(alias, m.kind(), 1); strings.Contains(key, "SELECT") {
				m.args, key = m.args[:before], alias+"."+m.kind().name
			}
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	items = append(items, keys...)
	for range 1 + m.IntN(2) {
		items = append(items, m.computed(alias))
	}
	for i := range items {
		items[i] += " AS k" + strconv.Itoa(i)
	}
	text := "SELECT " + strings.Join(items, ", ") + " FROM " + from + m.where(alias, 2)
	for i, key := range keys {
		if strings.Contains(key, "?") { // the same text with another parameter would be another expression
			keys[i] = strconv.Itoa(i + 1)
		}
	}
	if len(keys) > 0 {
		text += " GROUP BY " + strings.Join(keys, ", ")
	}
	if len(keys) > 0 && m.chance(2) {
		text += " HAVING " + m.aggregate(alias) + m.operator() + m.having(m.kind())
	}
	return text, len(items)
}

func (m mixer) aggregate(alias string) string {
	k := m.kind()
	c := alias + "." + k.name
	list := []string{"MIN(" + c + ")", "MAX(" + c + ")", "COUNT(" + c + ")", "COUNT(DISTINCT " + c + ")"}
	if m.sums(k) {
		list = append(list, "SUM("+c+")", "AVG("+c+")", "SUM("+c+")", "AVG("+c+")")
	}
	return m.pick(list...)
}

// computed returns an aggregate, or what is computed from aggregates.
func (m mixer) computed(alias string) string {
	if !m.chance(2) {
		return m.aggregate(alias)
	}
	k := m.kind()
	c := alias + "." + k.name
	list := []string{
		"COALESCE(MIN(" + c + "), " + m.literal(k) + ")", "NULLIF(MAX(" + c + "), " + m.literal(k) + ")", "COALESCE(MAX(" + c + "), " + m.literal(m.like(k)) + ")",
		"RANK() OVER (ORDER BY MAX(" + c + "))", "DENSE_RANK() OVER (ORDER BY COUNT(" + c + "), MIN(" + c + ") DESC)", "SUM(COUNT(*)) OVER (PARTITION BY MIN(" + c + "))", "COUNT(MAX(" + c + ")) OVER ()",
	}
	if m.sums(k) {
		list = append(list, "SUM(DISTINCT "+c+")", "COALESCE(SUM("+c+"), 0)", "SUM(SUM("+c+")) OVER (ORDER BY COUNT(*))", "SUM("+c+") * 2 - SUM(SUM("+c+")) OVER ()")
	}
	return m.pick(list...)
}

// totals selects one row of an aggregate from each of two tables, or twice from one.
func (m mixer) totals() (string, int) {
	k := m.kind()
	of := []string{"COUNT(%)", "MIN(%)", "MAX(%)"}
	if m.sums(k) {
		of = append(of, "SUM(%)", "COALESCE(SUM(%), 0)")
	}
	made := m.pick(of...)
	branch := func() string {
		from, alias := m.table()
		return "SELECT " + strings.Replace(made, "%", alias+"."+k.name, 1) + " AS k0 FROM " + from + m.where(alias, 1)
	}
	return branch() + " UNION ALL " + branch(), 1
}

// sums reports whether the values of a kind may be added. SQLite's integers overflow, and its decimals are
// floats.
func (m mixer) sums(k kind) bool {
	return k.sums && (m.dialect != SQLite || k.name != "big" && k.name != "money")
}

func (m mixer) operator() string { return m.pick(" = ", " = ", " < ", " > ", " >= ", " <> ") }

// like returns a kind: usually the same, or any.
func (m mixer) like(k kind) kind {
	if m.chance(3) {
		k = m.kind()
		k.other = true
	}
	return k
}

// having returns an operand for HAVING. An argument of PostgreSQL must fit into the type of the other operand.
func (m mixer) having(k kind) string {
	if m.dialect == PostgreSQL && m.chance(2) {
		return m.literal(k)
	}
	if m.dialect == PostgreSQL {
		return m.scalar(k, 0)
	}
	return m.operand(k)
}

// operand returns a value of a kind that does not depend on the row.
func (m mixer) operand(k kind) string {
	if m.chance(2) {
		return m.given(k)
	}
	return m.scalar(k, 0)
}

// condition returns a condition on a row of the table.
func (m mixer) condition(alias string, depth int) string {
	switch m.IntN(9) {
	case 0:
		return "(" + m.condition(alias, depth-1) + m.pick(" AND ", " OR ") + m.condition(alias, depth-1) + ")"
	case 1:
		return "NOT (" + m.condition(alias, depth-1) + ")"
	}
	k := m.kind()
	c := m.value(alias, k, depth-1)
	if depth > 0 && m.chance(2) {
		return c + m.subquery(k, depth-1)
	}
	switch m.IntN(5) {
	case 0:
		return c + m.operator() + alias + "." + m.like(k).name
	case 1:
		return c + m.pick(" IS NULL", " IS NOT NULL")
	case 2:
		return c + m.pick(" IN (", " NOT IN (") + m.given(m.like(k)) + ", " + m.given(m.like(k)) + ")"
	case 3:
		return c + " BETWEEN " + m.given(m.like(k)) + " AND " + m.given(m.like(k))
	}
	return c + m.operator() + m.given(m.like(k))
}

// subquery returns the comparison of a kind with a subquery.
func (m mixer) subquery(k kind, depth int) string {
	switch m.IntN(5) {
	case 0, 1:
		return m.pick(" IN ", " NOT IN ") + m.list(m.like(k), depth)
	case 2:
		return " BETWEEN " + m.operand(m.like(k)) + " AND " + m.scalar(m.like(k), depth)
	}
	return m.operator() + m.scalar(m.like(k), depth)
}

// value returns a column, or an expression of it.
func (m mixer) value(alias string, k kind, depth int) string {
	c := alias + "." + k.name
	if depth <= 0 || !m.chance(3) {
		return c
	}
	switch m.IntN(10) {
	case 0:
		return "COALESCE(" + c + ", " + m.given(m.like(k)) + ")"
	case 1:
		return "CASE WHEN " + m.condition(alias, 0) + " THEN " + c + " ELSE " + m.given(m.like(k)) + " END"
	case 2:
		return "NULLIF(" + c + ", " + m.given(m.like(k)) + ")"
	case 3:
		return "(" + c + m.pick(" + ", " - ", " * ") + m.pick("1", "2.5", "1e0", alias+"."+m.kind().name) + ")"
	case 4:
		return "(" + c + m.pick(" + ", " - ", " * ") + m.scalar(m.like(k), 0) + ")"
	case 5, 6:
		return m.scalar(k, 0)
	case 7:
		return "COALESCE(" + m.scalar(k, 0) + ", " + m.pick(c, m.literal(m.like(k)), m.literal(k)) + ")"
	case 8:
		return m.pick("-", "+", "ABS", "ROUND", "LOWER", "DATE", "LENGTH", "FLOOR") + "(" + c + ")"
	}
	return "CASE WHEN " + c + m.operator() + m.scalar(m.like(k), 0) + " THEN 1 ELSE 0 END"
}

// scalar returns a subquery of one value.
func (m mixer) scalar(k kind, depth int) string {
	from, alias := m.table()
	c := alias + "." + k.name
	switch n := m.IntN(5); {
	case n == 0:
		return "(SELECT " + c + " FROM " + from + " WHERE " + alias + ".id = " + strconv.Itoa(m.IntN(40)) + ")"
	case n == 1:
		return "(SELECT " + c + " FROM " + from + m.where(alias, 0) + " ORDER BY " + alias + ".id LIMIT 1)"
	case n == 2 && m.sums(k):
		return "(SELECT " + m.pick("SUM(", "AVG(") + c + ") FROM " + from + m.where(alias, 0) + ")"
	case n == 2:
		return "(SELECT COUNT(" + m.pick("*", c) + ") FROM " + from + m.where(alias, 0) + ")"
	}
	return "(SELECT " + m.pick("MAX(", "MIN(") + m.value(alias, k, depth) + ") FROM " + from + m.where(alias, 0) + ")"
}

// list returns a subquery of several values.
func (m mixer) list(k kind, depth int) string {
	from, alias := m.table()
	c := alias + "." + k.name
	switch n := m.IntN(4); {
	case n == 0 && (k.name != "big" || m.dialect != MySQL): // which takes a large one for a negative number
		return "(SELECT MAX(" + c + ") FROM " + from + m.where(alias, 0) + " GROUP BY " + alias + ".small)"
	case n <= 1, m.dialect == MariaDB: // which may ignore a NULL beside NOT IN
		return "(SELECT DISTINCT " + m.value(alias, k, depth) + " FROM " + from + " WHERE " + c + " IS NOT NULL)"
	}
	return "(SELECT " + m.value(alias, k, depth) + " FROM " + from + m.where(alias, 0) + ")"
}
