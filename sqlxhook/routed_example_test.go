// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sqlxhook"
)

// Bill is a row of the sharded table bills, by user.
type Bill struct {
	ID     int64 `db:"id" keygen:"bill"`
	UserID int64 `db:"user_id"`
}

// billing returns the routed database of bills in four tables over two databases: users 0, 4, 8 …
// in main/bills_0, users 1, 5, 9 … in spare/bills_1 and so on. A service opens its databases at its
// start.
func billing(options ...sharding.Option) (*sqlxhook.Hook, *sqlx.DB, func()) {
	dbs, names := sharding.DBs{}, []string{"main", "spare"}
	for i, name := range names {
		db := sqlx.MustOpen("sqlite", ":memory:")
		db.SetMaxOpenConns(1) // each connection to :memory: is a database of its own
		for table := i; table < 4; table += 2 {
			db.MustExec(fmt.Sprintf("CREATE TABLE bills_%d (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL)", table))
		}
		dbs[name] = db.DB
	}
	tables, err := sharding.Spread(names, 4, "bills_%d")
	if err != nil {
		log.Fatal(err)
	}
	router, err := sharding.New(dbs, append(options,
		sharding.Table{Name: "bills", Key: "user_id", Rule: sharding.Low(10), Map: tables})...)
	if err != nil {
		log.Fatal(err)
	}
	h, err := sqlxhook.New(sqlxhook.Config{
		Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"bill": keygen.Counting(1000, 1)}},
		Router:     router,
	})
	if err != nil {
		log.Fatal(err)
	}
	// The home database has all tables that are not sharded.
	db := sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["main"]}), "sqlite")
	return h, db, func() {
		_ = db.Close()
		for _, shard := range dbs {
			_ = shard.Close()
		}
	}
}

// The routed database is an ordinary *sqlx.DB: its statements go to the databases of their rows.
func Example_routed() {
	h, db, done := billing()
	defer done()
	ctx := context.Background()
	res, err := h.Insert(ctx, db, "bills", []Bill{{UserID: 7}, {UserID: 5}})
	fmt.Println(res.IDs, err)

	var bill Bill
	err = db.GetContext(ctx, &bill, "SELECT * FROM bills WHERE user_id = ?", 7) // asks one shard
	fmt.Println(bill, err)
	var bills []Bill
	err = db.SelectContext(ctx, &bills, "SELECT * FROM bills ORDER BY id DESC") // asks all of them
	fmt.Println(bills, err)

	_, err = db.ExecContext(ctx, "UPDATE bills SET user_id = 8 WHERE user_id = 7")
	fmt.Println(err)
	// Output:
	// [1000 1001] <nil>
	// {1000 7} <nil>
	// [{1001 5} {1000 7}] <nil>
	// sharding: update bills refused: sharding key would change; the row would belong to another shard; insert a new row and delete the old one, or leave user_id out
}

// A transaction is on the database of its first statement.
func Example_transaction() {
	h, db, done := billing()
	defer done()
	ctx := context.Background()
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	res, err := h.Insert(ctx, tx, "bills", []Bill{{UserID: 7}, {UserID: 5}})
	fmt.Println(res.IDs, err)
	_, err = h.Insert(ctx, tx, "bills", &Bill{UserID: 6})
	fmt.Println(err)
	fmt.Println(tx.Commit())
	// Output:
	// [1000 1001] <nil>
	// sqlxhook: sharding: statement refused: transaction spans databases: it has begun on database spare, and this statement is for database main; use one transaction for each database, or let transactions span databases with sharding.Transactions, Atomic or BestEffort
	// <nil>
}

// Each row of a batch goes to its shard.
func ExampleHook_Insert_shards() {
	h, db, done := billing(sharding.Transactions(sharding.BestEffort))
	defer done()
	bills := []Bill{{UserID: 7}, {UserID: 4}, {UserID: 3}}
	res, err := h.Insert(context.Background(), db, "bills", bills)
	fmt.Println(res.IDs, res.RowsAffected, err)
	// Output:
	// [1000 1001 1002] 3 <nil>
}

// The program is the same before and after the switch, and is not restarted: until then rows are in
// the old database, which numbers them, and from then on in their shards, with ids of the
// generator.
func ExampleHook_Insert_migration() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "bills")
	if err != nil {
		log.Fatal(err)
	}
	dbs := sharding.DBs{}
	for _, name := range []string{"legacy", "main", "spare"} {
		dbs[name] = sqlx.MustOpen("sqlite", filepath.Join(dir, name)).DB
	}
	defer func() {
		for _, db := range dbs {
			_ = db.Close()
		}
		_ = os.RemoveAll(dir)
	}()
	if _, err := dbs["legacy"].ExecContext(ctx, "CREATE TABLE bills (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL)"); err != nil {
		fmt.Println(err)
		return
	}

	targets, err := sharding.Spread([]string{"main", "spare"}, 4, "bills_%d")
	if err != nil {
		fmt.Println(err)
		return
	}
	bills := sharding.Table{Name: "bills", Key: "user_id", Rule: sharding.Low(10), Map: targets}
	router, err := sharding.New(dbs, bills, sharding.Migration{Source: "legacy", Tables: map[string]string{"bills": "id"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := sqlxhook.New(sqlxhook.Config{
		Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"bill": keygen.Counting(1000, 1)}},
		Router:     router,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	db := sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["legacy"]}), "sqlite")
	defer func() { _ = db.Close() }()

	insert := func() {
		bill := Bill{UserID: 5}
		if _, err := h.Insert(ctx, db, "bills", &bill); err != nil {
			fmt.Println(err)
			return
		}
		at, err := router.Target("bills", 5)
		fmt.Println("bill", bill.ID, "is on", at, err)
	}
	insert()
	if err := move(ctx, dbs, bills); err != nil { // somewhere else, with the command shardid say
		fmt.Println(err)
		return
	}
	insert()
	// Output:
	// bill 1 is on legacy/bills <nil>
	// bill 1000 is on spare/bills_1 <nil>
}

func move(ctx context.Context, dbs sharding.DBs, table sharding.Table) error {
	job, err := migrate.New(migrate.Config{
		Source: dbs["legacy"], Shards: sharding.DBs{"main": dbs["main"], "spare": dbs["spare"]},
		Tables: []migrate.Table{{Table: table}},
	})
	if err != nil {
		return err
	}
	if err := job.Run(ctx); err != nil {
		return err
	}
	_, err = job.Cutover(ctx, 10*time.Second)
	return err
}
