// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"database/sql"
	"strings"
	"testing"
)

// DSNOpener is a server of MariaDB, MySQL or PostgreSQL that a test may share with others.
type DSNOpener interface {
	Open(tb testing.TB, database string) *sql.DB
	DSN(database string) string
}

// Server is a private server of MariaDB, MySQL or PostgreSQL, which the test may kill.
type Server interface {
	DSNOpener
	Kill()
	Start(ctx context.Context) error
}

// OpenAs creates a database and opens it as a user.
func OpenAs(t *testing.T, s DSNOpener, user, database string) *sql.DB {
	t.Helper()
	s.Open(t, database) // creates it
	db, err := sql.Open("mysql", strings.Replace(s.DSN(database), "root@", user+"@", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
