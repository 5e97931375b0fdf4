// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"
)

// newDB opens an empty SQLite file without a busy timeout, so that package schema handles
// locks, and SQLite does not wait itself.
func newDB(t testing.TB) *sql.DB {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "test.db"))
}

func open(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t testing.TB, db *sql.DB, statements string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatalf("%v\nin %.200s", err, statements)
	}
}

// scan reads the one value of a query.
func scan[T any](t testing.TB, db *sql.DB, query string) T {
	t.Helper()
	var v T
	if err := db.QueryRowContext(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%v\nin %s", err, query)
	}
	return v
}
