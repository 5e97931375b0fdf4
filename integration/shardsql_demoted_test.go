// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// ofApp has the data source names of a user who may not write on a read-only server.
type ofApp struct{ database.DSNOpener }

func (a ofApp) DSN(name string) string {
	return strings.Replace(a.DSNOpener.DSN(name), "root@", "app@", 1) + "?rejectReadOnly=true"
}

// The former primary is alive and read-only, and the pool has many connections to it. The driver's
// parameter is that of the page on operating.
func TestWritesLeaveAFormerPrimary(t *testing.T) {
	former, present := server.RunMariaDB(t), server.RunMariaDB(t)
	for _, s := range []*server.MariaDB{former, present} {
		db := s.Open(t, "app")
		for _, statement := range []string{
			"CREATE TABLE orders_0 (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)", "CREATE TABLE orders_1 (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)", "CREATE TABLE notes (id BIGINT PRIMARY KEY)",
			"CREATE USER app", "GRANT ALL ON app.* TO app",
		} {
			database.Exec(t, db, statement)
		}
	}
	address := database.NewAddress(t, ofApp{former}, "app")
	pool := address.Open(t)
	pool.SetMaxIdleConns(10)
	m, err := sharding.Spread([]string{"a"}, 2, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"a": pool}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: pool})
	t.Cleanup(func() { _ = routed.Close() })
	prepared, err := routed.PrepareContext(t.Context(), "INSERT INTO orders (id, user_id) VALUES (?, ?)")
	if err != nil {
		t.Fatal(err)
	}
	onRoot := former.Open(t, "other")
	for n, write := range map[int]func(id int) (sql.Result, error){
		1: func(id int) (sql.Result, error) {
			return routed.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO orders (id, user_id) VALUES (%d, 1)", id))
		},
		2: func(id int) (sql.Result, error) {
			return routed.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO orders (id, user_id) VALUES (%d, 1), (%[1]d, 2)", id))
		},
		3: func(id int) (sql.Result, error) { return prepared.ExecContext(t.Context(), id, 1) },
		4: func(id int) (sql.Result, error) {
			return routed.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO notes VALUES (%d)", id))
		},
	} {
		database.Exec(t, onRoot, "SET GLOBAL read_only = OFF")
		address.Move(ofApp{former}, "app")
		hold(t, pool, 8)
		database.Exec(t, onRoot, "SET GLOBAL read_only = ON")
		address.Move(ofApp{present}, "app")
		for i := range 3 {
			if _, err := write(10*n + i); err != nil {
				t.Errorf("write %d of kind %d: %v", i, n, err)
			}
		}
	}
}

// hold makes a pool have idle connections.
func hold(t *testing.T, pool *sql.DB, n int) {
	t.Helper()
	var all []*sql.Conn
	for range n {
		c, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	for _, c := range all {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
