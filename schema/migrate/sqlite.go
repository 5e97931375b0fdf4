package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// sqliteSeam is SQLite, where a file has one writer at a time.
type sqliteSeam struct{ dialect.SQLite }

var _ seam = sqliteSeam{}

func (sqliteSeam) begin() string    { return "BEGIN IMMEDIATE" }
func (sqliteSeam) lockRead() string { return "" }

func (sqliteSeam) duplicate(err error) bool {
	return err != nil && strings.Contains(err.Error(), "UNIQUE constraint failed")
}

func (sqliteSeam) transient(error) bool { return false }

func (m sqliteSeam) rename(from, to string) string {
	return "ALTER TABLE " + m.Quote(from) + " RENAME TO " + m.Quote(to)
}

func (m sqliteSeam) renameAll(all []renaming) []string {
	list := make([]string, len(all))
	for i, r := range all {
		list[i] = m.rename(r.from, r.to)
	}
	return list
}

const sqlitePatience = 10_000 // ms

// pin: foreign keys are off so that rewriting a parent in a retired table does
// not delete its children.
func (sqliteSeam) pin(ctx context.Context, c *sql.Conn) error {
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

// value has SQLite write the literal: it is exact for every type a value may
// have, whatever the column's type, and for text with a zero byte in it, where
// quote() ends.
func (m sqliteSeam) value(qualifier string, c column) string {
	name := qualifier + m.Quote(c.name)
	return "CASE typeof(" + name + ") WHEN 'text' THEN 'CAST(x''' || hex(" + name + ") || ''' AS TEXT)' ELSE quote(" + name + ") END"
}

// refused: literals are exact.
func (sqliteSeam) refused(string, []column) string { return "0" }

// The size of one INSERT: beyond it nothing gets faster.
const (
	statementRows  = 1000
	statementBytes = 1 << 20
)

func (sqliteSeam) keyText(expression string, _ column) string {
	return "CAST(" + expression + " AS CHAR)"
}

func (sqliteSeam) bytesOf(expression string, _ column) string {
	return "(" + expression + " COLLATE BINARY)"
}

func (sqliteSeam) makeRoom(context.Context, *session) error { return nil }

func (sqliteSeam) batch(rows []record) int { return min(statementRows, fitting(rows, statementBytes)) }

func (m sqliteSeam) deletion(table, key string, keys []int64, condition string) string {
	text := "DELETE FROM " + m.Quote(table) + " WHERE " + m.Quote(key) + " IN (" + idList(keys) + ")"
	if condition != "" {
		text += " AND " + condition
	}
	return text
}

// insert has the values in its text, as the database has written them down.
func (sqliteSeam) insert(ctx context.Context, s *session, t *table, name string, rows []record) error {
	return s.exec(ctx, insertText(s.insertHead(t, name), rows))
}

// lead: there is no lock that ends with its process, so the last one started
// leads, and the fence ends the others.
func (sqliteSeam) lead(context.Context, *session, string) (bool, error) { return true, nil }

// passBarrier belongs into the transaction that writes: nobody else sees it.
func (sqliteSeam) passBarrier(ctx context.Context, s *session, pass bool) error {
	value := 0
	if pass {
		value = 1
	}
	return s.exec(ctx, "UPDATE "+fenceTable+" SET pass = ?", value)
}

func (sqliteSeam) lock(ctx context.Context, s *session, _ []string, most time.Duration) error {
	if err := s.exec(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", most.Milliseconds()+1)); err != nil {
		return err
	}
	if err := s.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	s.locked = true
	return nil
}

func (sqliteSeam) unlock(ctx context.Context, s *session, keep bool) error {
	s.locked = false
	if keep {
		return s.exec(ctx, "COMMIT")
	}
	return s.exec(ctx, "ROLLBACK")
}

func (m sqliteSeam) persist(ctx context.Context, s *session) error {
	if err := m.unlock(ctx, s, true); err != nil {
		return err
	}
	if err := s.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	s.locked = true
	return nil
}

func (sqliteSeam) abandoned(context.Context, *session) error { return nil }

func (sqliteSeam) watch(_ context.Context, _ *session, _ *timing, f func() error) error {
	return f()
}

func (sqliteSeam) exists(ctx context.Context, s *session, name string) (bool, error) {
	n, err := s.number(ctx, "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE", name)
	return n > 0, err
}

// identity is the definition: a DELETE of all rows passes the triggers here.
func (sqliteSeam) identity(ctx context.Context, s *session, name string) (string, error) {
	text, err := s.list(ctx, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE", name)
	if err != nil || len(text) == 0 {
		return "", err
	}
	_, body, _ := strings.Cut(text[0], "(")
	return digest(body), nil
}

// numbers are the definitions, too.
func (m sqliteSeam) numbers(ctx context.Context, s *session, names []string) (map[string]string, error) {
	all := map[string]string{}
	for _, name := range names {
		identity, err := m.identity(ctx, s, name)
		if err != nil {
			return nil, err
		}
		all[name] = identity
	}
	return all, nil
}

// server: a file has none, and its path may be spelled in many ways.
func (sqliteSeam) server(context.Context, *session) (string, error) { return "file", nil }

// blockers: a rename is written into views and triggers elsewhere, which would
// go on to read the retired table without a word.
func (sqliteSeam) blockers(ctx context.Context, s *session, tables []string) ([]string, error) {
	var found []string
	for _, t := range tables {
		names, err := s.list(ctx, "SELECT type || ' ' || name FROM sqlite_schema WHERE (type = 'view' OR type = 'trigger' AND name NOT LIKE 'shardid\\_%' ESCAPE '\\') AND sql LIKE ? ESCAPE '\\'",
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
