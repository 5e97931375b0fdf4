// SPDX-License-Identifier: Apache-2.0

package tidb_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

func ids(t *testing.T, s started) *sqlstore.Store {
	t.Helper()
	database.Exec(t, s.open(t, ""), "CREATE DATABASE ids")
	return database.Prepare(t, s.open(t, "ids"))
}

// The tests of sqlstore replay these answers.
func TestItsAnswersAreThoseThatOtherTestsReplay(t *testing.T) {
	s := start(t)
	ids(t, s)
	db := s.open(t, "ids")
	for query, want := range map[string]string{
		"SELECT VERSION() LIKE '8.0.11-TiDB-v%'": "1",
		"SELECT @@version_comment":               "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible",
		"SELECT @@binlog_format":                 "STATEMENT",
		"SELECT COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'ids' AND TABLE_NAME = 'leaf_alloc' AND COLUMN_NAME = 'max_id'": "bigint",
		"SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'ids' AND TABLE_NAME = 'leaf_alloc'":                                  "InnoDB",
		"SELECT COUNT(*) FROM information_schema.TRIGGERS":                                                                                       "0",
	} {
		if got := database.Texts(t, db, query); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	t.Log(database.Texts(t, db, "SELECT VERSION()"))
}

func TestSegmentsAreReservedByManyAtOnce(t *testing.T) {
	store := ids(t, start(t))
	n := atOnce(t, 8, 50, func() (numbers []int64, err error) {
		span, err := store.Tag("orders").Reserve(t.Context(), 10)
		for i := range span.Count {
			numbers = append(numbers, span.First+i*span.Step)
		}
		return numbers, err
	})
	if n != 4000 {
		t.Errorf("%d ids, want 4000", n)
	}
}

func TestRowsOfWorkerNodeAreNumberedByManyAtOnce(t *testing.T) {
	store := ids(t, start(t))
	n := atOnce(t, 8, 20, func() ([]int64, error) {
		lease, err := store.WorkerNode("h", "1").Acquire(t.Context(), keygen.Disposable())
		if err != nil {
			return nil, err
		}
		return []int64{lease.ID()}, nil
	})
	if n != 160 {
		t.Errorf("%d worker ids, want 160", n)
	}
}

// Order has an id from a segment.
type Order struct {
	ID   int64 `keygen:""`
	Note string
}

func TestModelsOfGORMGetTheirIDs(t *testing.T) {
	s := start(t)
	g, err := segment.New(t.Context(), segment.Config{Source: ids(t, s).Tag("orders")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	db := database.OpenGORM(t, s.open(t, "ids"), false)
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: g}})); err != nil {
		t.Fatal(err)
	}
	database.Exec(t, s.open(t, "ids"), "CREATE TABLE orders (id BIGINT PRIMARY KEY, note VARCHAR(20) NOT NULL)")
	n := atOnce(t, 4, 50, func() ([]int64, error) {
		orders := []Order{{Note: "one"}, {Note: "two"}}
		err := db.Create(&orders).Error
		return []int64{orders[0].ID, orders[1].ID}, err
	})
	var stored []Order
	if err := db.Find(&stored).Error; err != nil || n != 400 || len(stored) != 400 {
		t.Errorf("%d ids, %d rows (%v), want 400", n, len(stored), err)
	}
}

func TestWhatNeedsMoreIsRefused(t *testing.T) {
	s := start(t)
	store := ids(t, s)
	_, tag := store.GuardedTag("orders").Reserve(t.Context(), 10)
	_, node := store.GuardedWorkerNode("h", "1").Acquire(t.Context(), keygen.Disposable())
	_, lease := store.Leases().Take(t.Context(), workerid.Claim{Namespace: "shop", Owner: "o", Most: 3, Layout: keygen.Twitter(), Term: time.Minute})
	for cure, err := range map[string]error{"use Tag:": tag, "use WorkerNode:": node, "use WorkerNode, or": lease} {
		var setup *keygen.SetupError
		if !errors.As(err, &setup) || !strings.HasPrefix(setup.Cure, cure) || !strings.Contains(err.Error(), "this is TiDB (") {
			t.Errorf("%s %v", cure, err)
		}
	}
}

func TestAMigrationIsRefusedBeforeItLeavesAnything(t *testing.T) {
	s := start(t)
	database.Exec(t, s.open(t, ""), "CREATE DATABASE shop")
	db := s.open(t, "shop")
	database.Exec(t, db, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, user_id BIGINT NOT NULL)")
	layout, err := sharding.Spread([]string{"shop"}, 2, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	j, err := migrate.New(migrate.Config{
		Source: db, Shards: sharding.DBs{"shop": db},
		Tables: []migrate.Table{{Table: sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(1), Map: layout}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, inspected := j.Inspect(t.Context())
	for verb, err := range map[string]error{"inspect": inspected, "run": j.Run(t.Context())} {
		if !errors.Is(err, migrate.ErrUnsupported) || !strings.Contains(err.Error(), "has no triggers") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if tables := database.Texts(t, db, "SHOW TABLES"); len(tables) != 1 {
		t.Errorf("it left %v", tables)
	}
}

func TestTheExportedDefinitionIsTaken(t *testing.T) {
	s := start(t)
	database.Exec(t, s.open(t, ""), "CREATE DATABASE shop")
	db := s.open(t, "shop")
	text, err := os.ReadFile("../../sharding/export/testdata/tidb/tidb.sql")
	if err != nil {
		t.Fatal(err)
	}
	database.Exec(t, db, string(text))
	database.Exec(t, db, "INSERT INTO orders (id, user_id) VALUES (7, 42)")
	if got := database.Texts(t, db, "SELECT note FROM orders WHERE user_id = 42"); len(got) != 1 || got[0] != "PRIMARY KEY (`id`)" {
		t.Errorf("%q", got)
	}
}
