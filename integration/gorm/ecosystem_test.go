// SPDX-License-Identifier: Apache-2.0

package gorm_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"
	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/sharding"
)

// neighbours are a home, a replica of it and another database, all with readers,
// and a shard with orders.
type neighbours struct {
	home, replica, other, shard *sql.DB
	router                      *sharding.Router
}

func newNeighbours(t *testing.T) *neighbours {
	t.Helper()
	dir := t.TempDir()
	open := func(name, ddl string) *sql.DB {
		db, err := sql.Open("sqlite", filepath.Join(dir, name)+"?_pragma=busy_timeout(60000)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		database.Exec(t, db, ddl)
		return db
	}
	const readers = "CREATE TABLE readers (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO readers (id, name) VALUES (1, '"
	n := &neighbours{
		home: open("home", readers+"home')"), replica: open("replica", readers+"replica')"), other: open("other", readers+"other')"),
		shard: open("shard", "CREATE TABLE orders_0 (id INTEGER PRIMARY KEY, note TEXT)"),
	}
	targets, err := sharding.Spread([]string{"shard"}, 1, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	n.router, err = sharding.New(sharding.DBs{"shard": n.shard}, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(1), Map: targets})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// gorm opens gorm at home with plugins.
func (n *neighbours) gorm(t *testing.T, prepared bool, plugins ...gorm.Plugin) (*gorm.DB, error) {
	t.Helper()
	db, err := gorm.Open(gormsqlite.Dialector{Conn: n.home}, &gorm.Config{Logger: logger.Discard, PrepareStmt: prepared})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plugins {
		err = errors.Join(err, db.Use(p))
	}
	return db, err
}

func (n *neighbours) plugin() gorm.Plugin {
	return gormplugin.New(gormplugin.Config{Generators: gormSet(), Router: n.router})
}

func (n *neighbours) resolver() gorm.Plugin {
	replica, other := gormsqlite.Dialector{Conn: n.replica}, gormsqlite.Dialector{Conn: n.other}
	return dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{replica}}).Register(dbresolver.Config{Sources: []gorm.Dialector{other}}, "other")
}

func TestWhatDBResolverChoosesForTablesAtHomeHoldsBesideShards(t *testing.T) {
	for name, prepared := range map[string]bool{"usual": false, "prepared": true} {
		t.Run(name, func(t *testing.T) {
			n := newNeighbours(t)
			db, err := n.gorm(t, prepared, n.plugin(), n.resolver())
			if err != nil {
				t.Fatal(err)
			}
			other := func() *gorm.DB { return db.Clauses(dbresolver.Use("other")) }
			unsharded := db.WithContext(sharding.Unsharded(t.Context()))
			for from, want := range map[*gorm.DB]string{
				db: "replica", other(): "other", db.Clauses(dbresolver.Write): "home",
				unsharded: "replica", unsharded.Clauses(dbresolver.Use("other")): "other",
			} {
				var r gormReader
				if err := from.First(&r, 1).Error; err != nil || r.Name != want {
					t.Errorf("read from %s, want %s: %v", r.Name, want, err)
				}
			}
			err = errors.Join(
				db.Create(&gormReader{Name: "at home"}).Error,
				other().Create(&gormReader{Name: "elsewhere"}).Error,
				other().Transaction(func(tx *gorm.DB) error { return tx.Create(&gormReader{Name: "in a transaction"}).Error }),
				db.Create(&gormOrder{Note: "sharded"}).Error,
			)
			if err != nil {
				t.Error(err)
			}
			at, elsewhere, copied := names(t, n.home), names(t, n.other), names(t, n.replica)
			if len(at) != 2 || at["at home"] == 0 || len(elsewhere) != 3 || elsewhere["elsewhere"] == 0 || elsewhere["in a transaction"] == 0 || len(copied) != 1 {
				t.Errorf("at home %v, elsewhere %v, on the replica %v", at, elsewhere, copied)
			}
			var o gormOrder
			if err := db.First(&o, 1021).Error; err != nil || o.Note != "sharded" {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
}

func TestAPluginThatRoutesIsRefusedBehindDBResolver(t *testing.T) {
	n := newNeighbours(t)
	if _, err := n.gorm(t, false, n.resolver(), n.plugin()); err == nil {
		t.Error("no error: creates would be refused later, by a message that names no plugin")
	}
}
