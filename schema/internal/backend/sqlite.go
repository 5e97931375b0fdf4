// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// sqLite implements Backend for SQLite, where a file has one writer at a time.
type sqLite struct {
	dialect.SQLite
	sqliteConnections
	sqliteCatalog
	sqliteRecognition
	sqliteCapture
	sqliteExclusion
	sqliteExpression
	sqliteWriting
}

type (
	sqliteConnections struct{}
	sqliteCatalog     struct{ dialect.SQLite }
	sqliteRecognition struct{ dialect.SQLite }
	sqliteCapture     struct{ dialect.SQLite }
	sqliteExclusion   struct{ dialect.SQLite }
	sqliteExpression  struct{ dialect.SQLite }
	sqliteWriting     struct{ dialect.SQLite }
)

var _ Backend = sqLite{}

func (sqliteConnections) begin() string    { return "BEGIN IMMEDIATE" }
func (sqliteConnections) commit() string   { return "COMMIT" }
func (sqliteConnections) LockRead() string { return "" }

func (sqliteConnections) Duplicate(err error) bool {
	return err != nil && strings.Contains(err.Error(), "UNIQUE constraint failed")
}

func (m sqliteExclusion) Rename(from, to string) string {
	return "ALTER TABLE " + m.Quote(from) + " RENAME TO " + m.Quote(to)
}

func (m sqliteExclusion) RenameAll(all []Rename) []string {
	list := make([]string, len(all))
	for i, r := range all {
		list[i] = m.Rename(r.From, r.To)
	}
	return list
}

const sqliteBusyTimeout = 10_000 // ms

// pin switches foreign keys off, so that rewriting a parent in a retired table does not
// delete its children.
func (sqliteConnections) pin(ctx context.Context, c *sql.Conn) error {
	settings := []struct {
		name  string
		value int
	}{{"busy_timeout", sqliteBusyTimeout}, {"foreign_keys", 0}, {"query_only", 0}, {"read_uncommitted", 0}, {"legacy_alter_table", 0}, {"ignore_check_constraints", 0}, {"writable_schema", 0}}
	for _, set := range settings {
		if _, err := c.ExecContext(ctx, fmt.Sprintf("PRAGMA %s = %d", set.name, set.value)); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrSession, set.name, err)
		}
		var is int
		if err := c.QueryRowContext(ctx, "PRAGMA "+set.name).Scan(&is); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrSession, set.name, err)
		}
		if is != set.value {
			return fmt.Errorf("%w: %s is %d, not %d", ErrSession, set.name, is, set.value)
		}
	}
	return nil
}

// Value returns a SQL literal: it is exact for every type that a value may have, whatever
// the column's type. A text is written in hexadecimal, because quote() stops at a zero
// byte.
func (m sqliteExpression) Value(qualifier string, c Column) string {
	name := qualifier + m.Quote(c.Name)
	return "CASE typeof(" + name + ") WHEN 'text' THEN 'CAST(x''' || hex(" + name + ") || ''' AS TEXT)' ELSE quote(" + name + ") END"
}

// Refused is always 0, as literals are exact.
func (sqliteExpression) Refused(string, []Column) string { return "0" }

// These limit the size of one INSERT; larger ones are not faster.
const (
	statementRows  = 1000
	statementBytes = 1 << 20
)

func (sqliteExpression) KeyText(expression string, _ Column) string {
	return "CAST(" + expression + " AS CHAR)"
}

func (sqliteExpression) BytesOf(expression string, _ Column) string {
	return "(" + expression + " COLLATE BINARY)"
}

func (sqliteWriting) GrowBuffers(context.Context, *Session) error { return nil }

func (sqliteWriting) Batch(rows []Row) int { return min(statementRows, fitting(rows, statementBytes)) }

func (m sqliteWriting) Deletion(table, key string, keys []int64, condition string) string {
	text := "DELETE FROM " + m.Quote(table) + " WHERE " + m.Quote(key) + " IN (" + IDList(keys) + ")"
	if condition != "" {
		text += " AND " + condition
	}
	return text
}

// Insert has the values in its text, as literals.
func (m sqliteWriting) Insert(ctx context.Context, s *Session, columns []Column, name string, rows []Row) error {
	return s.Exec(ctx, insertText(insertHead(m, columns, name), rows))
}

