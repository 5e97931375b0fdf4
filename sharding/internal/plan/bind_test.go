// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// byKey is the plan of the SELECT by key that GORM writes.
func byKey(tb testing.TB) *plan.Plan {
	tb.Helper()
	return ofOrders(tb, "SELECT * FROM `orders` WHERE `orders`.`user_id` = ? AND `orders`.`id` = ? ORDER BY `orders`.`id` LIMIT 1")
}

// ofOrders returns the plan of a text for orders in four tables.
func ofOrders(tb testing.TB, text string) *plan.Plan {
	tb.Helper()
	return ofTables(tb, text, 4)
}

// ofTables is ofOrders for another number of tables.
func ofTables(tb testing.TB, text string, tables int) *plan.Plan {
	tb.Helper()
	m, err := sharding.Spread([]string{"a", "b"}, tables, "orders_%d")
	if err != nil {
		tb.Fatal(err)
	}
	dbs := sharding.DBs{"a": closed(tb), "b": closed(tb)}
	r, err := sharding.New(dbs, sharding.Tables(sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(tables), Map: m}))
	if err != nil {
		tb.Fatal(err)
	}
	st := sqlparse.Parse(text, sqlparse.Dialect{Family: sqlparse.MySQL})
	return plan.Of(st, r.Snapshot(), analysis.Options{Quote: func(name string) string { return "`" + name + "`" }})
}

func bind(p *plan.Plan, args []any) {
	if to, err := p.Bind(args, sharding.Hint{}); err != nil || to.Target.Table != "orders_1" {
		panic(err)
	}
}

func TestBindingAPlanAgainAllocatesNothing(t *testing.T) {
	p, args := byKey(t), []any{int64(5), int64(7)}
	if n := testing.AllocsPerRun(100, func() { bind(p, args) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A text may go to a thousand tables. Each of its routes is made once, and is not copied for each of the others.
func TestTheWorkForTheRoutesOfAPlanGrowsWithTheirNumber(t *testing.T) {
	allocated := func(shards int64) uint64 {
		p := ofTables(t, "SELECT id FROM orders WHERE user_id = ?", int(shards))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for key := range 4 * shards {
			if to, err := p.Bind([]any{key / 2}, sharding.Hint{}); err != nil || to.Kind != plan.One {
				t.Fatal(to, err)
			}
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := allocated(64), allocated(1024); many > 3*16*few {
		t.Errorf("%d bytes for 64 routes, %d for 1024", few, many)
	}
}

// SQLite sorts bytes after all numbers, even bytes that are digits.
func TestBytesDoNotBoundARangeOfIntegers(t *testing.T) {
	w := newWorld(t)
	st := sqlparse.Parse("SELECT * FROM accounts WHERE id BETWEEN ? AND ?", sqlparse.Dialect{Family: sqlparse.SQLite})
	p := plan.Of(st, w.router.Snapshot(), analysis.Options{Quote: func(name string) string { return name }})
	for _, end := range []struct {
		high any
		want int
	}{{int64(150), 1}, {[]byte("150"), 3}} {
		to, err := p.Bind([]any{int64(110), end.high}, sharding.Hint{})
		targets := 1
		if to.Kind == plan.Scatter {
			targets = len(to.Shards.Targets)
		}
		if err != nil || targets != end.want {
			t.Errorf("up to %v of %[1]T: %d targets, %v, want %d", end.high, targets, err, end.want)
		}
	}
}

func BenchmarkBind(b *testing.B) {
	const many = 1000
	rows := ofOrders(b, "INSERT INTO orders (id, user_id, note) VALUES (?, ?, ?)"+strings.Repeat(", (?, ?, ?)", many-1))
	values := make([]any, 0, 3*many)
	for i := range many {
		values = append(values, int64(i), int64(5), "x")
	}
	for _, of := range []struct {
		name string
		plan *plan.Plan
		args []any
	}{{"key", byKey(b), []any{int64(5), int64(7)}}, {"1000 rows", rows, values}} {
		b.Run(of.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bind(of.plan, of.args)
			}
		})
	}
}

// closed is a database that is never queried.
func closed(tb testing.TB) *sql.DB {
	tb.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

func TestARefusalSaysThatAColumnDoesNotStoreTimesAsItsRuleExpects(t *testing.T) {
	w := newWorld(t)
	st := sqlparse.Parse("DELETE FROM events WHERE at < ?", sqlparse.Dialect{Family: sqlparse.SQLite})
	p := plan.Of(st, w.router.Snapshot(), analysis.Options{
		Quote:  func(name string) string { return name },
		Schema: catalog.Schema{"events": {Columns: map[string]catalog.Column{"at": {}}}},
	})
	_, err := p.Bind([]any{time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}, sharding.Hint{})
	if !errors.Is(err, sharding.ErrMissingKey) || !strings.Contains(err.Error(), "at is not a column of times with the precision of its rule") {
		t.Error(err)
	}
}

func TestARefusalNamesTheValueThatLeadsToNoShard(t *testing.T) {
	w := newWorld(t)
	st := sqlparse.Parse("DELETE FROM accounts WHERE name <> 'x' AND (id = ? OR id IN (4, ?))", sqlparse.Dialect{Family: sqlparse.SQLite})
	p := plan.Of(st, w.router.Snapshot(), analysis.Options{Quote: func(name string) string { return name }})
	for want, args := range map[string][]any{
		`no sharding key: the value of id leads to no shard: "7up": not a sharding key; an integer is expected; add a condition on id`: {int64(5), "7up"},
		`no sharding key: the argument for id is missing; add a condition on id`:                                                       {int64(5)},
	} {
		_, err := p.Bind(args, sharding.Hint{})
		var refusal *sharding.RouteError
		if !errors.As(err, &refusal) || !errors.Is(err, sharding.ErrMissingKey) || !strings.Contains(err.Error(), want) || strings.Contains(refusal.Reason(), "7up") {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}
