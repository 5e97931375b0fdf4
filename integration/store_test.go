package integration_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema"
)

// A database opens a new pool of connections to one and the same database.
type database func(t *testing.T) *sql.DB

func mariaDB(m *server.MariaDB) database {
	return func(t *testing.T) *sql.DB { return m.Open(t, "app") }
}

func postgres(p *server.Postgres) database {
	return func(t *testing.T) *sql.DB { return p.Open(t, "app") }
}

// sqlite is a new file. Its drivers' usual setting, to wait for locks by
// themselves, must not keep us from obeying contexts.
func sqlite(t *testing.T) database {
	t.Helper()
	return sqliteWaiting(t, 10*time.Second)
}

// sqliteWaiting is a new file whose driver waits for locks for so long.
func sqliteWaiting(t *testing.T, busy time.Duration) database {
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

// onEachDatabase runs a test on SQLite, MariaDB and PostgreSQL.
func onEachDatabase(t *testing.T, test func(t *testing.T, open database)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) { test(t, sqlite(t)) })
	onEachServer(t, test)
}

// onEachServer runs a test on MariaDB and PostgreSQL.
func onEachServer(t *testing.T, test func(t *testing.T, open database)) {
	t.Helper()
	t.Run("MariaDB", func(t *testing.T) { test(t, mariaDB(server.ShareMariaDB(t))) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, postgres(server.SharePostgres(t))) })
}

// store opens a pool and a store on it, in a database that has shardid's tables
// and the tag orders.
func (open database) store(t *testing.T) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	db := open(t)
	return db, prepared(t, db)
}

func prepared(t *testing.T, db *sql.DB) *sqlstore.Store {
	t.Helper()
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Seed(t.Context(), db, "orders", 1, 1000); err != nil {
		t.Fatal(err)
	}
	return storeOn(t, db)
}

func storeOn(t *testing.T, db *sql.DB) *sqlstore.Store {
	t.Helper()
	store, err := sqlstore.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func openSegment(t *testing.T, store *sqlstore.Store, step int64) *segment.Generator {
	t.Helper()
	g, err := segment.New(t.Context(), segment.Config{Source: store.Tag("orders"), Step: step})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// number reads the one number of a query.
func number(ctx context.Context, db *sql.DB, query string, args ...any) (n int64, err error) {
	if err = db.QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
		err = fmt.Errorf("%s: %w", query, err)
	}
	return n, err
}

func mustNumber(t *testing.T, db *sql.DB, query string, args ...any) int64 {
	t.Helper()
	n, err := number(t.Context(), db, query, args...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
