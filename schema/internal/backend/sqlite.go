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

// sqLite is SQLite, where a file has one writer at a time.
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

const sqlitePatience = 10_000 // ms

// pin: foreign keys are off so that rewriting a parent in a retired table does
// not delete its children.
func (sqliteConnections) pin(ctx context.Context, c *sql.Conn) error {
	settings := []struct {
		name  string
		value int
	}{{"busy_timeout", sqlitePatience}, {"foreign_keys", 0}, {"query_only", 0}, {"read_uncommitted", 0}, {"legacy_alter_table", 0}, {"ignore_check_constraints", 0}, {"writable_schema", 0}}
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

// Value has SQLite write the literal: it is exact for every type a value may
// have, whatever the column's type, and for text with a zero byte in it, where
// quote() ends.
func (m sqliteExpression) Value(qualifier string, c Column) string {
	name := qualifier + m.Quote(c.Name)
	return "CASE typeof(" + name + ") WHEN 'text' THEN 'CAST(x''' || hex(" + name + ") || ''' AS TEXT)' ELSE quote(" + name + ") END"
}

// Refused: literals are exact.
func (sqliteExpression) Refused(string, []Column) string { return "0" }

// The size of one INSERT: beyond it nothing gets faster.
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

func (sqliteWriting) MakeRoom(context.Context, *Session) error { return nil }

func (sqliteWriting) Batch(rows []Row) int { return min(statementRows, fitting(rows, statementBytes)) }

func (m sqliteWriting) Deletion(table, key string, keys []int64, condition string) string {
	text := "DELETE FROM " + m.Quote(table) + " WHERE " + m.Quote(key) + " IN (" + IDList(keys) + ")"
	if condition != "" {
		text += " AND " + condition
	}
	return text
}

// Insert has the values in its text, as the database has written them down.
func (m sqliteWriting) Insert(ctx context.Context, s *Session, columns []Column, name string, rows []Row) error {
	return s.Exec(ctx, insertText(insertHead(m, columns, name), rows))
}

// Lead: there is no lock that ends with its process, so the last one started
// leads, and the fence ends the others.
func (sqliteExclusion) Lead(context.Context, *Session, string) (bool, error) { return true, nil }

func (m sqliteCapture) dropTrigger(name string) string {
	return "DROP TRIGGER IF EXISTS " + m.Quote(name)
}

// IgnoreKeys: the pinned settings ignore them.
func (sqliteCapture) IgnoreKeys(context.Context, *Session, bool) error { return nil }

// PassBarrier belongs into the transaction that writes: nobody else sees it.
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

// Undoes: the lock is a transaction.
func (sqliteExclusion) Undoes() bool { return true }

// Settle: a transaction ends with its process.
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

func (sqliteExclusion) Abandoned(context.Context, *Session) error { return nil }

func (sqliteExclusion) Watch(_ context.Context, _ *Session, _ <-chan struct{}, _ func() time.Duration, f func() error) error {
	return f()
}

func (sqliteCatalog) BytesType() string { return "BLOB" }

func (sqliteCatalog) Exists(ctx context.Context, s *Session, name string) (bool, error) {
	n, err := s.Number(ctx, "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE", name)
	return n > 0, err
}

// Identity is the definition: a DELETE of all rows passes the triggers here.
func (sqliteRecognition) Identity(ctx context.Context, s *Session, name string) (string, error) {
	text, err := s.List(ctx, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE", name)
	if err != nil || len(text) == 0 {
		return "", err
	}
	_, body, _ := strings.Cut(text[0], "(")
	return Digest(body), nil
}

// Numbers are the definitions, too.
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

// server: a file has none, and its path may be spelled in many ways.
func (sqliteRecognition) server(context.Context, *Session) (string, error) { return "file", nil }

// Blockers: a rename is written into views and triggers elsewhere, which would
// go on to read the retired table without a word.
func (sqliteCatalog) Blockers(ctx context.Context, s *Session, tables []string) ([]string, error) {
	var found []string
	for _, t := range tables {
		names, err := s.List(ctx, "SELECT type || ' ' || name FROM sqlite_schema WHERE (type = 'view' OR type = 'trigger' AND name NOT LIKE 'shardid\\_%' ESCAPE '\\') AND sql LIKE ? ESCAPE '\\'",
			"%"+strings.ReplaceAll(t, "_", "\\_")+"%")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found = append(found, name+" names table "+t+", and would go on with the retired one; drop it before the switch")
		}
	}
	return found, nil
}
