// SPDX-License-Identifier: Apache-2.0

// Package changes generates random programs that write to one table, and runs each on two
// databases: one with all rows in one table, and one with shards. The results of the statements,
// and the rows afterwards, must be the same. Tests of the statement engine use it on any database.
package changes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Columns are the columns of the table orders, for CREATE TABLE. id modulo 4 equals user_id modulo
// 4, which is the shard.
const Columns = " (id BIGINT NOT NULL, user_id BIGINT NOT NULL, paid INT NOT NULL, note VARCHAR(20), PRIMARY KEY (id))"

// Statement is one statement of a program.
type Statement struct {
	Text string
	Args []any
}

// Maker generates programs that depend only on its random source.
type Maker struct {
	*rand.Rand
	// SQLite selects SQLite's statements instead of MySQL's.
	SQLite bool
	// PostgreSQL selects PostgreSQL's statements.
	PostgreSQL bool
	args       []any
}

// Statement returns the next statement.
func (m *Maker) Statement() Statement {
	m.args = nil
	text := m.text()
	return Statement{text, m.args}
}

func (m *Maker) text() string {
	switch m.IntN(10) {
	case 0, 1, 2:
		return "INSERT INTO" + m.rows()
	case 3:
		if m.SQLite || m.PostgreSQL {
			return "INSERT INTO" + m.rows() + " ON CONFLICT (id) DO UPDATE SET paid = orders.paid + excluded.paid, note = " + m.value("again")
		}
		return "INSERT INTO" + m.rows() + " ON DUPLICATE KEY UPDATE paid = orders.paid + VALUES(paid), note = " + m.value("again")
	case 4:
		switch {
		case m.SQLite:
			return "INSERT OR IGNORE INTO" + m.rows()
		case m.PostgreSQL:
			return "INSERT INTO" + m.rows() + " ON CONFLICT DO NOTHING"
		}
		return "INSERT IGNORE INTO" + m.rows()
	case 5:
		if m.PostgreSQL {
			return "UPDATE orders SET note = LOWER(note) WHERE user_id = " + m.value(m.Int64N(20)) + " OR id = " + m.value(m.Int64N(240))
		}
		return "REPLACE INTO" + m.rows()
	case 6:
		return "DELETE FROM orders" + m.where() + " AND orders.paid = " + m.value(m.Int64N(4))
	}
	return "UPDATE orders SET paid = paid + " + m.value(m.Int64N(3)) + ", note = " + m.value("changed") + m.where()
}

// rows returns new rows, some of which may exist already.
func (m *Maker) rows() string {
	var rows []string
	for range 1 + m.IntN(6) {
		user := m.Int64N(20)
		rows = append(rows, fmt.Sprintf("(%s, %s, %s, %s)", m.value(user+20*m.Int64N(12)), m.value(user), m.value(m.Int64N(3)), m.value("new")))
	}
	text := " orders (id, user_id, paid, note) VALUES " + strings.Join(rows, ",\n ")
	return text
}

func (m *Maker) where() string {
	column, most := "user_id", int64(20)
	switch m.IntN(4) {
	case 0:
		return " WHERE paid > " + m.value(m.Int64N(4))
	case 1:
		column, most = "id", 240
	}
	var list []string
	for range 1 + m.IntN(4) {
		list = append(list, m.value(m.Int64N(most)))
	}
	return " WHERE " + column + " IN (" + strings.Join(list, ", ") + ")"
}

// value returns a literal or a parameter.
func (m *Maker) value(v any) string {
	if m.IntN(3) > 0 {
		m.args = append(m.args, v)
		if m.PostgreSQL {
			return "$" + strconv.Itoa(len(m.args))
		}
		return "?"
	}
	if s, ok := v.(string); ok {
		return "'" + s + "'"
	}
	return fmt.Sprint(v)
}

// Queries executes statements: a *sql.DB or *sql.Tx.
type Queries interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Run executes a statement and returns the number of affected rows, -1 if it fails. It hides the
// errors because they name other tables.
func (s Statement) Run(ctx context.Context, on Queries) (affected int64, err error) {
	r, err := on.ExecContext(ctx, s.Text, s.Args...)
	if err != nil {
		return -1, err
	}
	return r.RowsAffected()
}

// rows returns the result of a query in a fixed order: three numbers and a text.
func rows(ctx context.Context, on Queries, query string) (all []string, err error) {
	found, err := on.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var id, user, paid int64
		var note sql.NullString
		if err := found.Scan(&id, &user, &paid, &note); err != nil {
			return nil, err
		}
		all = append(all, fmt.Sprint(id, user, paid, note))
	}
	slices.Sort(all)
	return all, found.Err()
}
