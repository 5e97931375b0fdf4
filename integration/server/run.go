package server

import (
	"database/sql"
	"testing"

	"github.com/shardid/shardid/internal/dialect"
)

// RunMariaDB is [StartMariaDB] for a test or benchmark: a server that does not
// start fails it, and the server is stopped when it ends. A test that fails is
// shown the end of the server's error log.
func RunMariaDB(tb testing.TB, flags ...string) *MariaDB {
	tb.Helper()
	m, err := StartMariaDB(tb.Context(), flags...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the error log of the server on port %d ends with:\n%s", m.port, m.logTail())
		}
		if err := m.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return m
}

// Open returns a connection pool of the named database, which is created when
// it does not exist. The pool is closed when the test ends.
func (m *MariaDB) Open(tb testing.TB, database string) *sql.DB {
	tb.Helper()
	m.createDatabase(tb, database)
	db, err := m.open(database)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

func (m *MariaDB) createDatabase(tb testing.TB, name string) {
	tb.Helper()
	db, err := m.open("")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(tb.Context(), "CREATE DATABASE IF NOT EXISTS "+dialect.MySQL{}.Quote(name)); err != nil {
		tb.Fatalf("create database %s: %v", name, err)
	}
}
