// SPDX-License-Identifier: Apache-2.0

package gorm_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"gorm.io/driver/mysql"
	gormpg "gorm.io/driver/postgres"
	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
)

type gormParcel struct {
	ID                   int64
	Name, Street, City   string
	Weight, Declarations int64
}

func (gormParcel) TableName() string { return "parcels" }

// gormFilledParcel is the same with a filled key, in a table as Check wants it:
// one that the database does not number.
type gormFilledParcel struct {
	ID                   int64 `gorm:"autoIncrement:false" keygen:""`
	Name, Street, City   string
	Weight, Declarations int64
}

func (gormFilledParcel) TableName() string { return "parcels" }

// BenchmarkGorm1000Rows compares an insert of 1000 rows whose keys are filled
// with one whose keys are the database's own.
func BenchmarkGorm1000Rows(b *testing.B) {
	m, p := server.RunMariaDB(b), server.RunPostgres(b)
	file := func(name string) *sql.DB {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), name)+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(normal)")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = db.Close() })
		return db
	}
	for _, d := range []struct {
		name string
		open func(database string) gorm.Dialector
	}{
		{"sqlite", func(name string) gorm.Dialector { return gormsqlite.Dialector{Conn: file(name)} }},
		{"sqlite with cgo", func(name string) gorm.Dialector {
			return gormsqlite.Open("file:" + filepath.Join(b.TempDir(), name) + "?_busy_timeout=5000&_journal_mode=WAL&_synchronous=normal")
		}},
		{"mariadb", func(name string) gorm.Dialector { return mysql.New(mysql.Config{Conn: m.Open(b, name)}) }},
		{"mariadb without returning", func(name string) gorm.Dialector {
			return mysql.New(mysql.Config{Conn: m.Open(b, name+"_last"), DisableWithReturning: true})
		}},
		{"postgres", func(name string) gorm.Dialector { return gormpg.New(gormpg.Config{Conn: p.Open(b, name)}) }},
	} {
		b.Run(d.name+"/database", func(b *testing.B) {
			benchmarkParcels(b, d.open("database"), func(i int) gormParcel {
				return gormParcel{Name: "n", Street: "s", City: "c", Weight: int64(i)}
			})
		})
		b.Run(d.name+"/filled", func(b *testing.B) {
			benchmarkParcels(b, d.open("filled"), func(i int) gormFilledParcel {
				return gormFilledParcel{Name: "n", Street: "s", City: "c", Weight: int64(i)}
			}, gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1, 1)}}))
		})
	}
}

// benchmarkParcels stores rows in a new table, of which a benchmark that is run
// several times leaves nothing.
func benchmarkParcels[T any](b *testing.B, dialector gorm.Dialector, parcel func(i int) T, plugins ...gorm.Plugin) {
	b.Helper()
	db, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		b.Fatal(err)
	}
	if err := errors.Join(db.Migrator().DropTable(new(T)), db.AutoMigrate(new(T))); err != nil {
		b.Fatal(err)
	}
	for _, p := range plugins {
		if err := db.Use(p); err != nil {
			b.Fatal(err)
		}
	}
	parcels := make([]T, 1000)
	for b.Loop() {
		for i := range parcels {
			parcels[i] = parcel(i)
		}
		if err := db.Create(&parcels).Error; err != nil {
			b.Fatal(err)
		}
	}
}
