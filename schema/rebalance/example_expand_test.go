package rebalance_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/shardid/shardid/schema/rebalance"
	"github.com/shardid/shardid/sharding"
)

// New code takes even ids from a generator, and connections that were told so let the table give
// odd ones. Two rows have come over a connection that nobody told.
func ExampleFindStrays() {
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(countStrays(context.Background(), filepath.Join(dir, "shop.db")), os.RemoveAll(dir)); err != nil {
		log.Fatal(err)
	}
	// Output:
	// auto_increment_increment=2&auto_increment_offset=1
	// 2 rows are not of the class, from 102 to 104
}

func countStrays(ctx context.Context, file string) (err error) {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, "CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (98), (99), (101), (102), (103), (104)"); err != nil {
		return err
	}
	odd := rebalance.Class{Offset: 1, Step: 2}
	fmt.Println(odd.Parameters()) // of the DSN
	strays, err := rebalance.FindStrays(ctx, db, "orders", "id", 100, odd)
	fmt.Printf("%d rows are not of the class, from %d to %d\n", strays.Count, strays.First, strays.Last)
	return err
}

func TestOnlyServersThatNumberByStepsAreExpanded(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT)"); err != nil {
		t.Fatal(err)
	}
	one, err := sharding.MapOf(sharding.Target{DB: "one", Table: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	table := sharding.Table{Name: "orders", Key: "id", Rule: sharding.Epochs(sharding.Epoch{Slots: []sharding.Slot{0}}), Map: one}
	dbs := sharding.DBs{"one": db}
	if err := rebalance.CheckExpansion(t.Context(), dbs, table, 1); !errors.Is(err, rebalance.ErrUnsupported) {
		t.Error(err)
	}
	if _, err := rebalance.UnseenConnections(t.Context(), dbs, table); !errors.Is(err, rebalance.ErrUnsupported) {
		t.Error(err)
	}
}
