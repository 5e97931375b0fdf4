// SPDX-License-Identifier: Apache-2.0

package gorm_test

import (
	"database/sql"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
)

type gormReader struct {
	ID   int64  `keygen:""`
	Name string `gorm:"size:40"`
}

func (gormReader) TableName() string { return "readers" }

const gormReaders = "CREATE TABLE readers (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) UNIQUE) ENGINE=InnoDB"

// resolved is a *gorm.DB that writes to one database and reads from another one without
// replication, so that a result shows which one was read.
type resolved struct {
	*gorm.DB

	source, replica *sql.DB
}

func openResolved(t *testing.T, m *server.MariaDB, name string, config gorm.Config, resolverFirst bool) resolved {
	t.Helper()
	r := resolved{source: m.Open(t, name+"_source"), replica: m.Open(t, name+"_replica")}
	database.Exec(t, r.source, gormReaders)
	database.Exec(t, r.replica, gormReaders)
	database.Exec(t, r.replica, "INSERT INTO readers (id, name) VALUES (7, 'of the replica')")
	dialector := func(db *sql.DB) gorm.Dialector {
		return mysql.New(mysql.Config{Conn: db, DisableWithReturning: true})
	}
	config.Logger = logger.Discard
	db, err := gorm.Open(dialector(r.source), &config)
	if err != nil {
		t.Fatal(err)
	}
	plugins := []gorm.Plugin{
		gormplugin.New(gormplugin.Config{Generators: gormSet()}),
		dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{dialector(r.replica)}}),
	}
	if resolverFirst {
		plugins[0], plugins[1] = plugins[1], plugins[0]
	}
	for _, p := range plugins {
		if err := db.Use(p); err != nil {
			t.Fatal(err)
		}
	}
	r.DB = db
	return r
}

// eachResolver runs a test with both orders of the plugins, and with prepared
// statements.
func eachResolver(t *testing.T, test func(t *testing.T, r resolved)) {
	m := server.RunMariaDB(t)
	for _, c := range []struct {
		name   string
		config gorm.Config
		first  bool
	}{{"after", gorm.Config{}, false}, {"before", gorm.Config{}, true}, {"prepared", gorm.Config{PrepareStmt: true}, false}, {"untransacted", gorm.Config{SkipDefaultTransaction: true}, true}} {
		t.Run(c.name, func(t *testing.T) { test(t, openResolved(t, m, c.name, c.config, c.first)) })
	}
}

func names(t *testing.T, db *sql.DB) map[string]int64 {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT name, id FROM readers")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	found := map[string]int64{}
	for rows.Next() {
		var name string
		var id int64
		if err := rows.Scan(&name, &id); err != nil {
			t.Fatal(err)
		}
		found[name] = id
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestGormWritesGoToTheSourceAndReadsToTheReplica(t *testing.T) {
	eachResolver(t, func(t *testing.T, r resolved) {
		one, many := gormReader{Name: "a"}, []gormReader{{Name: "b"}, {Name: "c"}}
		if err := r.Create(&one).Error; err != nil {
			t.Fatal(err)
		}
		if err := r.CreateInBatches(&many, 1).Error; err != nil {
			t.Fatal(err)
		}
		got := names(t, r.source)
		if len(got) != 3 || got["a"] != 1000 || one.ID != 1000 || got["b"] != many[0].ID || got["c"] != 1014 {
			t.Errorf("the source has %v", got)
		}
		if got := names(t, r.replica); len(got) != 1 {
			t.Errorf("the replica has %v", got)
		}
		var read []gormReader
		if err := r.Find(&read).Error; err != nil || len(read) != 1 || read[0].ID != 7 {
			t.Errorf("read %v, %v", read, err)
		}
	})
}

func TestGormVerifiesKeysOnTheSource(t *testing.T) {
	eachResolver(t, func(t *testing.T, r resolved) {
		database.Exec(t, r.source, "INSERT INTO readers (id, name) VALUES (3, 'old')")
		list := []gormReader{{Name: "a"}, {Name: "old"}, {Name: "b"}}
		if err := r.Clauses(clause.OnConflict{DoNothing: true}).Create(&list).Error; err != nil {
			t.Fatal(err)
		}
		if got := names(t, r.source); list[0].ID != got["a"] || list[1].ID != 0 || list[2].ID != got["b"] || len(got) != 3 {
			t.Errorf("%v; the source has %v", list, got)
		}
	})
}

func TestGormTransactionsStayOnTheSource(t *testing.T) {
	eachResolver(t, func(t *testing.T, r resolved) {
		a, gone := gormReader{Name: "a"}, gormReader{Name: "gone"}
		err := r.Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&a).Error; err != nil {
				return err
			}
			var seen gormReader
			if err := tx.First(&seen, a.ID).Error; err != nil || seen.Name != "a" {
				t.Errorf("inside: %v, %v", seen, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		tx := r.Clauses(dbresolver.Write).Begin()
		if err := tx.Create(&gone).Error; err != nil {
			t.Fatal(err)
		}
		tx.Rollback()
		if got := names(t, r.source); len(got) != 1 || got["a"] != a.ID {
			t.Errorf("the source has %v", got)
		}
		var onSource gormReader
		if err := r.Clauses(dbresolver.Write).First(&onSource, a.ID).Error; err != nil || onSource.Name != "a" {
			t.Errorf("read from the source: %v, %v", onSource, err)
		}
	})
}
