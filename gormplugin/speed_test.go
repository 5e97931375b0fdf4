// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"database/sql"
	"errors"
	"reflect"
	"strconv"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// Parcel has six columns, as tables often have.
type Parcel struct {
	ID                   int64 `keygen:""`
	Name, Street, City   string
	Weight, Declarations int64
}

// returning and lastInsertID are databases that are never queried, of the two kinds that gorm
// knows: those that return the keys of new rows, and MySQL.
var (
	returning    = sqlite.Dialector{DriverName: "sqlite", DSN: ":memory:"}
	lastInsertID = mysql.New(mysql.Config{DSN: "nobody@tcp(nowhere)/none", SkipInitializeWithVersion: true})
)

// dryDB executes nothing, so a benchmark measures the work before the database.
func dryDB(tb testing.TB, dialector gorm.Dialector, use bool) *gorm.DB {
	tb.Helper()
	db, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard, DryRun: true, SkipDefaultTransaction: true, DisableAutomaticPing: true})
	if err != nil {
		tb.Fatal(err)
	}
	if use {
		if err := db.Use(New(Config{Generators: keygen.Set{Default: keygen.Counting(1, 1)}})); err != nil {
			tb.Fatal(err)
		}
	}
	return db
}

// BenchmarkFill measures only the filling: the count of the rows without a key, one reservation,
// and the assignment.
func BenchmarkFill(b *testing.B) {
	const n = 1000
	db := dryDB(b, returning, false)
	list := make([]Parcel, n)
	stmt := db.Session(&gorm.Session{}).Model(&Parcel{}).Statement
	if err := stmt.Parse(&list); err != nil {
		b.Fatal(err)
	}
	stmt.Dest, stmt.ReflectValue = &list, reflect.ValueOf(&list).Elem()
	plans, err := (&Config{Generators: keygen.Set{Default: keygen.Counting(1, 1)}}).plans(db)
	if err != nil {
		b.Fatal(err)
	}
	r, err := rowsOf(stmt)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		clear(list)
		fl := plans.of(stmt.Schema).fillingOf(r)
		if err := fl.reserve(stmt); err != nil {
			b.Fatal(err)
		}
		if err := fl.assign(stmt, false); err != nil {
			b.Fatal(err)
		}
		fl.release()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
}

// BenchmarkCreate compares a create that is filled with one of rows that have their keys and
// without the plugin, up to the INSERT's text.
func BenchmarkCreate(b *testing.B) {
	for _, dialect := range []struct {
		name string
		gorm.Dialector
	}{{"returning", returning}, {"lastInsertID", lastInsertID}} {
		for _, n := range []int{1, 1000} {
			for _, filled := range []bool{false, true} {
				name := dialect.name + "/" + strconv.Itoa(n) + "/" + map[bool]string{false: "preset", true: "filled"}[filled]
				b.Run(name, func(b *testing.B) { benchmarkCreate(b, dryDB(b, dialect.Dialector, filled), n, filled) })
			}
		}
	}
}

func benchmarkCreate(b *testing.B, db *gorm.DB, n int, filled bool) {
	b.Helper()
	list := make([]Parcel, n)
	dest := any(&list)
	if n == 1 {
		dest = &list[0]
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range list {
			list[i].ID = int64(i + 1)
			if filled {
				list[i].ID = 0
			}
		}
		if err := db.Create(dest).Error; err != nil {
			b.Fatal(err)
		}
	}
}

func TestFillingNeedsNoMemory(t *testing.T) {
	for _, dialector := range []gorm.Dialector{returning, lastInsertID} {
		perCreate := func(use bool) float64 {
			db := dryDB(t, dialector, use)
			list := make([]Parcel, 100)
			return testing.AllocsPerRun(50, func() {
				for i := range list {
					list[i].ID = int64(i + 1)
					if use {
						list[i].ID = 0
					}
				}
				if err := db.Create(&list).Error; err != nil {
					t.Error(err)
				}
			})
		}
		if preset, filled := perCreate(false), perCreate(true); filled > preset {
			t.Errorf("%s: %v allocations with keys that are there, %v with keys that are filled", dialector.Name(), preset, filled)
		}
	}
}

func TestTheCheckOfShardingKeysNeedsNoMemory(t *testing.T) {
	home, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = home.Close() }()
	m, err := sharding.Spread([]string{"db"}, 2, "parcels_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"db": home}, sharding.Table{Name: "parcels", Key: "weight", Rule: sharding.Low(10), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	list := make([]Parcel, 100)
	for i := range list {
		list[i].Weight = int64(1000 + i) // beyond the numbers that Go keeps boxed
	}
	stmt := dryDB(t, returning, false).Model(&Parcel{}).Statement
	if err := stmt.Parse(&list); err != nil {
		t.Fatal(err)
	}
	stmt.Dest, stmt.ReflectValue = &list, reflect.ValueOf(&list).Elem()
	r := &routing{router: router}
	check := func() error {
		_, err := r.keyed(stmt)
		return err
	}
	if got := testing.AllocsPerRun(50, func() {
		if err := check(); err != nil {
			t.Error(err)
		}
	}); got > 1 {
		t.Errorf("%v allocations for 100 rows", got)
	}
	list[99].Weight = 0
	if err := check(); !errors.Is(err, sharding.ErrMissingKey) {
		t.Errorf("a row without its key: %v", err)
	}
}
