package sqlxhook_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// Bill is a row of the sharded table bills, by user.
type Bill struct {
	ID     int64 `db:"id" keygen:"bill"`
	UserID int64 `db:"user_id"`
}

// billing returns a hook and a router for bills that lie in four tables over two
// databases: users 0, 4, 8 … in main/bills_0, users 1, 5, 9 … in spare/bills_1 and
// so on. A service has its databases by now, and both at its start.
func billing(options ...sharding.Option) (*sqlxhook.Hook, *sharding.Router, func()) {
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
		DriverName: "sqlite",
	})
	if err != nil {
		log.Fatal(err)
	}
	return h, router, func() {
		for _, db := range dbs {
			_ = db.Close()
		}
	}
}

// Two databases with two tables each: the key chooses both.
func ExampleHook_For() {
	h, _, done := billing()
	defer done()
	ctx := context.Background()
	shard, err := h.For("bills", 7)
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := h.Insert(ctx, shard, "bills", []Bill{{UserID: 7}, {UserID: 7}})
	fmt.Println(shard.Target(), res.IDs, err)

	var bills []Bill
	err = shard.SelectContext(ctx, &bills, "SELECT bills.id, user_id FROM bills WHERE user_id = ? ORDER BY id", 7)
	fmt.Println(bills, err)
	// Output:
	// spare/bills_3 [1000 1001] <nil>
	// [{1000 7} {1001 7}] <nil>
}

// What could reach the wrong shard is refused, with the way out.
func ExampleHook_For_refused() {
	h, router, done := billing()
	defer done()
	ctx := context.Background()
	db := sqlx.NewDb(router.DB("main"), "sqlite")
	shard, err := h.For("bills", 7)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = h.Insert(ctx, db, "bills", &Bill{UserID: 7})
	fmt.Println(err)
	_, err = h.Insert(ctx, shard, "bills", &Bill{UserID: 8})
	fmt.Println(err)
	_, err = shard.ExecContext(ctx, "UPDATE bills SET user_id = 8")
	fmt.Println(err)
	// Output:
	// sqlxhook: sharding: statement bills refused: SQL text names a sharded table; send it with a handle of Hook.For, Hook.Begin or GroupBy, which is bound to a shard
	// sqlxhook: sharding: insert into bills refused: row 0: row belongs to another shard: main/bills_0, and the handle is bound to spare/bills_3 (user_id); take the handle from Hook.For, or group the rows with GroupBy
	// sharding: statement bills refused: sharding key would change (user_id); a row keeps its key; insert it on its new shard and delete it here
}

// A transaction is bound to the shard it was begun for. Other shards of the same
// database can join it.
func ExampleHook_Begin() {
	h, _, done := billing()
	defer done()
	ctx := context.Background()
	tx, err := h.Begin(ctx, "bills", 7)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	res, err := h.Insert(ctx, tx, "bills", &Bill{UserID: 7})
	fmt.Println(tx.Target(), res.IDs, err)

	near, err := tx.For("bills", 5)
	fmt.Println(near.Target(), err)
	_, err = tx.For("bills", 6)
	fmt.Println(err)
	fmt.Println(tx.Commit())
	// Output:
	// spare/bills_3 [1000] <nil>
	// spare/bills_1 <nil>
	// sharding: statement on bills refused: transaction spans databases; the transaction is on spare, the row on main/bills_2; give each database a transaction of its own
	// <nil>
}

// Each row of a batch goes to its shard.
func ExampleHook_Shards() {
	h, _, done := billing(sharding.Transactions(sharding.BestEffort))
	defer done()
	bills := []Bill{{UserID: 7}, {UserID: 4}, {UserID: 3}}
	res, err := h.Insert(context.Background(), h.Shards(), "bills", bills)
	fmt.Println(res.IDs, res.RowsAffected, err)
	// Output:
	// [1000 1001 1002] 3 <nil>
}

// Without BestEffort a batch for several databases is one transaction for each.
func ExampleGroupBy() {
	h, _, done := billing()
	defer done()
	ctx := context.Background()
	groups, err := sqlxhook.GroupBy(ctx, h, "bills", []Bill{{UserID: 7}, {UserID: 4}, {UserID: 3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, g := range groups {
		res, err := h.Insert(ctx, g.Shard, "bills", g.Items)
		fmt.Println(g.Shard.Target(), g.Index, res.IDs, err)
	}
	// Output:
	// spare/bills_3 [0 2] [1000 1002] <nil>
	// main/bills_0 [1] [1001] <nil>
}

// A list of keys becomes one list for each shard.
func ExampleGroupKeys() {
	h, _, done := billing()
	defer done()
	groups, err := sqlxhook.GroupKeys(h, "bills", []int64{7, 4, 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, g := range groups {
		query, args, err := sqlx.In("SELECT id FROM bills WHERE user_id IN (?)", g.Items)
		if err != nil {
			fmt.Println(err)
			return
		}
		var ids []int64
		err = g.Shard.SelectContext(context.Background(), &ids, g.Shard.Rebind(query), args...)
		fmt.Println(g.Shard.Target(), args, ids, err)
	}
	// Output:
	// spare/bills_3 [7 3] [] <nil>
	// main/bills_0 [4] [] <nil>
}

// Every shard is asked, four at the same time.
func ExampleCollect() {
	h, router, done := billing()
	defer done()
	ctx := context.Background()
	for user := range int64(3) {
		shard, err := h.For("bills", user)
		if err == nil {
			_, err = h.Insert(ctx, shard, "bills", &Bill{UserID: user})
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	bills, err := sqlxhook.Collect(ctx, h, router.Targets("bills"), 4, func(ctx context.Context, s *sqlxhook.Shard) (bills []Bill, err error) {
		err = s.SelectContext(ctx, &bills, "SELECT * FROM bills WHERE id > ?", 1000)
		return bills, err
	})
	fmt.Println(bills, err)
	// Output:
	// [{1001 1} {1002 2}] <nil>
}

// The same text for each shard, with its own names.
func ExampleShard_Expand() {
	h, router, done := billing()
	defer done()
	for _, target := range router.Targets("bills")[:2] {
		shard, err := h.At(target)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(shard.Expand("SELECT bills.id, 'bills' FROM bills"))
	}
	// Output:
	// SELECT "bills_0".id, 'bills' FROM "bills_0" <nil>
	// SELECT "bills_1".id, 'bills' FROM "bills_1" <nil>
}

// One statement for every shard, at most two at a time.
func ExampleHook_Each() {
	h, router, done := billing()
	defer done()
	err := h.Each(context.Background(), router.Targets("bills"), 2, func(ctx context.Context, s *sqlxhook.Shard) error {
		_, err := s.ExecContext(ctx, "DELETE FROM bills WHERE id < ?", 1000)
		return err
	})
	fmt.Println(err)
	// Output:
	// <nil>
}
