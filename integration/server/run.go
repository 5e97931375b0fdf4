// SPDX-License-Identifier: Apache-2.0

package server

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/dialect"
)

// RunMariaDB is [StartMariaDB] for a test or benchmark: a server that does not
// start fails it, and the server is stopped when it ends. A test that fails is
// shown the end of the server's error log.
func RunMariaDB(tb testing.TB, flags ...string) *MariaDB {
	tb.Helper()
	return &MariaDB{mariadbFor(flags).run(tb, flags)}
}

// RunPostgres is [StartPostgres] for a test or benchmark: a server that does
// not start fails it, and the server is stopped when it ends. A test that fails
// is shown the end of the server's error log.
func RunPostgres(tb testing.TB, settings ...string) *Postgres {
	tb.Helper()
	return &Postgres{postgres.run(tb, settings)}
}

func (k kind) run(tb testing.TB, settings []string) *instance {
	tb.Helper()
	i, err := k.start(tb.Context(), settings)
	if err != nil {
		tb.Fatal(err)
	}
	i.stopAfter(tb)
	return i
}

func (i *instance) stopAfter(tb testing.TB) {
	tb.Helper()
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the error log of the server on port %d ends with:\n%s", i.port, i.logTail())
		}
		if err := i.Stop(); err != nil {
			tb.Error(err)
		}
	})
}

// Open returns a connection pool of the named database, which is created when
// it does not exist. The pool is closed when the test ends.
func (m *MariaDB) Open(tb testing.TB, database string) *sql.DB {
	tb.Helper()
	m.admin(tb, "CREATE DATABASE IF NOT EXISTS "+dialect.MySQL{}.Quote(m.named(database)))
	m.drop(tb, dialect.MySQL{}, database, "")
	return m.pool(tb, database)
}

// Open returns a connection pool of the named database, which is created when
// it does not exist. The pool is closed when the test ends.
func (p *Postgres) Open(tb testing.TB, database string) *sql.DB {
	tb.Helper()
	return p.open(tb, database, "")
}

// OpenICU is [Postgres.Open] of a database with an ICU collation, which does not compare texts by
// their bytes.
func (p *Postgres) OpenICU(tb testing.TB, database, locale string) *sql.DB {
	tb.Helper()
	return p.open(tb, database, " TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE '"+locale+"'")
}

// OpenEncoded is [Postgres.Open] of a database whose texts are stored in an encoding, and compared by their bytes.
func (p *Postgres) OpenEncoded(tb testing.TB, database, encoding string) *sql.DB {
	tb.Helper()
	return p.open(tb, database, " TEMPLATE template0 LOCALE 'C' ENCODING '"+encoding+"'")
}

func (p *Postgres) open(tb testing.TB, database, options string) *sql.DB {
	tb.Helper()
	p.create(tb, database, options)
	p.drop(tb, dialect.Postgres{}, database, " WITH (FORCE)")
	return p.pool(tb, database)
}

// create creates a database unless it exists. There is no IF NOT EXISTS for databases; a DO block cannot create one.
// Both statements use one connection, because a new one takes PostgreSQL a third of the time of both.
func (p *Postgres) create(tb testing.TB, database, options string) {
	tb.Helper()
	db, err := p.instance.open("")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var version int // 150004 for 15.4
	if err := db.QueryRowContext(tb.Context(), "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		tb.Fatal(err)
	}
	if version >= 150000 { // copying files takes half the time of writing each page to the log, which is the default there
		options = " STRATEGY FILE_COPY" + options
	}
	execute(tb, db, "CREATE DATABASE "+dialect.Postgres{}.Quote(p.named(database))+options, "SQLSTATE 42P04", "SQLSTATE 23505")
}

func (i *instance) pool(tb testing.TB, database string) *sql.DB {
	tb.Helper()
	db, err := i.open(database)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// admin runs a statement outside of the databases of tests.
func (i *instance) admin(tb testing.TB, statement string) {
	tb.Helper()
	db, err := i.open("")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	execute(tb, db, statement)
}

// execute executes a statement. It ignores errors that contain one of the texts.
func execute(tb testing.TB, db *sql.DB, statement string, harmless ...string) {
	tb.Helper()
	_, err := db.ExecContext(tb.Context(), statement)
	if err == nil {
		return
	}
	for _, text := range harmless {
		if strings.Contains(err.Error(), text) {
			return
		}
	}
	tb.Fatalf("%s: %v", statement, err)
}
