// SPDX-License-Identifier: Apache-2.0

package gorm_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/plugin/dbresolver"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/shardsuite"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
)

func TestEveryCellOfTheShardingTableHoldsOnTwoMariaDBServers(t *testing.T) {
	first, second := server.RunMariaDB(t), server.RunMariaDB(t)
	var shops atomic.Int64
	bothPaths(t, func(t *testing.T, lastInsertID bool) {
		shardsuite.Run(t, shardsuite.Databases{
			Open: func(t testing.TB) (home, east, west *sql.DB) {
				n := shops.Add(1)
				return first.Open(t, fmt.Sprint("home", n)), first.Open(t, fmt.Sprint("east", n)), second.Open(t, fmt.Sprint("west", n))
			},
			Dialector: func(db *sql.DB) gorm.Dialector {
				return mysql.New(mysql.Config{Conn: db, DisableWithReturning: lastInsertID})
			},
		})
	})
}

func TestEveryCellOfTheShardingTableHoldsOnPostgreSQL(t *testing.T) {
	p := server.SharePostgres(t)
	for _, name := range []string{"home", "east", "west"} { // all shops, one after another; PostgreSQL makes a schema in a fifth of the time of a database
		p.Open(t, name)
	}
	empty := func(t testing.TB, name string) *sql.DB {
		t.Helper()
		db := p.Open(t, name)
		if _, err := db.ExecContext(t.Context(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public"); err != nil {
			t.Fatal(err)
		}
		return db
	}
	shardsuite.Run(t, shardsuite.Databases{
		Open: func(t testing.TB) (home, east, west *sql.DB) {
			return empty(t, "home"), empty(t, "east"), empty(t, "west")
		},
		Dialector: func(db *sql.DB) gorm.Dialector { return postgres.New(postgres.Config{Conn: db}) },
	})
}

// gormTally has values of the types for which MariaDB has special arithmetic.
type gormTally struct {
	ID     int64
	Amount float64 `gorm:"type:decimal(20,4)"`
	Weight float64
	At     string `gorm:"type:datetime(3)"`
	Kind   int
}

func (gormTally) TableName() string { return "tallies" }

// tallies creates a table that is sharded over two servers, and one table with the same rows.
func tallies(t *testing.T, first, second *server.MariaDB, options ...sharding.Option) (sharded, whole *gorm.DB, dbs sharding.DBs) {
	t.Helper()
	dbs = sharding.DBs{"east": first.Open(t, "east"), "west": second.Open(t, "west")}
	m, err := sharding.Spread([]string{"east", "west"}, 4, "tallies_%d")
	if err != nil {
		t.Fatal(err)
	}
	table := sharding.Table{Name: "tallies", Key: "id", Rule: sharding.Low(10), Map: m, OnMissing: sharding.FanOutReads}
	router, err := sharding.New(dbs, append(options, table)...)
	if err != nil {
		t.Fatal(err)
	}
	sharded, whole = database.OpenGORM(t, first.Open(t, "home"), true), database.OpenGORM(t, first.Open(t, "whole"), true)
	if err := sharded.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
		t.Fatal(err)
	}
	if err := gormplugin.Migrate(t.Context(), sharded, &gormTally{}); err != nil {
		t.Fatal(err)
	}
	if err := whole.AutoMigrate(&gormTally{}); err != nil {
		t.Fatal(err)
	}
	return sharded, whole, dbs
}

func TestMariaDBsNumbersAndTimesAreMergedAsItComputesThem(t *testing.T) {
	sharded, whole, _ := tallies(t, server.RunMariaDB(t), server.RunMariaDB(t))
	start := time.Date(2024, 2, 28, 23, 0, 0, 0, time.UTC)
	for i := range int64(23) {
		row := gormTally{ID: i + 1, Amount: float64(i*i) * 1.25, Weight: float64(i) / 4, At: start.Add(time.Duration(i*i%7) * time.Hour).Format(time.DateTime), Kind: int(i % 3)}
		if err := errors.Join(sharded.Create(&row).Error, whole.Create(&row).Error); err != nil {
			t.Fatal(err)
		}
	}
	for _, query := range []func(db *gorm.DB) *gorm.DB{
		func(db *gorm.DB) *gorm.DB { return db.Order("at DESC, id").Limit(7).Offset(3) },
		func(db *gorm.DB) *gorm.DB { return db.Order("amount DESC").Where("kind > ?", 0).Limit(5) },
		func(db *gorm.DB) *gorm.DB {
			return db.Select("COUNT(*) n, SUM(amount) s, AVG(amount) a, AVG(kind) k, MIN(at) lo, MAX(at) hi, SUM(kind) sk, AVG(weight) w")
		},
		func(db *gorm.DB) *gorm.DB {
			return db.Select("kind, SUM(amount) AS s, AVG(id) AS a").Group("kind").Order("s DESC")
		},
		func(db *gorm.DB) *gorm.DB { return db.Select("kind").Distinct().Order("kind DESC") },
		func(db *gorm.DB) *gorm.DB { return db.Where("id IN ?", []int{3, 4, 5, 6}).Order("weight DESC") },
	} {
		var got, want []map[string]any
		err := errors.Join(query(sharded.Model(&gormTally{})).Find(&got).Error, query(whole.Model(&gormTally{})).Find(&want).Error)
		if err != nil || len(want) == 0 || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v\ngot  %v\nwant %v", err, got, want)
		}
	}
}