// Lead always succeeds, as SQLite has no lock that ends with its process. The runner
// started last leads, and the fence stops the others.
func (sqliteExclusion) Lead(context.Context, *Session, string) (bool, error) { return true, nil }

// LimitIdle does nothing: there is no server.
func (sqliteExclusion) LimitIdle(context.Context, *Session, time.Duration) error { return nil }

func (m sqliteCapture) dropTrigger(name string) string {
	return "DROP TRIGGER IF EXISTS " + m.Quote(name)
}

// IgnoreKeys does nothing: the pinned settings switch foreign keys off.
func (sqliteCapture) IgnoreKeys(context.Context, *Session, bool) error { return nil }

// PassBarrier must be called in the transaction that writes, as others see it otherwise.
func (sqliteCapture) PassBarrier(ctx context.Context, s *Session, pass bool) error {
	value := 0
	if pass {
		value = 1
	}
	return s.Exec(ctx, "UPDATE "+FenceTable+" SET pass = ?", value)
}

func (sqliteExclusion) Lock(ctx context.Context, s *Session, _ Locking, most time.Duration) error {
	if err := s.Exec(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", most.Milliseconds()+1)); err != nil {
		return err
	}
	if err := s.Exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	s.Locked = true
	return nil
}

func (sqliteExclusion) Unlock(ctx context.Context, s *Session, keep bool) error {
	s.Locked = false
	if keep {
		return s.Exec(ctx, "COMMIT")
	}
	return s.Exec(ctx, "ROLLBACK")
}

// Undoes is true: the lock is a transaction.
func (sqliteExclusion) Undoes() bool { return true }

// Settle does nothing: a transaction ends with its process.
func (sqliteExclusion) Settle(context.Context, *Session, []string) error { return nil }

func (m sqliteExclusion) Persist(ctx context.Context, s *Session) error {
	if err := m.Unlock(ctx, s, true); err != nil {
		return err
	}
	if err := s.Exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	s.Locked = true
	return nil
}

func (sqliteExclusion) Unprepared(context.Context, *Session, time.Duration, func(error)) error {
	return nil
}

func (sqliteExclusion) Watch(_ context.Context, _ *Session, _ <-chan struct{}, _ func() time.Duration, f func() error) error {
	return f()
}

func (sqliteCatalog) BytesType() string { return "BLOB" }

func (sqliteCatalog) Exists(ctx context.Context, s *Session, name string) (bool, error) {
	n, err := s.Number(ctx, "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE", name)
	return n > 0, err
}

// Identity is the definition. A DELETE of all rows runs the triggers in SQLite, so that no
// number is needed.
func (sqliteRecognition) Identity(ctx context.Context, s *Session, name string) (string, error) {
	text, err := s.List(ctx, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE", name)
	if err != nil || len(text) == 0 {
		return "", err
	}
	_, body, _ := strings.Cut(text[0], "(")
	return Digest(body), nil
}

// Numbers are the definitions as well.
func (m sqliteRecognition) Numbers(ctx context.Context, s *Session, names []string) (map[string]string, error) {
	all := map[string]string{}
	for _, name := range names {
		identity, err := m.Identity(ctx, s, name)
		if err != nil {
			return nil, err
		}
		all[name] = identity
	}
	return all, nil
}

// server is a constant: a file has no server, and its path may be spelled in many ways.
func (sqliteRecognition) server(context.Context, *Session) (string, error) { return "file", nil }

// Blockers returns views and triggers that name the tables: a rename changes their text, so
// that they would silently use the retired table.
func (sqliteCatalog) Blockers(ctx context.Context, s *Session, tables []string) ([]string, error) {
	var found []string
	for _, t := range tables {
		names, err := s.List(ctx, "SELECT type || ' ' || name FROM sqlite_schema WHERE (type = 'view' OR type = 'trigger' AND name NOT LIKE 'shardid\\_%' ESCAPE '\\') AND sql LIKE ? ESCAPE '\\'",
			"%"+strings.ReplaceAll(t, "_", "\\_")+"%")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found = append(found, name+" names table "+t+", and would use the retired table after the switch; drop it before the switch")
		}
	}
	return found, nil
}
