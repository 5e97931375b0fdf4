// SPDX-License-Identifier: Apache-2.0

package database

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/server"
)

// Opener opens a new pool of connections to one and the same database.
type Opener func(t *testing.T) *sql.DB

// MariaDB opens the database app of a new MariaDB server.
func MariaDB(m *server.MariaDB) Opener {
	return func(t *testing.T) *sql.DB { return m.Open(t, "app") }
}

// MySQL opens the database app of a new MySQL server.
func MySQL(m *server.MySQL) Opener {
	return func(t *testing.T) *sql.DB { return m.Open(t, "app") }
}

// Postgres opens the database app of a new PostgreSQL server.
func Postgres(p *server.Postgres) Opener {
	return func(t *testing.T) *sql.DB { return p.Open(t, "app") }
}

// SQLite opens a new file whose driver waits for locks for up to 10 s, which is a usual setting.
// Calls must obey contexts nevertheless.
func SQLite(t *testing.T) Opener {
	t.Helper()
	return SQLiteWaiting(t, 10*time.Second)
}

// SQLiteWaiting opens a new file whose driver waits for locks for the given time.
func SQLiteWaiting(t *testing.T, busy time.Duration) Opener {
	t.Helper()
	file := "file:" + filepath.Join(t.TempDir(), "app.db") + fmt.Sprintf("?_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)", busy.Milliseconds())
	return func(t *testing.T) *sql.DB {
		db, err := sql.Open("sqlite", file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
}

// OnEach runs a test on SQLite, MariaDB and PostgreSQL.
func OnEach(t *testing.T, test func(t *testing.T, open Opener)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) { test(t, SQLite(t)) })
	OnEachServer(t, test)
}

// OnEachServer runs a test on MariaDB and PostgreSQL.
func OnEachServer(t *testing.T, test func(t *testing.T, open Opener)) {
	t.Helper()
	t.Run("MariaDB", func(t *testing.T) { test(t, MariaDB(server.ShareMariaDB(t))) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, Postgres(server.SharePostgres(t))) })
}

// OnEachMySQL runs a test on private servers of MariaDB and of MySQL.
func OnEachMySQL(t *testing.T, test func(t *testing.T, s Server)) {
	t.Helper()
	t.Run("MariaDB", func(t *testing.T) { test(t, server.RunMariaDB(t)) })
	t.Run("MySQL", func(t *testing.T) { test(t, server.RunMySQL(t)) })
}

// MariaDBWith opens a pool whose sessions begin with variables set.
func MariaDBWith(t *testing.T, m *server.MariaDB, variables map[string]string) *sql.DB {
	t.Helper()
	cfg, err := mysql.ParseDSN(m.DSN("app"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Params = variables
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// PostgresAs creates a user with the grants and opens the database as this user.
func PostgresAs(t *testing.T, p *server.Postgres, database, user string, grants ...string) *sql.DB {
	t.Helper()
	admin := p.Open(t, database)
	Exec(t, admin, "CREATE USER "+user)
	for _, grant := range grants {
		Exec(t, admin, grant)
	}
	db, err := sql.Open("pgx", strings.Replace(p.DSN(database), "postgres@", user+"@", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
