// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
)

func TestRowsAndTheirReferencesGetNewIDs(t *testing.T) {
	for name, ids := range modes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSales(t, ids(), 200)
			stop := s.write(t)
			j := s.job(t)
			mustRun(t, j)
			if _, err := j.Cutover(t.Context(), longPause); err != nil {
				t.Fatal(err)
			}
			t.Log(stop(), "changes")
			s.compare(t, "_old", "")
		})
	}
}

func TestARunWithNewIDsThatIsCutOffAtAnyStepIsResumed(t *testing.T) {
	for name, ids := range modes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSales(t, ids(), 60)
			stop := s.write(t)
			for _, step := range steps {
				ctx, cancel := context.WithCancel(t.Context())
				var once sync.Once
				j := s.job(t, func(c *migrate.Config) {
					c.Observe = func(at migrate.Step) {
						if at.Name == step {
							once.Do(cancel)
						}
					}
				})
				if err := thereAndBack(ctx, j); err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", step, err)
				}
				cancel()
			}
			stop()
			j := s.job(t)
			if err := thereAndBack(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			mustRun(t, j)
			if _, err := j.Cutover(t.Context(), longPause); err != nil {
				t.Fatal(err)
			}
			if _, err := j.Rollback(t.Context(), longPause); err != nil {
				t.Fatal(err)
			}
			mustRun(t, j)
			s.compare(t, "", "_sealed")
		})
	}
}

