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
	"github.com/shardid/shardid/sqlxhook"
)

// The program stays the same before and after the switch, and need not be
// started again: until then rows are in the old database, which numbers them,
// and from then on in their shards, with ids of the generator.
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
		Router:     router, DriverName: "sqlite",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := router.Load(ctx); err != nil { // once, when the program starts
		fmt.Println(err)
		return
	}

	insert := func() {
		bill := Bill{UserID: 5}
		if _, err := h.Insert(ctx, h.Shards(), "bills", &bill); err != nil {
			fmt.Println(err)
			return
		}
		shard, err := h.For("bills", 5)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("bill", bill.ID, "is on", shard.Target())
	}
	insert()
	if err := move(ctx, dbs, bills); err != nil { // somewhere else, with the command shardid say
		fmt.Println(err)
		return
	}
	insert()
	// Output:
	// bill 1 is on legacy/bills
	// bill 1000 is on spare/bills_1
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
