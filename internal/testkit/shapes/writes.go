// SPDX-License-Identifier: Apache-2.0

package shapes

import (
	"fmt"
	"strings"
)

// writer generates writes.
type writer struct{ *Maker }

// Write returns a random write.
func (m *Maker) Write() Statement {
	m.dice = dice{Rand: m.Rand}
	text := m.dialect.Numbered((&writer{m}).write())
	return Statement{Text: text, Args: m.args, Query: strings.Contains(text, " RETURNING "), Writes: true}
}

func (m *writer) write() string {
	table := m.pick("orders", "items")
	c := columns[table]
	self := []source{{table, c.numbers, c.texts}}
	switch m.IntN(10) {
	case 0, 1:
		return m.insert(table)
	case 2:
		return m.insertSelect(table)
	case 3, 4:
		return m.upsert(table)
	case 5:
		return "DELETE FROM " + table + " WHERE " + m.key(self) + " AND " + m.condition(self, 2) + m.returning(table)
	case 6:
		return m.deleteJoined()
	case 7:
		return m.updateJoined()
	}
	return "UPDATE " + table + " SET " + m.sets(table, self, "") + " WHERE " + m.condition(self, 2) + " AND " + m.condition(self, 1) + m.returning(table)
}

func (m *writer) returning(table string) string {
	if m.dialect.conflicts() && m.chance(4) {
		return " RETURNING " + m.pick("*", "id", columns[table].numbers[3]+" + 1, id")
	}
	return ""
}

// sets returns assignments to columns with a prefix.
func (m *writer) sets(table string, of []source, prefix string) string {
	c := columns[table]
	list := []string{prefix + c.numbers[3] + " = " + m.number(of, 2)}
	if m.chance(3) {
		list = append(list, prefix+c.texts[0]+" = "+m.text())
	}
	if m.chance(12) {
		to := prefix + "user_id"
		if m.chance(2) {
			to = m.user()
		}
		list = append(list, prefix+"user_id = "+to)
	}
	return strings.Join(list, ", ")
}

// row returns a new row, whose id leads to its shard.
func (m *writer) row(table string) string {
	user := m.IntN(8)
	id := user + 8*m.IntN(9)
	if table == "orders" {
		return fmt.Sprintf("(%s, %s, %s, %s, %s, %s)", m.value(int64(id)), m.value(int64(user)), m.small(), m.small(), m.text(), m.text())
	}
	return fmt.Sprintf("(%s, %s, %s, %s, %s)", m.value(int64(id)), m.value(int64(user)), m.small(), m.small(), m.text())
}

var lists = map[string]string{"orders": "(id, user_id, paid, amount, note, region)", "items": "(id, user_id, order_id, qty, sku)"}

func (m *writer) values(table string) string {
	var list []string
	for range 1 + m.IntN(4) {
		list = append(list, m.row(table))
	}
	return lists[table] + " VALUES " + strings.Join(list, ", ")
}

func (m *writer) insert(table string) string {
	verbs, tail := []string{"INSERT INTO ", "REPLACE INTO ", m.ignoring()}, ""
	if m.dialect == PostgreSQL {
		verbs, tail = verbs[:1], m.pick("", " ON CONFLICT DO NOTHING", " ON CONFLICT (id) DO NOTHING")
	}
	return m.pick(verbs...) + table + " " + m.values(table) + tail + m.returning(table)
}

func (m *writer) insertSelect(table string) string {
	from, s := m.named(m.pick("orders", "items"))
	of := []source{s}
	tail := ""
	if m.dialect == PostgreSQL {
		tail = " ON CONFLICT DO NOTHING" + m.returning(table)
	}
	third := "'n'"
	if table == "orders" {
		third = "'n', 'r'"
	}
	return m.ignoring() + table + " " + lists[table] + " SELECT " + s.alias + ".id, " + s.alias + ".user_id, " + m.number(of, 1) + ", COALESCE(" + m.number(of, 1) + ", 0), " + third +
		" FROM " + from + " WHERE " + m.key(of) + " AND " + m.condition(of, 1) + tail
}