func TestVerifyComparesThroughNewIDs(t *testing.T) {
	for name, ids := range modes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSales(t, ids(), 150)
			j := s.job(t, func(c *migrate.Config) { c.ChunkRows = 5 })
			mustRun(t, j)
			if v := verify(t, j); !v.Clean() || v.Rows != 600 {
				t.Errorf("%+v", v)
			}
			id := s.newID(t)
			at := func(tbl int, old int64, text string) {
				// the row lies on one of the shards; the statement does nothing on the others
				for slot := range 4 {
					exec(t, s.shards[[]string{"a", "b"}[slot%2]], fmt.Sprintf(text, fmt.Sprintf("%s_%02d", salesTables[tbl].name, slot), id(tbl, old)))
				}
			}
			at(0, 9, "DELETE FROM %s WHERE id = %d")
			at(1, 10, "UPDATE %s SET what = 'other' WHERE id = %d")
			at(2, 11, "UPDATE %s SET line_id = line_id + 1 WHERE id = %d")
			unnoted(t, s.source, "shardid_invoices_s3_del", "DELETE FROM papers WHERE id = 12")
			found := map[string]bool{}
			v := verify(t, j)
			for _, d := range v.Divergences {
				found[fmt.Sprintf("%s %d: %s", d.Table, d.ID, d.Kind)] = true
			}
			for _, want := range []string{"invoices 9: missing", "lines 10: different", "tags 11: different", "papers 12: extra"} {
				if !found[want] {
					t.Errorf("not found: %s, in %v", want, v.Divergences)
				}
			}
			mustRun(t, j) // they are written again
			s.compare(t, "", "")
			if v := verify(t, j); !v.Clean() {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestWhatTheShardsGetAfterTheSwitchComesBackUnderOldIDs(t *testing.T) {
	for name, ids := range modes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSales(t, ids(), 100)
			j := s.job(t)
			mustRun(t, j)
			if _, err := j.Cutover(t.Context(), longPause); err != nil {
				t.Fatal(err)
			}
			id := s.newID(t)
			made := func(old int64) int64 { // as the application would
				if name == "map table" {
					return 9_000_000 + old
				}
				n, err := s.ids.New(old)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			exec(t, s.shards["b"], fmt.Sprintf("INSERT INTO invoices_01 (id, customer_id, code, twin_id) VALUES (%d, 1, 'born', %d)", made(500), id(0, 1)))
			exec(t, s.shards["b"], fmt.Sprintf("INSERT INTO lines_01 (id, invoice_id, what) VALUES (%d, %d, 'born')", made(501), made(500)))
			exec(t, s.shards["b"], fmt.Sprintf("INSERT INTO lines_01 (id, invoice_id, what) VALUES (%d, %d, 'added')", made(502), id(0, 1)))
			exec(t, s.shards["b"], fmt.Sprintf("UPDATE invoices_01 SET code = 'changed' WHERE id = %d", id(0, 1)))
			exec(t, s.shards["b"], fmt.Sprintf("DELETE FROM invoices_01 WHERE id = %d", id(0, 14)))
			exec(t, s.shards["b"], fmt.Sprintf("DELETE FROM lines_01 WHERE invoice_id = %d", id(0, 14)))
			if v := verify(t, j); v.Clean() && v.Unsettled == 0 {
				t.Errorf("nothing is under way: %+v", v)
			}
			if _, err := j.Rollback(t.Context(), longPause); err != nil {
				t.Fatal(err)
			}
			for query, want := range map[string]int64{
				"SELECT COUNT(*) FROM invoices WHERE id = 1 AND code = 'changed' AND customer_id = 1":                                             1,
				"SELECT COUNT(*) FROM invoices WHERE id = 14":                                                                                     0,
				"SELECT COUNT(*) FROM lines WHERE invoice_id = 14":                                                                                0,
				"SELECT COUNT(*) FROM invoices WHERE code = 'born' AND twin_id = 1":                                                               1,
				"SELECT COUNT(*) FROM lines l JOIN invoices i ON i.id = l.invoice_id WHERE l.what = 'born' AND i.code = 'born'":                   1,
				"SELECT COUNT(*) FROM lines WHERE what = 'added' AND invoice_id = 1":                                                              1,
				"SELECT COUNT(*) FROM invoices":                                                                                                   100,
				"SELECT COUNT(*) FROM pragma_foreign_key_check WHERE \"table\" = 'lines' AND rowid IN (SELECT id FROM lines WHERE what = 'born')": 0,
			} {
				if got := count(t, s.source, query); got != want {
					t.Errorf("%s: %d, not %d", query, got, want)
				}
			}
			exec(t, s.source, "INSERT INTO invoices (customer_id, code) VALUES (5, 'next')") // gets an id of its own
			exec(t, s.source, "DELETE FROM tags WHERE line_id NOT IN (SELECT id FROM lines)")
			mustRun(t, j)
			if v := verify(t, j); !v.Clean() {
				t.Errorf("%+v", v)
			}
			s.compare(t, "", "_sealed")
			if _, err := j.Cutover(t.Context(), longPause); err != nil {
				t.Fatal(err)
			}
			s.compare(t, "_old", "")
		})
	}
}

func TestARowOfTheShardsWithoutAnOldIDStaysThere(t *testing.T) {
	s := newSales(t, migrate.Affine(10, 3), 20)
	j := s.job(t)
	mustRun(t, j)
	if _, err := j.Cutover(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	exec(t, s.shards["b"], "INSERT INTO invoices_01 (id, customer_id) VALUES (777777, 1)")
	var row *migrate.RowError
	_, err := j.Rollback(t.Context(), longPause)
	if !errors.As(err, &row) || row.ID != 777777 || !errors.Is(err, migrate.ErrNoID) || !errors.Is(err, migrate.ErrNotReady) {
		t.Fatalf("got %v", err)
	}
	exec(t, s.shards["b"], "DELETE FROM invoices_01 WHERE id = 777777")
	if _, err := j.Rollback(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	mustRun(t, j)
	s.compare(t, "", "_sealed")
}

// unnoted executes a statement without a trigger.
func unnoted(t *testing.T, db *sql.DB, trigger, statement string) {
	t.Helper()
	var create string
	if err := db.QueryRow("SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?", trigger).Scan(&create); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "DROP TRIGGER "+trigger)
	exec(t, db, statement)
	exec(t, db, create)
}
