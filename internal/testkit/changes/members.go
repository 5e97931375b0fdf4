// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// MemberColumns are the columns of the table members, for CREATE TABLE. Neither id nor email leads
// to the shard; user_id does: its value modulo Members.Slots is the slot.
const MemberColumns = " (id BIGINT NOT NULL, user_id BIGINT NOT NULL, paid INT NOT NULL, email VARCHAR(20), PRIMARY KEY (id), UNIQUE (email))"

// Members generates the statements of a program on members: statements that depend on a row with
// the same id or email, which may be on any shard. A database of shards may refuse a statement
// whose row it has under another key; IsRefusal recognises that.
type Members struct {
	*Maker
	IsRefusal func(error) bool
	Slots     int64
	// Refused is the number of refused statements, each of which had a reason.
	Refused int
	last    int64 // the id that was generated last
	rows    []member
}

// member is a row that a statement stores, or its new values.
type member struct {
	id, user int64
	email    string // "" for NULL
}

// Statement returns the next statement.
func (m *Members) Statement() Statement {
	m.args, m.rows = nil, nil
	text := m.text()
	return Statement{text, m.args}
}

func (m *Members) text() string {
	switch m.IntN(16) {
	case 0, 1:
		return "INSERT INTO members" + m.values(m.made)
	case 2, 3:
		if m.SQLite {
			return "INSERT INTO members" + m.values(m.byID) + " ON CONFLICT (id) DO UPDATE SET paid = members.paid + excluded.paid, email = members.email" + m.key("excluded.user_id")
		}
		return "INSERT INTO members" + m.values(m.any) + " ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), paid = paid + VALUES(paid)" + m.key("VALUES(user_id)")
	case 4:
		if m.SQLite {
			return "INSERT INTO members" + m.values(m.byEmail) + " ON CONFLICT (email) DO UPDATE SET paid = excluded.paid"
		}
		return "INSERT IGNORE INTO members" + m.values(m.any)
	case 5:
		if m.SQLite {
			return "INSERT INTO members" + m.values(m.any) + " ON CONFLICT DO NOTHING"
		}
		return "INSERT INTO members" + m.values(m.any) + " ON DUPLICATE KEY UPDATE id = members.id"
	case 6:
		if m.SQLite {
			return "INSERT OR IGNORE INTO members" + m.values(m.any)
		}
		return "INSERT IGNORE INTO members" + m.values(m.any)
	case 7:
		return "REPLACE INTO members" + m.values(m.any)
	case 8:
		return "DELETE FROM members WHERE user_id = " + m.value(m.Int64N(20)) + " AND id > " + m.value(m.Int64N(40))
	case 9:
		row := m.any()
		m.rows = []member{row}
		return "UPDATE members SET id = " + m.value(row.id) + " WHERE id = " + m.value(m.Int64N(40)) + " AND user_id = " + m.value(row.user)
	case 10:
		row := m.byEmail()
		m.rows = []member{row}
		return "UPDATE members SET email = " + m.email(row.email) + " WHERE id = " + m.value(m.Int64N(40)) + " AND user_id = " + m.value(row.user)
	case 11:
		return "UPDATE members SET paid = paid + 1 WHERE id = " + m.id(m.Int64N(40))
	case 12:
		return "DELETE FROM members WHERE id IN (" + m.id(m.Int64N(40)) + ", " + m.id(m.Int64N(40)) + ") AND paid > " + m.value(m.Int64N(2))
	case 13:
		return "UPDATE members SET paid = paid + 2 WHERE email = " + m.email(m.byEmail().email)
	case 14:
		row := m.byID()
		m.rows = []member{row}
		return "UPDATE members SET user_id = " + m.value(row.user) + ", paid = 0 WHERE id = " + m.id(row.id)
	}
	return "UPDATE members SET paid = paid + 1 WHERE user_id = " + m.value(m.Int64N(20))
}

// key randomly gives an existing row the sharding key of the new one.
func (m *Members) key(of string) string {
	if m.IntN(2) == 0 {
		return ""
	}
	return ", user_id = " + of
}

// made returns a row whose keys no other row has.
func (m *Members) made() member {
	m.last++
	return member{id: 1000 + m.last, user: m.Int64N(20)}
}

// byID returns a row whose id may exist.
func (m *Members) byID() member { return member{id: m.Int64N(40), user: m.Int64N(20)} }

// byEmail returns a row whose email may exist.
func (m *Members) byEmail() member {
	row := m.made()
	if m.IntN(4) > 0 {
		letters := "abcdefghiklmnopqrst"
		if !m.SQLite { // its collation treats both as equal
			letters += "ABCDEFGH"
		}
		row.email = fmt.Sprintf("%c@x", letters[m.IntN(len(letters))])
	}
	return row
}

// any returns a row whose id and email may exist.
func (m *Members) any() member {
	row := m.byEmail()
	row.id = m.Int64N(40)
	return row
}

func (m *Members) values(row func() member) string {
	var list []string
	for range 1 + m.IntN(3) {
		r := row()
		m.rows = append(m.rows, r)
		list = append(list, fmt.Sprintf("(%s, %s, %s, %s)", m.id(r.id), m.value(r.user), m.value(m.Int64N(3)), m.email(r.email)))
	}
	return " (id, user_id, paid, email) VALUES " + strings.Join(list, ", ")
}

// id writes an id as a number, or as a text that a database converts to it.
func (m *Members) id(n int64) string {
	switch m.IntN(8) {
	case 0:
		return fmt.Sprintf("'0%d'", n)
	case 1:
		m.args = append(m.args, fmt.Sprintf("%03d", n))
		return "?"
	}
	return m.value(n)
}

func (m *Members) email(email string) string {
	if email == "" {
		return "NULL"
	}
	return m.value(email)
}

// refused checks that a refusal has a reason: a row of another slot has a key of the statement, in
// the whole table or in the statement itself.
func (m *Members) refused(ctx context.Context, whole Queries, s Statement, failed error) error {
	m.Refused++
	for i, r := range m.rows {
		for _, other := range m.rows[:i] {
			if (r.id == other.id || r.email != "" && strings.EqualFold(r.email, other.email)) && r.user%m.Slots != other.user%m.Slots {
				return nil
			}
		}
		if found, err := r.isElsewhere(ctx, whole, m.Slots); err != nil || found {
			return err
		}
	}
	return fmt.Errorf("%s %v is refused without a reason: %w", s.Text, s.Args, failed)
}

// isElsewhere reports whether a row of another slot has one of the keys.
func (r member) isElsewhere(ctx context.Context, whole Queries, slots int64) (found bool, err error) {
	rows, err := whole.QueryContext(ctx, "SELECT id FROM members WHERE (id = ? OR email = ?) AND user_id % ? <> ?", r.id, r.email, slots, r.user%slots)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	return rows.Next(), rows.Err()
}
