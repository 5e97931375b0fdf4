package gormplugin

import (
	"reflect"
	"strconv"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/keygen"
)

// Parcel has six columns, as tables often have.
type Parcel struct {
	ID                     int64 `keygen:""`
	Name, Street, City     string
	Weight, RecipientCount int64
}

// fillNothing opens gorm without a database, for what stands before it.
func fillNothing(tb testing.TB, use bool) *gorm.DB {
	tb.Helper()
	db, err := gorm.Open(mysql.New(mysql.Config{DSN: "nobody@tcp(nowhere)/none", SkipInitializeWithVersion: true}),
		&gorm.Config{Logger: logger.Discard, DryRun: true, SkipDefaultTransaction: true, DisableAutomaticPing: true})
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

// BenchmarkFill is the filling alone: the count of the rows without a key, one
// reservation, and the assignment.
func BenchmarkFill(b *testing.B) {
	const n = 1000
	db := fillNothing(b, false)
	rows := make([]Parcel, n)
	stmt := db.Session(&gorm.Session{}).Model(&Parcel{}).Statement
	if err := stmt.Parse(&rows); err != nil {
		b.Fatal(err)
	}
	stmt.Dest, stmt.ReflectValue = &rows, reflect.ValueOf(&rows).Elem()
	f, err := newFill(db, &Config{Generators: keygen.Set{Default: keygen.Counting(1, 1)}})
	if err != nil {
		b.Fatal(err)
	}
	p := f.plans.of(stmt.Schema)
	r, err := rowsOf(stmt)
	if err != nil {
		b.Fatal(err)
	}
	var fl filling
	b.ReportAllocs()
	for b.Loop() {
		for i := range rows {
			rows[i].ID = 0
		}
		fl.reset(p, r)
		if err := fl.reserve(stmt); err != nil {
			b.Fatal(err)
		}
		if err := fl.assign(stmt, false); err != nil {
			b.Fatal(err)
		}
		fl.forget()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
}

// BenchmarkCreate compares a create that is filled with one whose rows have
// their keys already, as far as the INSERT's text.
func BenchmarkCreate(b *testing.B) {
	for _, n := range []int{1, 1000} {
		for _, kind := range []string{"preset", "filled"} {
			b.Run(kind+"/"+strconv.Itoa(n), func(b *testing.B) {
				db := fillNothing(b, kind == "filled")
				rows := make([]Parcel, n)
				b.ReportAllocs()
				for b.Loop() {
					for i := range rows {
						rows[i].ID = 0
						if kind == "preset" {
							rows[i].ID = int64(i + 1)
						}
					}
					var err error
					if n == 1 {
						err = db.Create(&rows[0]).Error
					} else {
						err = db.Create(&rows).Error
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
