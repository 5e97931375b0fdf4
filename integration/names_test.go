// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// Physical tables have the logical name: each database has one table orders.

// oneName is a source with orders, and two databases for shards that are called so, too.
type oneName struct {
	source, routed *sql.DB
	dbs            sharding.DBs // those of shards, and the source
	table          sharding.Table
}

func newOneName(t *testing.T, open namedDatabase) *oneName {
	t.Helper()
	o := &oneName{source: open(t, "one_name"), dbs: sharding.DBs{"a": open(t, "one_name_a"), "b": open(t, "one_name_b")}}
	o.dbs["source"] = o.source
	database.Exec(t, o.source, "CREATE TABLE orders (id INTEGER NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(20) NOT NULL)")
	for id := range 40 {
		database.Exec(t, o.source, fmt.Sprintf("INSERT INTO orders VALUES (%d, %d, 'old')", id+1, id%7))
	}
	o.table = sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: layouts(t)["named"]}
	router, err := sharding.New(o.dbs, o.table, sharding.Migration{Source: "source", Tables: map[string]string{"orders": ""}})
	if err != nil {
		t.Fatal(err)
	}
	o.routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: o.source})
	t.Cleanup(func() { _ = o.routed.Close() })
	return o
}

func (o *oneName) job(t *testing.T, table sharding.Table, shards sharding.DBs) *migrate.Job {
	t.Helper()
	j, err := migrate.New(migrate.Config{Source: o.source, Shards: shards, Tables: []migrate.Table{{Table: table}}})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func onEachNamed(t *testing.T, test func(t *testing.T, open namedDatabase)) {
	t.Helper()
	dir := t.TempDir()
	all := writing(t)
	all["SQLite"] = func(tb testing.TB, name string) *sql.DB {
		tb.Helper()
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, name)+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)")
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = db.Close() })
		return db
	}
	for name, open := range all {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}

func TestATableIsMigratedToShardsOfItsName(t *testing.T) {
	onEachNamed(t, func(t *testing.T, open namedDatabase) {
		o := newOneName(t, open)
		j := o.job(t, o.table, o.dbs)
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, o.routed, "INSERT INTO orders VALUES (1001, 1, 'on the source')")
		for _, turn := range []func() error{
			func() error { _, err := j.Cutover(t.Context(), 10*time.Minute); return err },
			func() error { _, err := j.Rollback(t.Context(), 10*time.Minute); return err },
			func() error {
				if err := j.Run(t.Context()); err != nil {
					return err
				}
				_, err := j.Cutover(t.Context(), 10*time.Minute)
				return err
			},
		} {
			if err := turn(); err != nil {
				t.Fatal(err)
			}
			database.Exec(t, o.routed, "UPDATE orders SET note = 'x' WHERE user_id = 1")
			database.Exec(t, o.routed, "DELETE FROM orders WHERE user_id = 2 AND id = (SELECT id FROM (SELECT MAX(id) AS id FROM orders WHERE user_id = 2) AS last)")
		}
		if err := j.Finalize(t.Context()); err != nil {
			t.Fatal(err)
		}
		var all, changed int
		if err := o.routed.QueryRow("SELECT COUNT(*), SUM(note = 'x') FROM orders").Scan(&all, &changed); err != nil || all != 38 || changed != 7 {
			t.Errorf("%d rows, %d of them changed, %v", all, changed, err)
		}
		for db, want := range map[string]int{"a": 20, "b": 18} {
			var n int
			if err := o.dbs[db].QueryRow("SELECT COUNT(*) FROM orders").Scan(&n); err != nil || n != want {
				t.Errorf("%s has %d rows, want %d, %v", db, n, want, err)
			}
		}
	})
}

// The database may have several names and pools.
func TestAShardIsNotTheTableOfTheSourceItself(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			o := newOneName(t, open)
			j := o.job(t, o.table, sharding.DBs{"a": open(t, "one_name_a"), "b": open(t, "one_name")})
			if err := j.Run(t.Context()); !errors.Is(err, migrate.ErrConfig) || !strings.Contains(err.Error(), "shard orders on b is the table of the source itself") {
				t.Errorf("a run ended with %v", err)
			}
			found, err := j.Inspect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			same := 0
			for _, f := range found {
				if f.Code == migrate.SameTable && f.Severity == migrate.Block && f.Database == "b" && f.Table == "orders" {
					same++
				}
				if f.Code == migrate.NotEmpty {
					t.Errorf("%+v", f)
				}
			}
			if same != 1 {
				t.Errorf("found %d times: %+v", same, found)
			}
		})
	}
}