// waiting returns how many connections of a server wait for a table.
func waiting(ctx context.Context, db *sql.DB) (n int, err error) {
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table%'").Scan(&n)
	return n, err
}

// A table is locked on each server, and the query of all shards has to wait on both.
func TestAQueryOfAllShardsKeepsBothServersBusyAtOnce(t *testing.T) {
	db, _, dbs := tallies(t, server.RunMariaDB(t), server.RunMariaDB(t))
	read := func() error { return db.Find(&[]gormTally{}).Error }
	if err := read(); err != nil { // it looks at the columns, before anything is locked
		t.Fatal(err)
	}
	var locks []*sql.Conn
	for _, s := range []struct{ db, tables string }{{"east", "tallies_0 WRITE, tallies_2 WRITE"}, {"west", "tallies_1 WRITE, tallies_3 WRITE"}} {
		conn, err := dbs[s.db].Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.ExecContext(t.Context(), "LOCK TABLES "+s.tables); err != nil {
			t.Fatal(err)
		}
		locks = append(locks, conn)
	}
	done := make(chan error, 1)
	go func() { done <- read() }()
	testwait.Until(t, "both servers are busy", func() bool {
		east, errEast := waiting(t.Context(), dbs["east"])
		west, errWest := waiting(t.Context(), dbs["west"])
		if err := errors.Join(errEast, errWest); err != nil {
			t.Fatal(err)
		}
		return east > 0 && west > 0
	})
	for _, conn := range locks {
		if _, err := conn.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
			t.Error(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := testwait.For(t, done, "the query"); err != nil {
		t.Error(err)
	}
}

// TestDBResolverAndShards has home tables on a source and a replica, chosen by
// dbresolver, and shards with replicas of their own.
func TestDBResolverAndShards(t *testing.T) {
	m := server.RunMariaDB(t)
	home, homeReplica := m.Open(t, "home"), m.Open(t, "home_replica")
	shard, shardReplica := m.Open(t, "shard"), m.Open(t, "shard_replica")
	for _, db := range []*sql.DB{home, homeReplica} {
		database.Exec(t, db, gormReaders)
	}
	for _, db := range []*sql.DB{shard, shardReplica} {
		database.Exec(t, db, fmt.Sprintf(gormOrders, "orders_0"))
	}
	database.Exec(t, homeReplica, "INSERT INTO readers (id, name) VALUES (7, 'of the replica')")
	database.Exec(t, shard, "INSERT INTO orders_0 (id, note) VALUES (5, 'source')")
	database.Exec(t, shardReplica, "INSERT INTO orders_0 (id, note) VALUES (5, 'replica')")
	targets, err := sharding.Spread([]string{"shard"}, 1, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"shard": shard}, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Low(1), Map: targets})
	if err != nil {
		t.Fatal(err)
	}
	db := database.OpenGORM(t, home, true)
	plugin := gormplugin.New(gormplugin.Config{Generators: gormSet(), Router: router, Replicas: map[string][]*sql.DB{"shard": {shardReplica}}})
	resolver := dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{mysql.New(mysql.Config{Conn: homeReplica})}})
	if err := errors.Join(db.Use(plugin), db.Use(resolver)); err != nil {
		t.Fatal(err)
	}
	note := func(db *gorm.DB) string {
		var o gormOrder
		if err := db.First(&o, 5).Error; err != nil {
			return err.Error()
		}
		return o.Note
	}
	inTx := func(read func(tx *gorm.DB) string) (got string) {
		if err := db.Transaction(func(tx *gorm.DB) error { got = read(tx); return nil }); err != nil {
			return err.Error()
		}
		return got
	}
	var r gormReader
	for name, s := range map[string]struct{ got, want string }{
		"a read of a shard":             {note(db), "replica"},
		"with dbresolver.Write":         {note(db.Clauses(dbresolver.Write)), "source"},
		"with sharding.Primary":         {note(db.WithContext(sharding.Primary(t.Context()))), "source"},
		"FOR UPDATE":                    {note(db.Clauses(clause.Locking{Strength: "UPDATE"})), "source"},
		"in a transaction":              {inTx(note), "source"},
		"a read at home":                {fmt.Sprint(db.First(&r, 7).Error, r.Name), "<nil>of the replica"},
		"a write at home, read there":   {fmt.Sprint(db.Create(&gormReader{ID: 8, Name: "new"}).Error, db.Clauses(dbresolver.Write).First(&gormReader{}, 8).Error), "<nil> <nil>"},
		"a write to a shard, read back": {fmt.Sprint(db.Model(&gormOrder{ID: 5}).Update("note", "source").Error, note(db.Clauses(dbresolver.Write))), "<nil>source"},
		"raw SQL on a shard":            {fmt.Sprint(db.Exec("DELETE FROM orders").Error), "<nil>"}, // all rows are on one
	} {
		if s.got != s.want {
			t.Errorf("%s: %q, not %q", name, s.got, s.want)
		}
	}
}
