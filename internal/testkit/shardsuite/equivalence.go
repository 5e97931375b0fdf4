// SPDX-License-Identifier: Apache-2.0

package shardsuite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// form is a use of gorm in one of the forms that gorm accepts.
type form struct {
	name string
	run  func(*gorm.DB) (any, error)
	// refused says that sharded tables refuse it, even with AllShards and BestEffort.
	refused bool
}

// equivalence runs all forms on sharded tables and on whole tables with the same initial rows. A
// form that is not refused must return the same result and leave the same rows. A refused form must
// change nothing.
func equivalence(t *testing.T, d Databases) {
	for _, prepared := range []bool{false, true} {
		t.Run(fmt.Sprint("prepared ", prepared), func(t *testing.T) {
			s := open(t, d, sharding.FanOutReads, sharding.Transactions(sharding.BestEffort))
			w := openWhole(s, d)
			sharded := s.with(sharding.AllShards).Session(&gorm.Session{PrepareStmt: prepared})
			for _, f := range forms() {
				t.Run(f.name, func(t *testing.T) {
					of := *s
					of.t = t
					of.compare(f, sharded, w)
				})
			}
		})
	}
}

// whole is unsharded tables.
type whole struct {
	*gorm.DB

	home *sql.DB
}

// openWhole creates tables in the home database with the rows of the shop.
func openWhole(s *shop, d Databases) *whole {
	s.t.Helper()
	w := &whole{home: s.home}
	var err error
	if w.DB, err = gorm.Open(d.Dialector(s.home), &gorm.Config{Logger: logger.Discard, DisableForeignKeyConstraintWhenMigrating: true}); err != nil {
		s.t.Fatal(err)
	}
	if err := w.AutoMigrate(&Order{}, &Item{}); err != nil {
		s.t.Fatal(err)
	}
	if err := w.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1000, 1)}})); err != nil {
		s.t.Fatal(err)
	}
	var orders []Order
	s.ok(s.Preload("Items").Order("id").Find(&orders))
	s.ok(w.Create(&orders))
	return w
}

func (s *shop) compare(f form, sharded *gorm.DB, w *whole) {
	s.t.Helper()
	before := s.rows()
	got, err := f.run(sharded)
	var refusal *sharding.RouteError
	if refused := errors.As(err, &refusal); refused != f.refused {
		s.t.Fatalf("refused %t: %v", refused, err)
	}
	if f.refused {
		s.same(s.rows(), before)
		return
	}
	want, wantErr := f.run(w.DB)
	s.same(kindOf(err), kindOf(wantErr))
	s.same(printed(got), printed(want))
	s.same(s.rows(), w.rows(s.t))
}

// kindOf returns the comparable part of an error: its text names the table.
func kindOf(err error) string {
	switch {
	case err == nil:
		return "no error"
	case errors.Is(err, gorm.ErrRecordNotFound), errors.Is(err, gorm.ErrMissingWhereClause), errors.Is(err, gorm.ErrInvalidTransaction):
		return err.Error()
	}
	return "an error"
}

func printed(answer any) string {
	text, err := json.Marshal(answer)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// rows returns the rows of all physical tables.
func (s *shop) rows() string {
	s.t.Helper()
	var all []string
	for table, columns := range columnsOf {
		for _, target := range s.router.Targets(table) {
			all = append(all, rowsIn(s.t, s.router.DB(target.DB), table, target.Table, columns)...)
		}
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

func (w *whole) rows(t *testing.T) string {
	t.Helper()
	var all []string
	for table, columns := range columnsOf {
		all = append(all, rowsIn(t, w.home, table, table, columns)...)
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

var columnsOf = map[string]string{"orders": "id, user_id, note", "items": "id, order_id, sku"}

// rowsIn reads the physical table of a logical one.
func rowsIn(t *testing.T, db *sql.DB, logical, table, columns string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT "+columns+" FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Error(err)
		}
	}()
	for rows.Next() {
		var id, of sql.NullInt64
		var text sql.NullString
		if err := rows.Scan(&id, &of, &text); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %d %v %q\n", logical, id.Int64, of, text.String))
	}
	return all
}
