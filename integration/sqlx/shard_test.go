// SPDX-License-Identifier: Apache-2.0

package sqlx_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// sqlxShop is two MariaDB servers with two tables of orders each.
type sqlxShop struct {
	*sqlxhook.Hook
	db     *sqlx.DB // routed
	router *sharding.Router
	dbs    sharding.DBs
}

func runSqlxShop(t *testing.T, options ...sharding.Option) sqlxShop {
	t.Helper()
	names := []string{"east", "west"}
	m, err := sharding.Spread(names, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	s := sqlxShop{dbs: sharding.DBs{}}
	for _, name := range names {
		s.dbs[name] = server.RunMariaDB(t).Open(t, name)
		database.Exec(t, s.dbs[name], "CREATE TABLE regions (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL)")
	}
	for i := range 4 {
		database.Exec(t, s.dbs[names[i%2]], fmt.Sprintf(sqlxOrders, fmt.Sprintf("orders_%d", i)))
	}
	s.router, err = sharding.New(s.dbs, append(options, sharding.Broadcast("regions"),
		sharding.Table{Name: "orders", Key: "id", Rule: sharding.Low(10), Map: m})...)
	if err != nil {
		t.Fatal(err)
	}
	s.Hook, err = sqlxhook.New(sqlxhook.Config{Generators: sqlxSet(), Router: s.router})
	if err != nil {
		t.Fatal(err)
	}
	s.db = database.RoutedSqlx(t, s.router, s.dbs["east"])
	return s
}

// stored returns the ids in each of the four tables, each of which must hold
// nothing but its own.
func (s sqlxShop) stored(t *testing.T) (n [4]int) {
	t.Helper()
	for i, target := range s.router.Targets("orders") {
		db := sqlx.NewDb(s.dbs[target.DB], "mysql")
		for id := range sqlxOrdersIn(t, db, target.Table) {
			if id%4 != uint64(i) {
				t.Errorf("%s holds %d", target, id)
			}
			n[i]++
		}
	}
	return n
}

func TestSqlxShardsOverTwoMariaDBServers(t *testing.T) {
	s := runSqlxShop(t)
	rows := sqlxRows(1000)
	for i := range rows {
		if _, err := s.Insert(t.Context(), s.db, "orders", &rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range rows {
		var key string
		if err := s.db.GetContext(t.Context(), &key, "SELECT orders.key FROM orders WHERE id = ?", row.ID); err != nil || key != row.Key {
			t.Fatalf("order %d: %q, %v", row.ID, key, err)
		}
	}
	if got := s.stored(t); got != [4]int{250, 250, 250, 250} {
		t.Error(got)
	}
}

func TestSqlxBatchesAreSplitOverTwoMariaDBServers(t *testing.T) {
	s := runSqlxShop(t, sharding.Transactions(sharding.BestEffort))
	rows := sqlxRows(1000)
	res, err := s.Insert(t.Context(), s.db, "orders", rows)
	if err != nil || res.RowsAffected != 1000 || res.IDs[999] != int64(rows[999].ID) {
		t.Fatalf("%d rows, %v", res.RowsAffected, err)
	}
	upsert := "INSERT INTO orders (id, user_id, `key`, at) VALUES (:id, :user_id, :key, :at) ON DUPLICATE KEY UPDATE `key` = VALUES(`key`)"
	for i := range rows {
		rows[i].Key = "again"
	}
	if _, err := s.NamedExec(t.Context(), s.db, upsert, rows); err != nil {
		t.Fatal(err)
	}
	taken := sqlxRows(4)
	taken[3].ID = rows[0].ID
	if _, err := s.Insert(t.Context(), s.db, "orders", taken); err == nil {
		t.Error("a key that is taken was accepted")
	}
	if got := s.stored(t); got != [4]int{250, 250, 250, 250} {
		t.Error(got)
	}
	var again []int64
	err = s.db.SelectContext(t.Context(), &again, "SELECT id FROM orders WHERE `key` = ? ORDER BY id", "again")
	if err != nil || !slices.Equal(again, res.IDs) {
		t.Errorf("%d rows were updated, %v", len(again), err)
	}
	many := sqlxRows(20000) // 80,000 parameters: two statements
	if res, err := s.Insert(t.Context(), s.db, "orders", many); err != nil || res.RowsAffected != 20000 {
		t.Errorf("%d rows, %v", res.RowsAffected, err)
	}
}

func TestSqlxTransactionsStayOnTheirMariaDBServer(t *testing.T) {
	s := runSqlxShop(t)
	tx, err := s.db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []uint64{4, 6} {
		if _, err := s.Insert(t.Context(), tx, "orders", &sqlxOrder{ID: id, Key: "k"}); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Insert(t.Context(), tx, "orders", &sqlxOrder{ID: 5, Key: "k"}); !errors.Is(err, sharding.ErrCrossDatabase) {
		t.Error(err)
	}
	if _, err := tx.ExecContext(t.Context(), "UPDATE orders JOIN regions ON regions.id = orders.user_id SET orders.`key` = 'x' WHERE orders.id = 4"); err != nil {
		t.Errorf("an UPDATE that reads a broadcast table: %v", err)
	}
	var route *sharding.RouteError
	if _, err := tx.ExecContext(t.Context(), "UPDATE orders JOIN regions ON regions.id = orders.user_id SET regions.name = 'x' WHERE orders.id = 4"); !errors.As(err, &route) {
		t.Errorf("an UPDATE that writes one copy of a broadcast table: %v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	if _, err := s.Insert(t.Context(), s.db, "orders", sqlxRows(2)); !errors.Is(err, sharding.ErrCrossDatabase) {
		t.Error(err)
	}
	if got := s.stored(t); got != [4]int{1, 0, 1, 0} {
		t.Error(got)
	}
}

func TestSqlxWritesABroadcastTableOnBothMariaDBServers(t *testing.T) {
	type region struct {
		ID   int64  `db:"id"`
		Name string `db:"name"`
	}
	s := runSqlxShop(t)
	if _, err := s.Insert(t.Context(), s.db, "regions", []region{{1, "here"}, {2, "there"}}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []sqlxOrder{{ID: 4, UserID: 1, Key: "k"}, {ID: 5, UserID: 2, Key: "k"}} {
		if _, err := s.Insert(t.Context(), s.db, "orders", &row); err != nil {
			t.Fatal(err)
		}
		var name string
		err := s.db.GetContext(t.Context(), &name, "SELECT regions.name FROM orders JOIN regions ON regions.id = orders.user_id WHERE orders.id = ? FOR UPDATE", row.ID)
		if want := map[uint64]string{4: "here", 5: "there"}[row.ID]; err != nil || name != want {
			t.Errorf("%q, %v", name, err)
		}
	}
}
