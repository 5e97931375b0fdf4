// SPDX-License-Identifier: Apache-2.0

package shapes

import (
	"slices"
	"strings"
)

// from returns the text after FROM.
func (m *Maker) from(ctes []source, depth int) (string, []source) {
	text, s := m.one(ctes, depth)
	parts, of := []string{text}, []source{s}
	for range []int{0, 0, 0, 1, 1, 2}[m.IntN(6)] {
		more, next := m.one(ctes, depth)
		parts = append(parts, m.join(of, more, next))
		of = append(of, next)
	}
	return strings.Join(parts, ""), of
}

// join adds a source, whose text is more, to other sources.
func (m *Maker) join(of []source, more string, next source) string {
	if join := m.conditionless(of, next); join != "" {
		return join + more
	}
	before := len(m.args)
	on := m.equal(of, next)
	if on == "" || m.chance(5) {
		on = m.condition(append(slices.Clone(of), next), 1)
	}
	if m.chance(3) {
		on += " AND " + m.condition(append(slices.Clone(of), next), 1)
	}
	kind := " JOIN "
	switch shared := sharedKey(of, next); m.IntN(8) {
	case 0, 1:
		kind = " LEFT JOIN "
	case 2:
		kind = m.pick(m.dialect.joins()...)
	case 3:
		if !strings.Contains(on, "SELECT") { // MySQL 9.7 returns rows twice for it beside RIGHT JOIN
			kind = " RIGHT JOIN "
		}
	case 4:
		if shared {
			m.args = m.args[:before]
			return m.pick(" JOIN ", " LEFT JOIN ", " RIGHT JOIN ") + more + " USING (user_id)"
		}
	}
	return kind + more + " ON " + on
}

// conditionless returns a join without ON, or "".
func (m *dice) conditionless(of []source, next source) string {
	switch m.IntN(16) {
	case 0:
		return m.pick(" CROSS JOIN ", " CROSS JOIN ", ", ")
	case 1:
		if len(of) == 1 && slices.Equal(of[0].texts, next.texts) {
			return m.pick(" NATURAL JOIN ", " NATURAL LEFT JOIN ", " NATURAL RIGHT JOIN ")
		}
	}
	return ""
}

// sharedKey reports whether USING may join a source to the only other one.
func sharedKey(of []source, next source) bool {
	return len(of) == 1 && slices.Contains(of[0].numbers, "user_id") && slices.Contains(next.numbers, "user_id")
}

// equal returns the equality of two sharding keys, or "".
func (m *Maker) equal(of []source, next source) string {
	o := of[m.IntN(len(of))]
	if !slices.Contains(next.numbers, "user_id") || !slices.Contains(o.numbers, "user_id") {
		return ""
	}
	text := o.alias + ".user_id = " + next.alias + ".user_id"
	if slices.Contains(next.numbers, "order_id") && slices.Contains(o.numbers, "id") && m.chance(2) {
		text += " AND " + next.alias + ".order_id = " + o.alias + ".id"
	}
	return text
}

// merged returns a SELECT of two columns of tables that USING joins, by their common column.
func merged(m *Maker) string {
	text, first := m.named(m.pick("orders", "items"))
	parts, of := []string{text}, []source{first}
	for range 1 + m.IntN(2) {
		more, next := m.named(m.pick("orders", "items"))
		parts = append(parts, m.pick(" JOIN ", " JOIN ", " LEFT JOIN ", " RIGHT JOIN ")+more+" USING (user_id)")
		of = append(of, next)
	}
	from := strings.Join(parts, "") + " WHERE user_id " + m.pick("= ", "= ", "> ", "<> ") + m.user()
	if m.chance(2) {
		from += " AND " + m.condition(of, 1)
	}
	if m.chance(2) {
		return "SELECT user_id, COUNT(*) FROM " + from + " GROUP BY user_id"
	}
	return "SELECT user_id, " + of[m.IntN(len(of))].alias + ".id FROM " + from
}

// outerGroups returns groups of the rows of regions, which every database has, and aggregates of rows that are joined to
// them. Some of its statements differ from shard to shard.
func outerGroups(m *Maker, ctes []source) string {
	at := len(m.args)
	regions, r := m.named("regions")
	if m.chance(3) {
		regions, r = m.one(ctes, 1)
	}
	first := m.cut(at)
	table, o := m.named(m.pick("orders", "items"))
	number := m.column([]source{r}, false)
	key := m.pick(number, number, "COALESCE("+number+", 0)", number+" % 2")
	if len(r.texts) > 0 && m.chance(2) {
		key = r.alias + "." + r.texts[0]
	}
	joined, both := []source{o}, []source{r, o}
	if m.chance(12) {
		key = m.column(both, false)
	}
	items := []string{key + " AS k", m.pick("COUNT", "COUNT", "SUM", "MIN", "MAX") + "(" + m.column(joined, false) + ")"}
	if m.chance(6) {
		items[1] = m.pick("COUNT(*)", "SUM("+number+")", "COUNT(DISTINCT "+m.column(joined, false)+")")
	}
	switch m.IntN(4) {
	case 0:
		items = append(items, "COALESCE(SUM("+m.column(joined, false)+" * "+number+"), 0)")
	case 1:
		items = append(items, m.pick("SUM", "SUM", "COUNT", "MAX")+"(CASE WHEN "+m.condition(both, 1)+" THEN "+m.pick("1", m.column(joined, false))+m.pick("", " ELSE 0", " ELSE NULL")+" END)")
	case 2:
		items = append(items, m.pick("SUM", "COUNT")+"("+m.number(both, 1)+")")
	}
	at = len(m.args)
	on := number + " = " + m.column(joined, false)
	if len(r.texts) > 0 && m.chance(2) {
		on = r.alias + "." + r.texts[0] + " = " + o.alias + "." + o.texts[len(o.texts)-1]
	}
	if m.chance(3) {
		on += " AND " + m.condition(both, 1)
	}
	last := m.cut(at)
	m.args = append(append(m.args, first...), last...)
	from := regions + " LEFT JOIN " + table
	if m.chance(4) {
		from = table + " RIGHT JOIN " + regions
	}
	text := "SELECT " + strings.Join(items, ", ") + " FROM " + from + " ON " + on
	switch m.IntN(6) {
	case 0:
		text += " WHERE " + m.condition([]source{r}, 1)
	case 1:
		text += " WHERE " + m.condition(both, 1)
	}
	text += " GROUP BY " + key
	if m.chance(4) {
		text += " HAVING COUNT(" + m.column(joined, false) + ")" + m.pick(" > ", " < ", " = ") + m.small()
	}
	return text
}
