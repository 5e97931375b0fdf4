// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// A write of all copies of a broadcast table was executed twice in a database that had two pools.
func TestASecondPoolOfOneDatabaseIsRefused(t *testing.T) {
	for name, m := range map[string]interface {
		Open(tb testing.TB, database string) *sql.DB
	}{"MariaDB": server.ShareMariaDB(t), "MySQL": server.ShareMySQL(t), "PostgreSQL": server.SharePostgres(t)} {
		t.Run(name, func(t *testing.T) {
			east, west := m.Open(t, "places_east"), m.Open(t, "places_west")
			database.Exec(t, east, "CREATE TABLE tags (name VARCHAR(9))")
			database.Exec(t, east, "CREATE TABLE notes_0 (id BIGINT PRIMARY KEY)")
			database.Exec(t, west, "CREATE TABLE tags (name VARCHAR(9))")
			database.Exec(t, west, "CREATE TABLE notes_1 (id BIGINT PRIMARY KEY)")
			targets, err := sharding.Spread([]string{"east", "west"}, 2, "notes_%d")
			if err != nil {
				t.Fatal(err)
			}
			router, err := sharding.New(sharding.DBs{"east": east, "west": west}, sharding.Transactions(sharding.BestEffort), sharding.Broadcast("tags"),
				sharding.Tables(sharding.Table{Name: "notes", Key: "id", Rule: sharding.Mod(2), Map: targets}))
			if err != nil {
				t.Fatal(err)
			}
			for of, home := range map[string]*sql.DB{"the same pool": west, "a second pool": m.Open(t, "places_west")} {
				routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
				t.Cleanup(func() { _ = routed.Close() })
				for _, text := range []string{"INSERT INTO tags VALUES ('x')", "SELECT COUNT(*) FROM notes WHERE id = 1"} {
					if _, err := routed.ExecContext(t.Context(), text); errors.Is(err, sharding.ErrSameDatabase) != (home != west) || home == west && err != nil {
						t.Errorf("%s: %s: %v", of, text, err)
					}
				}
			}
			if name != "PostgreSQL" {
				refusedWhenNotBusy(t, router, west, m.Open(t, "places_west"))
			}
			for _, db := range []*sql.DB{east, west} {
				var n int
				if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM tags").Scan(&n); err != nil || n != 1 {
					t.Errorf("%d rows, %v", n, err)
				}
			}
		})
	}
}

// refusedWhenNotBusy asks a home pool whose only connection is in a transaction: the transaction is not refused, and the
// next statement is.
func refusedWhenNotBusy(t *testing.T, router *sharding.Router, west, home *sql.DB) {
	t.Helper()
	database.Exec(t, west, "CREATE TABLE alone (id BIGINT PRIMARY KEY)")
	home.SetMaxOpenConns(1)
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
	t.Cleanup(func() { _ = routed.Close() })
	tx, err := routed.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"INSERT INTO alone (id) VALUES (1)", "INSERT INTO notes (id) VALUES (1)"} {
		if _, err := tx.ExecContext(t.Context(), text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if _, err := routed.ExecContext(t.Context(), "DELETE FROM notes WHERE id = 1"); !errors.Is(err, sharding.ErrSameDatabase) {
		t.Error(err)
	}
}
