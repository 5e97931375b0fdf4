// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/internal/testkit/corpus"
	"github.com/shardid/shardid/internal/testkit/testshards"
	"github.com/shardid/shardid/sharding"
)

// acceptance reads the statements of applications, with their expected outcomes.
func acceptance(t *testing.T) []corpus.File {
	t.Helper()
	files, err := corpus.ReadDir("testdata/acceptance")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The corpus only grows: a change of an expectation would change a promise of the engine.
func TestNearlyAllEverydayStatementsAreExpectedToBeAccepted(t *testing.T) {
	var all, with, without int
	for _, f := range acceptance(t) {
		var fileWith, fileWithout int
		for _, s := range f.Statements {
			if s.With != corpus.Refused {
				fileWith++
			}
			if s.Without != corpus.Refused {
				fileWithout++
			}
		}
		t.Logf("%s: %d statements, %d accepted with ids that carry the slot, %d without", f.Name, len(f.Statements), fileWith, fileWithout)
		all, with, without = all+len(f.Statements), with+fileWith, without+fileWithout
	}
	if all < 180 {
		t.Errorf("the corpus has %d statements, want at least 180", all)
	}
	if with*100 < all*95 {
		t.Errorf("%d of %d statements are accepted with ids that carry the slot, want at least 95 %%", with, all)
	}
	if without*100 < all*85 {
		t.Errorf("%d of %d statements are accepted without such ids, want at least 85 %%", without, all)
	}
	t.Logf("together: %d statements, %.1f %% with, %.1f %% without", all, share(with, all), share(without, all))
}

func share(part, all int) float64 { return 100 * float64(part) / float64(all) }

func TestEveryStatementOfTheCorpusIsSQL(t *testing.T) {
	for _, f := range acceptance(t) {
		t.Run(f.Name, func(t *testing.T) {
			db := open(t)
			if err := f.CreateTables(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			for _, s := range f.Statements {
				if !s.For(corpus.SQLite) {
					continue
				}
				if err := s.Try(t.Context(), db); err != nil {
					t.Errorf("%s.sql:%d: %s: %v", f.Name, s.Line, s.Name, err)
				}
			}
		})
	}
}

func open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "all.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestTheTablesOfTheCorpusMakeARouter(t *testing.T) {
	for _, f := range acceptance(t) {
		for _, carry := range []bool{true, false} {
			r := routerOf(t, f, carry)
			for _, table := range f.Tables {
				_, sharded := r.Table(table.Name)
				if want := table.Placement == corpus.Sharded; sharded != want {
					t.Errorf("%s: table %s is sharded: %v, want %v", f.Name, table.Name, sharded, want)
				}
			}
		}
	}
}

// routerOf returns the router of the expectations.
func routerOf(t *testing.T, f corpus.File, carry bool) *sharding.Router {
	t.Helper()
	return testshards.RouterOf(t, f, sharding.DBs{"db0": open(t), "db1": open(t)}, carry)
}

// An expectation of "one" would prove nothing if its ids led to other shards.
func TestTheRowsOfTheCorpusLieWhereItsExpectationsSay(t *testing.T) {
	seen := 0
	for _, f := range acceptance(t) {
		for _, carry := range []bool{true, false} {
			r := routerOf(t, f, carry)
			for _, s := range f.Statements {
				rows := rowsOf(s)
				if len(rows) == 0 {
					continue
				}
				table, sharded := r.Table(rows[0].table)
				if !sharded {
					continue
				}
				seen++
				expectRows(t, fmt.Sprintf("%s.sql:%d, carry %v", f.Name, s.Line, carry), &table, rows, outcomeOf(s, carry))
			}
		}
	}
	if seen < 60 {
		t.Errorf("%d inserts were looked at, want at least 60", seen)
	}
}

func outcomeOf(s corpus.Statement, carry bool) corpus.Outcome {
	if carry {
		return s.With
	}
	return s.Without
}

type row struct {
	table  string
	values map[string]any
}

var insert = regexp.MustCompile("(?s)^(?:INSERT|REPLACE)(?: IGNORE)? INTO `?(\\w+)`? \\(([^)]*)\\) VALUES ")

// rowsOf returns the rows of an INSERT whose values are all parameters.
func rowsOf(s corpus.Statement) []row {
	m := insert.FindStringSubmatch(s.Text)
	if m == nil {
		return nil
	}
	columns := strings.FieldsFunc(m[2], func(r rune) bool { return strings.ContainsRune("`, ", r) })
	var rows []row
	for args := s.Args; len(args) >= len(columns); args = args[len(columns):] {
		values := map[string]any{}
		for i, column := range columns {
			values[column] = args[i]
		}
		rows = append(rows, row{m[1], values})
	}
	return rows
}

func expectRows(t *testing.T, where string, table *sharding.Table, rows []row, want corpus.Outcome) {
	t.Helper()
	slots, dbs := map[sharding.Slot]bool{}, map[string]bool{}
	for _, row := range rows {
		slot, err := table.Rule.Slot(row.values[table.Key])
		if err != nil {
			if want != corpus.Refused {
				t.Errorf("%s: %s: %v, want %s", where, table.Key, err, want)
			}
			return
		}
		target, _ := table.Map.Target(slot)
		slots[slot], dbs[target.DB] = true, true
		expectCarried(t, where, table, row, slot)
	}
	if (want == corpus.One && len(slots) > 1) || (want == corpus.Refused && len(dbs) == 1) {
		t.Errorf("%s: %d rows lie in %d slots of %d databases, and the statement is %s", where, len(rows), len(slots), len(dbs), want)
	}
}

func expectCarried(t *testing.T, where string, table *sharding.Table, row row, want sharding.Slot) {
	t.Helper()
	for _, alt := range table.Also {
		if slot, err := alt.Rule.Slot(row.values[alt.Column]); err != nil || slot != want {
			t.Errorf("%s: %s %v carries slot %d (%v), and the key leads to %d", where, alt.Column, row.values[alt.Column], slot, err, want)
		}
	}
}