// ignoring returns an INSERT that skips conflicting rows.
func (m *writer) ignoring() string {
	switch m.dialect {
	case SQLite:
		return "INSERT OR IGNORE INTO "
	case PostgreSQL: // its clause follows the rows
		return "INSERT INTO "
	}
	return "INSERT IGNORE INTO "
}

func (m *writer) upsert(table string) string {
	n, t := columns[table].numbers[3], columns[table].texts[0]
	text := "INSERT INTO " + table + " " + m.values(table)
	switch {
	case m.dialect.conflicts() && m.chance(3):
		return text + " ON CONFLICT DO NOTHING"
	case m.dialect.conflicts():
		more := []string{"", " + " + table + "." + n, " + " + n}
		if m.dialect == PostgreSQL { // PostgreSQL requires the qualifier
			more = more[:2]
		}
		text += " ON CONFLICT (id) DO UPDATE SET " + n + " = COALESCE(excluded." + n + m.pick(more...) + ", 1), " + t + " = " + m.textOr("excluded."+t)
		if m.chance(3) {
			text += " WHERE " + table + "." + n + " > " + m.small()
		}
		if m.dialect == PostgreSQL {
			text += m.returning(table)
		}
		return text
	case m.dialect == MySQL && m.chance(2):
		return text + " AS fresh ON DUPLICATE KEY UPDATE " + n + " = COALESCE(fresh." + n + " + " + table + "." + n + ", 1), " + t + " = fresh." + t
	}
	return text + " ON DUPLICATE KEY UPDATE " + n + " = COALESCE(VALUES(" + n + ") + " + n + ", 1), " + t + " = " + m.textOr("VALUES("+t+")")
}

func (m *writer) deleteJoined() string {
	_, o := m.named("orders")
	_, i := m.named("items")
	of := []source{o, i}
	where := m.equal([]source{o}, i) + " AND " + m.condition(of, 1) + " AND " + m.condition(of, 1)
	if m.dialect == SQLite {
		return "DELETE FROM items AS " + i.alias + " WHERE EXISTS (SELECT 1 FROM orders AS " + o.alias + " WHERE " + where + ") AND " + m.key([]source{i})
	}
	if m.dialect == PostgreSQL {
		return "DELETE FROM items AS " + i.alias + " USING orders AS " + o.alias + " WHERE " + where + m.pick("", " RETURNING "+i.alias+".id")
	}
	switch m.IntN(3) {
	case 0:
		return "DELETE " + i.alias + " FROM items AS " + i.alias + " JOIN orders AS " + o.alias + " ON " + where
	case 1:
		return "DELETE FROM " + i.alias + " USING items AS " + i.alias + " JOIN orders AS " + o.alias + " ON " + where
	}
	return "DELETE " + i.alias + ", " + o.alias + " FROM items AS " + i.alias + " JOIN orders AS " + o.alias + " ON " + where + " AND " + m.key([]source{o})
}

func (m *writer) updateJoined() string {
	_, o := m.named("orders")
	_, i := m.named("items")
	of := []source{o, i}
	if m.dialect.conflicts() {
		where := m.equal([]source{o}, i) + " AND " + i.alias + ".id = (SELECT MAX(z.id) FROM items z WHERE z.user_id = " + o.alias + ".user_id)"
		sets := m.sets("orders", of, "")
		return "UPDATE orders AS " + o.alias + " SET " + sets + " FROM items AS " + i.alias + " WHERE " + where + " AND " + m.condition(of, 1)
	}
	on := m.equal([]source{o}, i)
	return "UPDATE orders AS " + o.alias + " JOIN items AS " + i.alias + " ON " + on + " AND " + i.alias + ".id = " + o.alias + ".id SET " + m.sets("orders", []source{o}, o.alias+".") + " WHERE " + m.condition(of, 1)
}
