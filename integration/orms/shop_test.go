// SPDX-License-Identifier: Apache-2.0

package orms

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// tables are what the shop stores. Orders lie by their user and items beside their
// order.
var tables = map[string]string{
	"orders": "(id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(50), amount BIGINT NOT NULL, paid_at DATETIME(6), created_at DATETIME(6) NOT NULL)",
	"items":  "(id BIGINT NOT NULL PRIMARY KEY, order_id BIGINT NOT NULL, sku VARCHAR(20) NOT NULL)",
}

// A shop is the same tables twice: on four shards in two databases, and whole in one.
type shop struct {
	driver        string // "sqlite", "mysql" or "pgx"
	router        *sharding.Router
	dbs           sharding.DBs
	home          *sql.DB
	routed, whole *sql.DB
}

// onEachDatabase runs a test on SQLite, MariaDB and MySQL. It may make several shops.
func onEachDatabase(t *testing.T, test func(t *testing.T, open opening)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		dir := t.TempDir()
		test(t, opening{"sqlite", func(t *testing.T, name string) *sql.DB {
			return connected(t, "sqlite", "file:"+filepath.Join(dir, name)+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)")
		}})
	})
	t.Run("MariaDB", func(t *testing.T) { test(t, onServer(server.ShareMariaDB(t))) })
	t.Run("MySQL", func(t *testing.T) { test(t, onServer(server.ShareMySQL(t))) })
}

// An opening makes databases by their names.
type opening struct {
	driver string
	open   func(t *testing.T, name string) *sql.DB
}

func onServer(s interface {
	Open(tb testing.TB, name string) *sql.DB
	DSN(name string) string
}) opening {
	return opening{"mysql", func(t *testing.T, name string) *sql.DB {
		s.Open(t, name) // makes it
		return connected(t, "mysql", s.DSN(name)+"?parseTime=true")
	}}
}

// onPostgres is for libraries that write $1, or that know PostgreSQL.
func onPostgres(s *server.Postgres) opening {
	return opening{"pgx", func(t *testing.T, name string) *sql.DB {
		t.Helper()
		name = strings.ToLower(name)
		s.Open(t, name) // makes it
		return connected(t, "pgx", s.DSN(name)+"?sslmode=disable")
	}}
}

func connected(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// newShop makes a shop whose ids of orders carry the slot of their user, or do not.
func newShop(t *testing.T, open opening, ids ...sharding.Alt) *shop {
	t.Helper()
	layout := t.Name()[strings.LastIndexByte(t.Name(), '/')+1:] // databases are made once a name
	s := &shop{driver: open.driver, whole: open.open(t, "whole_"+layout)}
	s.dbs = sharding.DBs{"a": open.open(t, "a_"+layout), "b": open.open(t, "b_"+layout)}
	sharded := []sharding.Table{
		{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Also: ids, Group: "shop"},
		{Name: "items", Key: "order_id", Rule: sharding.Low(2), Group: "shop"},
	}
	for i := range sharded {
		name := sharded[i].Name
		var err error
		if sharded[i].Map, err = sharding.Spread([]string{"a", "b"}, 4, name+"_%d"); err != nil {
			t.Fatal(err)
		}
		for _, at := range sharded[i].Map.Targets() {
			open.create(t, s.dbs[at.DB], at.Table, tables[name])
		}
		open.create(t, s.whole, name, tables[name])
	}
	var err error
	if s.router, err = sharding.New(s.dbs, sharding.Tables(sharded...)); err != nil {
		t.Fatal(err)
	}
	s.home = open.open(t, "home_"+layout)
	s.routed = shardsql.OpenDB(shardsql.Config{Router: s.router, Home: s.home})
	t.Cleanup(func() { _ = s.routed.Close() })
	return s
}

// create makes a table. SQLite's driver knows columns of times by the bare word.
func (o opening) create(t *testing.T, db *sql.DB, name, columns string) {
	t.Helper()
	switch o.driver {
	case "sqlite":
		columns = strings.ReplaceAll(columns, "DATETIME(6)", "DATETIME")
	case "pgx":
		columns = strings.ReplaceAll(columns, "DATETIME(6)", "TIMESTAMPTZ")
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE "+name+" "+columns); err != nil {
		t.Fatal(err)
	}
}

// carrying says that an order's id leads to its shard.
var carrying = sharding.Alt{Column: "id", Rule: sharding.Low(2)}

// nextID returns a function that makes the id of an order of a user, as the program
// would with a generator of package snowflake whose layout has a bucket field.
func (s *shop) nextID() func(ctx context.Context, user int64) (int64, error) {
	ids := &counting{}
	return func(ctx context.Context, user int64) (int64, error) {
		return s.router.NextID(ctx, ids, "orders", "id", user)
	}
}

// counting makes ids with a bucket in their two lowest bits, the same ones in each run.
type counting struct{ last int64 }

func (g *counting) NextIn(_ context.Context, bucket int64) (int64, error) {
	g.last++
	return g.last<<2 + bucket, nil
}

func (g *counting) FillIn(ctx context.Context, dst, buckets []int64) (err error) {
	for i := range dst {
		if dst[i], err = g.NextIn(ctx, buckets[i]); err != nil {
			return err
		}
	}
	return nil
}
