// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"fmt"

	sqlmock "github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sqlxhook"
)

// Order is stored with ids of the generator called order.
type Order struct {
	ID     int64 `db:"id" keygen:"order"`
	UserID int64 `db:"user_id"`
}

// In a test the keys count from 1000, so that go-sqlmock can expect them.
func ExampleHook_NamedExec() {
	mockDB, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
	if err != nil {
		fmt.Println(err)
		return
	}
	db := sqlx.NewDb(mockDB, "mysql")
	mock.ExpectExec("INSERT INTO orders (id, user_id) VALUES (?, ?),(?, ?)").
		WithArgs(int64(1000), int64(7), int64(1001), int64(8)).
		WillReturnResult(sqlmock.NewResult(0, 2))

	h, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{
		Named: map[string]keygen.Generator[int64]{"order": keygen.Counting(1000, 1)},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	orders := []Order{{UserID: 7}, {UserID: 8}}
	res, err := h.NamedExec(context.Background(), db, "INSERT INTO orders (id, user_id) VALUES (:id, :user_id)", orders)
	fmt.Println(res.IDs, res.RowsAffected, err)
	fmt.Println(orders)
	fmt.Println(mock.ExpectationsWereMet())
	// Output:
	// [1000 1001] 2 <nil>
	// [{1000 7} {1001 8}]
	// <nil>
}

func ExampleHook_Insert() {
	db := sqlx.MustOpen("sqlite", ":memory:")
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1) // each connection to :memory: is a database of its own
	db.MustExec("CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER)")

	h, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{
		Named: map[string]keygen.Generator[int64]{"order": keygen.Counting(1000, 1)},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	order := Order{UserID: 7}
	if _, err := h.Insert(context.Background(), db, "orders", &order); err != nil {
		fmt.Println(err)
		return
	}
	var stored Order
	err = db.Get(&stored, "SELECT * FROM orders WHERE id = ?", order.ID)
	fmt.Println(stored, err)
	// Output:
	// {1000 7} <nil>
}

// counted returns a hook whose orders count from 1000, and a database.
func counted() (*sqlxhook.Hook, *sqlx.DB, error) {
	db := sqlx.MustOpen("sqlite", ":memory:")
	db.SetMaxOpenConns(1) // each connection to :memory: is a database of its own
	db.MustExec("CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER)")
	h, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{
		Named: map[string]keygen.Generator[int64]{"order": keygen.Counting(1000, 1)},
	}})
	return h, db, err
}

// The database returns what it stored, its defaults included.
func ExampleHook_NamedQuery() {
	h, db, err := counted()
	defer func() { _ = db.Close() }()
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, err := h.NamedQuery(context.Background(), db,
		"INSERT INTO orders (id, user_id) VALUES (:id, :user_id) RETURNING id, user_id", []Order{{UserID: 7}, {UserID: 8}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var stored []Order
	err = sqlx.StructScan(rows, &stored)
	fmt.Println(stored, err)
	// Output:
	// [{1000 7} {1001 8}] <nil>
}

// A batch of any size is all or nothing in a transaction.
func ExampleHook_Insert_transaction() {
	h, db, err := counted()
	defer func() { _ = db.Close() }()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	orders := make([]Order, 20000) // SQLite takes 32766 parameters at once
	res, err := h.Insert(ctx, tx, "orders", orders)
	fmt.Println(res.RowsAffected, orders[19999].ID, err)
	fmt.Println(tx.Commit())
	// Output:
	// 20000 20999 <nil>
	// <nil>
}

// Maps have no tags, so their keys are the caller's.
func ExampleHook_Insert_map() {
	h, db, err := counted()
	defer func() { _ = db.Close() }()
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := h.Insert(context.Background(), db, "orders", map[string]any{"id": 5, "user_id": 7})
	fmt.Println(res.RowsAffected, err)
	// Output:
	// 1 <nil>
}

// On PostgreSQL a router queries the home database for its version, for what the driver makes of a decimal, and for the
// settings on which the meaning of a statement depends. Here one mock is the home database and the shard.
func ExampleNew_sqlmockPostgres() {
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	conn, mock, err := sqlmock.New()
	check(err)
	tables, err := sharding.Spread([]string{"shop"}, 4, "orders_%d")
	check(err)
	router, err := sharding.New(sharding.DBs{"shop": conn}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: tables})
	check(err)
	hook, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"order": keygen.Counting(1000, 1)}}, Router: router})
	check(err)
	db := sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: router, Home: conn}), "pgx")

	mock.ExpectQuery(`SELECT VERSION\(\)`).WillReturnRows(sqlmock.NewRows([]string{"version"}).AddRow("PostgreSQL 15.18"))
	mock.ExpectQuery("SELECT 1.5").WillReturnRows(sqlmock.NewRows([]string{"decimal"}).AddRow("1.5"))
	mock.ExpectQuery("SELECT current_setting").WillReturnRows(sqlmock.NewRows([]string{"zone", "collation", "encoding", "dates", "intervals", "strings", "decimal", "float", "place"}).
		AddRow("UTC", "C.UTF-8", "UTF8", "ISO, MDY", "postgres", "on", "1.5", 0.30000000000000004, "2026-01-02 03:04:05.678901+00/shop.public"))
	mock.ExpectExec(`INSERT INTO "orders_3" \(id, user_id\) VALUES \(\$1, \$2\)`).WithArgs(1000, 7).WillReturnResult(sqlmock.NewResult(0, 1))

	_, err = hook.NamedExec(context.Background(), db, "INSERT INTO orders (id, user_id) VALUES (:id, :user_id)", &Order{UserID: 7})
	fmt.Println(err)
	fmt.Println(mock.ExpectationsWereMet())
	// Output:
	// <nil>
	// <nil>
}
