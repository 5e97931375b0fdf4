// SPDX-License-Identifier: Apache-2.0

package sqlx_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sqlxhook"
)

// Rows of sqlx are numbered, divided over two databases of PostgreSQL, found there, and
// changed by an upsert.
func TestSqlxShardsOverTwoDatabasesOfPostgreSQL(t *testing.T) {
	p := server.SharePostgres(t)
	dbs := sharding.DBs{"east": p.Open(t, "sqlx_east"), "west": p.Open(t, "sqlx_west")}
	m, err := sharding.Spread([]string{"east", "west"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	create := strings.NewReplacer("BIGINT UNSIGNED", "BIGINT", "`", `"`, "DATETIME", "TIMESTAMP").Replace(sqlxOrders)
	for _, at := range m.Targets() {
		database.Exec(t, dbs[at.DB], fmt.Sprintf(create, at.Table))
	}
	router, err := sharding.New(dbs, sharding.Transactions(sharding.BestEffort), sharding.Table{Name: "orders", Key: "id", Rule: sharding.Low(10), Map: m, OnMissing: sharding.FanOutReads})
	if err != nil {
		t.Fatal(err)
	}
	hook, err := sqlxhook.New(sqlxhook.Config{Generators: sqlxSet(), Router: router})
	if err != nil {
		t.Fatal(err)
	}
	db := sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["east"]}), "pgx")
	t.Cleanup(func() { _ = db.Close() })

	one := sqlxRows(1)
	if _, err := hook.Insert(t.Context(), db, "orders", &one[0]); err != nil {
		t.Fatal(err)
	}
	rows := sqlxRows(1000)
	res, err := hook.Insert(t.Context(), db, "orders", rows)
	if err != nil || res.RowsAffected != 1000 || res.IDs[999] != int64(rows[999].ID) {
		t.Fatalf("%d rows, %v", res.RowsAffected, err)
	}
	var key string
	if err := db.GetContext(t.Context(), &key, "SELECT key FROM orders WHERE id = $1", rows[7].ID); err != nil || key != rows[7].Key {
		t.Errorf("%q, %v", key, err)
	}
	for i := range rows {
		rows[i].Key = "again"
	}
	upsert := "INSERT INTO orders (id, user_id, key, at) VALUES (:id, :user_id, :key, :at) ON CONFLICT (id) DO UPDATE SET key = excluded.key"
	if _, err := hook.NamedExec(t.Context(), db, upsert, rows); err != nil {
		t.Fatal(err)
	}
	var again []int64
	query, args, err := sqlx.In("SELECT id FROM orders WHERE key = ? AND id IN (?) ORDER BY id", "again", res.IDs)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.SelectContext(t.Context(), &again, db.Rebind(query), args...); err != nil || !slices.Equal(again, res.IDs) {
		t.Errorf("%d rows were updated, %v", len(again), err)
	}
	many := sqlxRows(20_000) // 80,000 parameters: more than one statement may have
	if res, err := hook.Insert(t.Context(), db, "orders", many); err != nil || res.RowsAffected != 20_000 {
		t.Errorf("%d rows, %v", res.RowsAffected, err)
	}
	var all int
	if err := db.GetContext(t.Context(), &all, "SELECT COUNT(*) FROM orders"); err != nil || all != 21_001 {
		t.Errorf("%d rows, %v", all, err)
	}
}
