// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"database/sql"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// foretold is a statement that the source serves, planned and bound.
type foretold struct {
	conn *conn
	plan *plan.Plan
	to   *plan.Route
	args []any
}

func foretell(t testing.TB, text string) *foretold {
	t.Helper()
	db, err := sql.Open("sqlite", "file::memory:")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1) // which has the tables
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, note TEXT)"); err != nil {
		t.Fatal(err)
	}
	m, err := sharding.Spread([]string{"main"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"main": db}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m},
		sharding.Migration{Source: "main", Tables: map[string]string{"orders": "id"}, Preview: new(sharding.Preview)})
	if err != nil {
		t.Fatal(err)
	}
	f := &foretold{conn: &conn{session{database: newDatabase(Config{Router: router, Home: db})}}, args: []any{int64(7)}}
	made, _, err := f.conn.planned(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	f.plan = made.Plan
	if f.to, err = f.plan.Bind(f.args, sharding.Hint{}); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		f.preview(t)
	}
	return f
}

func (f *foretold) preview(t testing.TB) {
	t.Helper()
	if err := f.conn.preview(t.Context(), f.plan, f.to, f.args, sharding.Hint{}); err != nil {
		t.Fatal(err)
	}
}

// foretoldTexts are statements by their outcome.
var foretoldTexts = map[string]string{
	"one shard":      "SELECT note FROM orders WHERE user_id = ?",
	"several shards": "SELECT note FROM orders WHERE id > ?",
	"refused":        "SELECT id, ROW_NUMBER() OVER () FROM orders WHERE note = ?",
}

func TestAStatementThatAPreviewKnowsAllocatesNothing(t *testing.T) {
	for name, text := range foretoldTexts {
		f := foretell(t, text)
		for _, s := range f.conn.database.migration.Preview.Statements() {
			if s.Change.String() != name {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if n := testing.AllocsPerRun(500, func() { f.preview(t) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkPreview(b *testing.B) {
	for name, text := range foretoldTexts {
		b.Run(name, func(b *testing.B) {
			f := foretell(b, text)
			b.ReportAllocs()
			ctx := b.Context()
			for b.Loop() {
				if err := f.conn.preview(ctx, f.plan, f.to, f.args, sharding.Hint{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
