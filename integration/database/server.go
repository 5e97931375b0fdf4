// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"database/sql"
	"strings"
	"testing"
)

// DSNOpener is a server of MariaDB, MySQL or PostgreSQL that a test only uses.
type DSNOpener interface {
	Open(tb testing.TB, database string) *sql.DB
	DSN(database string) string
}

// Server is a server of MariaDB, MySQL or PostgreSQL that is the test's own.
type Server interface {
	DSNOpener
	Kill()
	Start(ctx context.Context) error
}

// OpenAs opens a database, which it makes, as a user.
func OpenAs(t *testing.T, s DSNOpener, user, database string) *sql.DB {
	t.Helper()
	s.Open(t, database) // makes it
	db, err := sql.Open("mysql", strings.Replace(s.DSN(database), "root@", user+"@", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
