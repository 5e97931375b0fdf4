// SPDX-License-Identifier: Apache-2.0

package shapes

import "strings"

// tree is a recursive CTE: its name, and the names of its columns.
type tree struct{ name, id, key string }

// Trees returns a random query of a recursive CTE, which depends only on the seed: orders below other orders, usually of one user.
func Trees(seed uint64, dialect Dialect) Statement {
	m := New(seed, dialect)
	t := tree{m.pick("t", "tree", "items"), "id", "user_id"} // items hides the sharded table
	head := t.name
	if m.chance(4) { // the columns have other names in the CTE
		t.id, t.key = "node", m.pick("owner", "id", "paid")
		head += " (" + t.id + ", " + t.key + ", depth)"
	}
	text := []string{"WITH RECURSIVE", head, "AS (", t.roots(m), m.pick("UNION ALL", "UNION ALL", "UNION"), t.below(m), ")"}
	text = append(text, "SELECT", m.pick("r."+t.id+", r."+t.key+", r.depth", "COUNT(*)", "DISTINCT r."+t.key), "FROM", t.name, "r")
	if m.chance(3) {
		text = append(text, m.pick("JOIN", "LEFT JOIN"), "orders j ON j.user_id = r."+t.key, m.pick("", "AND j.id = r."+t.id))
	}
	if m.chance(2) {
		text = append(text, "WHERE", m.pick("r."+t.key+" =", "r.depth >"), m.small())
	}
	return Statement{Query: true, Text: dialect.Numbered(strings.Join(text, " ")), Args: m.args}
}

// roots returns the first SELECT of a tree.
func (t tree) roots(m *Maker) string {
	text := "SELECT o.id, o.user_id, 0 AS depth FROM orders o"
	switch m.IntN(12) {
	case 0:
		text = "SELECT o.id, o.paid AS user_id, 0 AS depth FROM orders o"
	case 1:
		return "SELECT o.id, MAX(o.user_id) AS user_id, 0 AS depth FROM orders o GROUP BY o.id"
	case 2:
		return "SELECT o.id, o.user_id, COUNT(*) OVER () AS depth FROM orders o WHERE o.paid > 4"
	}
	if m.chance(4) && t.name != "items" {
		text += m.pick(" JOIN", " LEFT JOIN") + " items i ON i.user_id = o.user_id AND i.order_id = o.id"
	}
	switch m.IntN(9) {
	case 0:
		text += " WHERE o.id = " + m.value(int64(m.IntN(48)))
	case 1:
		text += " WHERE o.user_id = " + m.small() + " AND o.paid = " + m.small()
	case 2, 3, 4, 5, 6:
		text += " WHERE o.user_id = " + m.small()
	}
	return text
}

// below returns the second SELECT of a tree.
func (t tree) below(m *Maker) string {
	key := "p." + t.key
	link := m.pick("n.id > p."+t.id, "n.id < p."+t.id, "n.paid = p.depth", "n.amount = p.depth + 2") + " AND p.depth < 2"
	same := m.pick("n.user_id = "+key, "n.user_id = "+key, "n.user_id = "+key, "n.user_id = "+key, "n.user_id = "+key, "n.user_id = "+key, key+" = n.user_id", "n.user_id IN ("+key+")", "n.user_id = "+key+" + 0", "n.user_id >= "+key, "n.amount = 2", "(n.user_id = "+key+" OR n.paid = 2)")
	selected := m.pick("n.id, n.user_id", "n.id, n.user_id", "n.id, n.user_id", "n.id, n.user_id", "n.id, n.user_id", "n.id, n.user_id", "n.id, "+key, "n.user_id, n.id", "n.id, n.paid", "n.id, n.amount", "p."+t.id+", n.user_id")
	from := m.pick("orders n JOIN "+t.name+" p ON "+same+" AND "+link, t.name+" p JOIN orders n ON "+link+" AND "+same, "orders n, "+t.name+" p WHERE "+same+" AND "+link,
		t.name+" p LEFT JOIN orders n ON "+link+" AND "+same+" WHERE p.depth < 2"+m.pick("", " AND n.id > 0"))
	return "SELECT " + selected + ", p.depth + 1 FROM " + from
}
