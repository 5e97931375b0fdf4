// SPDX-License-Identifier: Apache-2.0

package sqlx_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sqlxhook"
)

type sqlxOrder struct {
	ID     uint64    `db:"id" keygen:"order"`
	UserID int64     `db:"user_id"`
	Key    string    `db:"key"` // a reserved word
	At     time.Time `db:"at"`
}

const sqlxOrders = "CREATE TABLE %s (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, `key` VARCHAR(40) NOT NULL, at DATETIME NOT NULL)"

func sqlxSet() keygen.Set {
	return keygen.Set{Named: map[string]keygen.Generator[int64]{"order": keygen.Counting(1, 1)}}
}

func sqlxRows(n int) []sqlxOrder {
	rows := make([]sqlxOrder, n)
	for i := range rows {
		rows[i] = sqlxOrder{UserID: int64(i), Key: fmt.Sprint("k", i), At: time.Unix(int64(i), 0)}
	}
	return rows
}

func sqlxOrdersIn(t *testing.T, q sqlx.Queryer, table string) map[uint64]string {
	t.Helper()
	var rows []struct {
		ID  uint64
		Key string
	}
	if err := sqlx.Select(q, &rows, "SELECT id, `key` FROM "+table); err != nil {
		t.Fatal(err)
	}
	out := map[uint64]string{}
	for _, row := range rows {
		out[row.ID] = row.Key
	}
	return out
}

func TestSqlxInsertsFillKeysOnMariaDB(t *testing.T) {
	db := sqlx.NewDb(server.RunMariaDB(t).Open(t, "shop"), "mysql")
	db.MustExec(fmt.Sprintf(sqlxOrders, "orders"))
	h, err := sqlxhook.New(sqlxhook.Config{Generators: sqlxSet(), DriverName: "mysql"})
	if err != nil {
		t.Fatal(err)
	}

	rows := sqlxRows(20000) // 80,000 parameters: two statements
	res, err := h.Insert(t.Context(), db, "orders", &rows)
	if err != nil || res.RowsAffected != 20000 {
		t.Fatalf("%d rows, %v", res.RowsAffected, err)
	}
	stored := sqlxOrdersIn(t, db, "orders")
	for i, row := range rows {
		if row.ID != uint64(i+1) || res.IDs[i] != int64(i+1) || stored[row.ID] != row.Key {
			t.Fatalf("row %d: id %d, result %d, stored %q", i, row.ID, res.IDs[i], stored[row.ID])
		}
	}

	upsert := "INSERT INTO orders (id, user_id, `key`, at) VALUES (:id, :user_id, 'a)b :x', '2024-01-02 12:30:00')" +
		" ON DUPLICATE KEY UPDATE `key` = :key, user_id = VALUES(user_id)"
	again := []sqlxOrder{{ID: 1, UserID: 77, Key: "new"}, {UserID: 78, Key: "new"}}
	if res, err = h.NamedExec(t.Context(), db, upsert, again); err != nil || !slices.Equal(res.IDs, []int64{1, 20001}) {
		t.Fatalf("%+v, %v", res, err)
	}
	stored = sqlxOrdersIn(t, db, "orders")
	if stored[1] != "new" || stored[20001] != "a)b :x" {
		t.Errorf("%q and %q", stored[1], stored[20001])
	}
}

func TestSqlxSplitBatchIsAllOrNothingOnMariaDB(t *testing.T) {
	db := sqlx.NewDb(server.RunMariaDB(t).Open(t, "shop"), "mysql")
	db.MustExec(fmt.Sprintf(sqlxOrders, "orders"))
	h, err := sqlxhook.New(sqlxhook.Config{Generators: sqlxSet(), DriverName: "mysql", MaxParams: 8})
	if err != nil {
		t.Fatal(err)
	}
	db.MustExec("INSERT INTO orders VALUES (4, 0, 'mine', '2024-01-02')")
	if _, err := h.Insert(t.Context(), db, "orders", sqlxRows(5)); err == nil || !strings.Contains(err.Error(), "Duplicate entry") {
		t.Error(err)
	}
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Insert(t.Context(), conn, "orders", sqlxRows(5)); err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	stored := sqlxOrdersIn(t, db, "orders")
	if len(stored) != 6 || stored[4] != "mine" || stored[6] != "k0" {
		t.Errorf("%v", stored)
	}
}
