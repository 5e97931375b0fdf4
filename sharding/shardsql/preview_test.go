// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/shardid/shardid/internal/testkit/changes"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testkit/selects"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// previewed is a source whose orders will move to four tables of two other databases.
type previewed struct {
	source, routed *sql.DB
	router         *sharding.Router
	preview        *sharding.Preview
}

func newPreviewed(t testing.TB, m sharding.Migration, mode sharding.TxMode, also ...sharding.Alt) *previewed {
	t.Helper()
	open := files(t)
	w := &previewed{source: open("source.db"), preview: m.Preview}
	const columns = " (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, note TEXT)"
	exec(t, w.source, "CREATE TABLE orders"+columns)
	exec(t, w.source, "CREATE TABLE coupons (code TEXT PRIMARY KEY)")
	exec(t, w.source, "CREATE TABLE shardid_route (tbl TEXT PRIMARY KEY, job TEXT, epoch INTEGER, route TEXT)")
	dbs := sharding.DBs{"source": w.source, "a": open("a.db"), "b": open("b.db")}
	layout := fourTables(t)
	for _, at := range layout.Targets() {
		exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+columns)
	}
	m.Source, m.Tables = "source", map[string]string{"orders": "id"}
	router, err := sharding.New(dbs, m, sharding.Transactions(mode), sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: layout, Also: also})
	if err != nil {
		t.Fatal(err)
	}
	w.router, w.routed = router, shardsql.OpenDB(shardsql.Config{Router: router, Home: w.source})
	t.Cleanup(func() { _ = w.routed.Close() })
	return w
}

// switches makes the shards serve.
func (w *previewed) switches(t *testing.T) {
	t.Helper()
	exec(t, w.source, "ALTER TABLE orders RENAME TO orders_old")
	exec(t, w.source, "INSERT INTO shardid_route VALUES ('orders', 'autumn', 1, 'shards')")
}

// find returns the preview of a statement.
func (w *previewed) find(text string) sharding.Previewed {
	for _, s := range w.preview.Statements() {
		if s.Text == text {
			return s
		}
	}
	return sharding.Previewed{}
}

func TestAPreviewListsWhatShardsWillExecuteOtherwise(t *testing.T) {
	w := newPreviewed(t, sharding.Migration{Preview: new(sharding.Preview)}, sharding.SingleShard)
	statements := map[string]struct {
		text string
		args []any
		want sharding.Change
		err  error
	}{
		"a key":              {"UPDATE orders SET note = ? WHERE user_id = ?", []any{"x", 7}, sharding.Unchanged, nil},
		"no key":             {"UPDATE orders SET note = ?", []any{"x"}, sharding.WillBeRefused, sharding.ErrMissingKey},
		"keys of two":        {"UPDATE orders SET note = ? WHERE user_id IN (?, …)", []any{"x", 1, 2}, sharding.WillBeRefused, sharding.ErrCrossDatabase},
		"rows of two":        {"SELECT note FROM orders WHERE user_id IN (?, …) ORDER BY id", []any{1, 2}, sharding.SeveralShards, nil},
		"all rows":           {"SELECT COUNT(*) FROM orders", nil, sharding.SeveralShards, nil},
		"not merged":         {"SELECT id, ROW_NUMBER() OVER (ORDER BY id) FROM orders", nil, sharding.WillBeRefused, sharding.ErrUnmergeable},
		"a subquery":         {"SELECT id FROM orders WHERE user_id > (SELECT COUNT(*) AS n FROM coupons WHERE rowid > ? GROUP BY code HAVING n > ? ORDER BY n)", []any{0, 5}, sharding.SeveralShards, nil},
		"an outer column":    {"SELECT id FROM orders WHERE user_id > (SELECT COUNT(*) FROM coupons WHERE code = note)", nil, sharding.WillBeRefused, sharding.ErrCrossShard},
		"a unique key":       {"INSERT INTO orders (id, user_id) VALUES (?, …) ON CONFLICT (id) DO NOTHING", []any{50, 7}, sharding.LooksFirst, nil},
		"the source numbers": {"INSERT INTO orders (user_id, note) VALUES (?, …)", []any{7, "new"}, sharding.WillBeRefused, sharding.ErrNotNumbered},
		"a definition":       {"CREATE INDEX by_note ON orders (note)", nil, sharding.WillBeRefused, sharding.ErrRawTable},
		"another table":      {"INSERT INTO coupons VALUES (?)", []any{"code"}, sharding.Unchanged, nil},
	}
	for name, s := range statements {
		exec(t, w.routed, strings.ReplaceAll(s.text, "…", "?"), s.args...)
		found := w.find(s.text)
		if found.Change != s.want || !errors.Is(found.Err, s.err) || found.Times != min(int64(s.want), 1) {
			t.Errorf("%s: %+v, want %s, %v", name, found, s.want, s.err)
		}
	}
	if n := one[int64](t, w.source, "SELECT COUNT(*) FROM orders"); n != 2 {
		t.Errorf("the source has %d rows", n)
	}
	for _, note := range []string{"a", "b", "c"} {
		exec(t, w.routed, "UPDATE orders SET note = '"+note+"'")
	}
	if found := w.find("UPDATE orders SET note = ?"); found.Times != 4 {
		t.Errorf("%+v", found)
	}
	before := w.preview.Statements()
	w.switches(t)
	if n := one[int64](t, w.routed, "SELECT COUNT(*) FROM orders"); n != 0 {
		t.Errorf("%d rows on shards", n)
	}
	if n := one[int64](t, w.routed, "SELECT COUNT(*) FROM orders"); n != 0 {
		t.Errorf("%d rows on shards", n)
	}
	after := w.preview.Statements()
	for i := range after {
		if before[i].Text == "SELECT COUNT(*) FROM orders" {
			before[i].Times++ // the one that met the closed table
		}
		if after[i].Text != before[i].Text || after[i].Times != before[i].Times {
			t.Errorf("%+v, after the switch %+v", before[i], after[i])
		}
	}
}

// The values may determine where a statement goes.
func TestAPreviewKeepsTheWorstOfAStatement(t *testing.T) {
	var told []sharding.Previewed
	w := newPreviewed(t, sharding.Migration{Preview: &sharding.Preview{Notify: func(p sharding.Previewed) { told = append(told, p) }}}, sharding.SingleShard)
	for _, users := range [][]any{{1, 5}, {1, 3}, {1, 2}, {1, 3}, {1, 5}} {
		exec(t, w.routed, "DELETE FROM orders WHERE user_id IN (?, ?)", users...)
	}
	var changes []sharding.Change
	for _, p := range told {
		changes = append(changes, p.Change)
	}
	if fmt.Sprint(changes) != "[several shards refused]" || !errors.Is(told[1].Err, sharding.ErrCrossDatabase) {
		t.Errorf("%v", told)
	}
	if found := w.find("DELETE FROM orders WHERE user_id IN (?, …)"); found.Times != 4 || found.Change != sharding.WillBeRefused {
		t.Errorf("%+v", found)
	}
}

// The strict source refuses exactly the statements that the shards refuse.
func TestPreviewsEqualTheOutcomesAfterTheSwitch(t *testing.T) {
	w := newPreviewedTwin(t)
	early := w.refusals(t)
	exec(t, w.source, "ALTER TABLE orders RENAME TO orders_old")
	exec(t, w.source, "REPLACE INTO shardid_route VALUES ('orders', 'autumn', 1, 'shards')")
	late, refused := w.refusals(t), 0
	for i := range early {
		if early[i].err != nil {
			refused++
		}
		if fmt.Sprint(early[i].sentinel()) != fmt.Sprint(late[i].sentinel()) {
			t.Errorf("%s %v:\nbefore the switch %v\nand after it %v", early[i].text, early[i].args, early[i].err, late[i].err)
		}
	}
	if t.Logf("%d of %d are refused", refused, len(early)); refused < len(early)/10 || refused > len(early)*9/10 {
		t.Error("too few, or too many")
	}
}

// newPreviewedTwin is a strict source with orders as those of a twin, and their shards.
func newPreviewedTwin(t *testing.T) *previewed {
	t.Helper()
	w := newTwin(t, 0)
	router, err := sharding.New(sharding.DBs{"source": w.one, "a": w.dbs["a"], "b": w.dbs["b"]},
		sharding.Migration{Source: "source", Tables: map[string]string{"orders": ""}, Strict: true},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: fourTables(t), Also: []sharding.Alt{{Column: "id", Rule: sharding.Mod(4), From: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	exec(t, w.one, "CREATE TABLE shardid_route (tbl TEXT PRIMARY KEY, job TEXT, epoch INTEGER, route TEXT)")
	exec(t, w.one, "INSERT INTO shardid_route VALUES ('orders', 'autumn', 0, 'source')")
	p := &previewed{source: w.one, routed: shardsql.OpenDB(shardsql.Config{Router: router, Home: w.one})}
	t.Cleanup(func() { _ = p.routed.Close() })
	return p
}

// refusal is the outcome of a statement.
type refusal struct {
	text string
	args []any
	err  *sharding.RouteError
}

// sentinel is the reason of a refusal, nil if the statement is not refused. Refusals that follow a
// search for rows are not known beforehand.
func (r refusal) sentinel() error {
	if r.err == nil || errors.Is(r.err, sharding.ErrKeyChange) && r.err.Op == "look-up" {
		return nil
	}
	sentinel := r.err.Err
	for next := errors.Unwrap(sentinel); next != nil; next = errors.Unwrap(sentinel) {
		sentinel = next
	}
	return sentinel
}

// refusals sends random queries and writes.
func (w *previewed) refusals(t *testing.T) (all []refusal) {
	t.Helper()
	statements := effort.Cases(600, 50_000)
	for seed := range uint64(statements) {
		random := rand.New(rand.NewPCG(seed, 9))
		r := refusal{}
		if query := selects.Random(random); seed%2 == 0 {
			r.text, r.args = query.Text, query.Args
		} else {
			m := changes.Maker{Rand: random, SQLite: true}
			s := m.Statement()
			r.text, r.args = s.Text, s.Args
		}
		ctx := t.Context()
		if seed%5 == 0 {
			ctx = sharding.AllShards(ctx)
		}
		if _, err := w.routed.ExecContext(ctx, r.text, r.args...); !errors.As(err, &r.err) {
			r.err = nil
		}
		all = append(all, r)
	}
	return all
}

func TestAPreviewFindsTransactionsThatWillSpanDatabases(t *testing.T) {
	const coupon, order, other = "INSERT INTO coupons VALUES (?)", "UPDATE orders SET note = ? WHERE user_id = ?", "DELETE FROM orders WHERE user_id = ?"
	for _, c := range []struct {
		mode  sharding.TxMode
		texts []string
		want  string // the statement that will be refused
	}{
		{sharding.SingleShard, []string{coupon, order}, order},
		{sharding.SingleShard, []string{order, coupon}, coupon},
		{sharding.SingleShard, []string{order, other}, other},
		{sharding.SingleShard, []string{order, order}, ""},
		{sharding.BestEffort, []string{coupon, order, other}, ""},
	} {
		w := newPreviewed(t, sharding.Migration{Preview: new(sharding.Preview)}, c.mode)
		for range 2 {
			tx, err := w.routed.Begin()
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range c.texts {
				args := map[string][]any{coupon: {"code"}, order: {"x", 6}, other: {7}}[text]
				exec(t, tx, text, args...)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
		}
		switch found := w.preview.Statements(); {
		case c.want == "" && len(found) == 0:
		case len(found) != 1 || found[0].Text != c.want || found[0].Times != 2 || !errors.Is(found[0].Err, sharding.ErrCrossDatabase):
			t.Errorf("%v: %+v", c.texts, found)
		}
	}
}

// An INSERT that leaves the ids to the source is checked as if it had them.
func TestAPreviewChecksRowsWithoutIDs(t *testing.T) {
	const insert = "INSERT INTO orders (user_id) VALUES "
	filled := writehint.With(t.Context(), writehint.Hint{Table: "orders", Fills: true})
	for _, c := range []struct {
		ctx  context.Context
		text string
		want error
	}{
		{filled, insert + "(1)", nil},
		{filled, insert + "(1), (3)", nil},
		{filled, insert + "(1), (2)", sharding.ErrCrossDatabase},
		{filled, "INSERT INTO orders (id, user_id) VALUES (NULL, 1), (NULL, 5)", nil},
		{filled, "INSERT INTO orders (id, user_id) VALUES (NULL, 1), (105, 5)", nil},
		{filled, "INSERT INTO orders (id, user_id) VALUES (NULL, 1), (106, 5)", sharding.ErrMisplaced},
		{filled, "INSERT INTO orders (id, user_id) VALUES (NULL, 1) ON CONFLICT (id) DO NOTHING", nil},
		{filled, "INSERT INTO orders (id, user_id) VALUES (NULL, 1), (NULL, 5) ON CONFLICT (id) DO NOTHING RETURNING id", nil},
		{filled, insert + "(1), (5) ON CONFLICT DO NOTHING RETURNING id", nil},
		{filled, "INSERT INTO orders (note) VALUES ('x')", sharding.ErrMissingKey},
		{filled, insert + "(NULL)", sharding.ErrKeyType},
		{t.Context(), insert + "(1), (3)", sharding.ErrNotNumbered},
		{t.Context(), insert + "(1), (2)", sharding.ErrCrossDatabase}, // with ids, too
	} {
		for _, also := range [][]sharding.Alt{nil, {{Column: "id", Rule: sharding.Mod(4), From: 100}}} {
			if want := c.want; want == sharding.ErrMisplaced && also == nil { //nolint:errorlint // the table's own value
				continue
			}
			w := newPreviewed(t, sharding.Migration{Preview: new(sharding.Preview)}, sharding.SingleShard, also...)
			if _, err := w.routed.ExecContext(c.ctx, c.text); err != nil && !strings.Contains(err.Error(), "NOT NULL") {
				t.Fatal(err)
			}
			var refusal error
			if found := w.preview.Statements(); len(found) > 0 {
				refusal = found[0].Err
			}
			if !errors.Is(refusal, c.want) {
				t.Errorf("%s: previewed %v, want %v", c.text, refusal, c.want)
			}
		}
	}
}

// A statement that is known already still determines the database of its transaction.
func TestAPreviewKnowsWhereAKnownStatementBegins(t *testing.T) {
	w := newPreviewed(t, sharding.Migration{Preview: new(sharding.Preview)}, sharding.SingleShard)
	const insert, other = "INSERT INTO orders (id, user_id) VALUES (?, ?)", "DELETE FROM orders WHERE user_id = ?"
	exec(t, w.routed, insert+", (?, ?)", 1, 1, 2, 2)
	tx, err := w.routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, insert, 3, 1)
	exec(t, tx, other, 2)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if found := w.find(other); !errors.Is(found.Err, sharding.ErrCrossDatabase) {
		t.Errorf("%+v", w.preview.Statements())
	}
}

// A program that starts while a switch has closed the source's table cannot read its
// columns, and waits for the shards.
// Before the switch, the source's table is the only target of such a loop.
func TestAPreviewTakesAStatementOnTheSourceAsOneOfALoopOverTargets(t *testing.T) {
	w := newPreviewed(t, sharding.Migration{Preview: new(sharding.Preview), Strict: true}, sharding.SingleShard)
	exec(t, w.routed, "INSERT INTO orders (user_id, note) VALUES (7, 'new')")
	const take = "UPDATE orders SET note = ? WHERE note = ?"
	loop := func(targets string) {
		t.Helper()
		all := w.router.Targets("orders")
		if got := fmt.Sprint(all); got != targets {
			t.Errorf("the targets are %s, want %s", got, targets)
		}
		for _, at := range all {
			on := sharding.On(t.Context(), at)
			if _, err := w.routed.ExecContext(on, take, "taken", "new"); err != nil {
				t.Errorf("on %s: %v", at, err)
			}
			tx := must(w.routed.BeginTx(on, nil))
			for _, text := range []string{"DELETE FROM orders WHERE note = 'old'", "UPDATE orders SET note = 'old' WHERE note = 'older'"} {
				if _, err := tx.ExecContext(on, text); err != nil {
					t.Errorf("in a transaction on %s: %v", at, err)
				}
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
		}
	}
	loop("[source/orders]")
	if found := w.find(take); found.Times != 0 {
		t.Errorf("the preview has %+v", found)
	}
	if n := one[int64](t, w.source, "SELECT COUNT(*) FROM orders WHERE note = 'taken'"); n != 1 {
		t.Errorf("%d rows of the source are taken", n)
	}
	w.switches(t)
	if n := one[int64](t, w.routed, "SELECT COUNT(*) FROM orders"); n != 0 { // reads the route
		t.Errorf("%d rows on shards", n)
	}
	loop("[a/orders_0 b/orders_1 a/orders_2 b/orders_3]")
	_, err := w.routed.ExecContext(sharding.On(t.Context(), sharding.Target{DB: "source", Table: "orders"}), take, "taken", "new")
	if !errors.Is(err, sharding.ErrCrossShard) || !strings.Contains(err.Error(), "Router.Targets lists the present ones") {
		t.Errorf("on the target of before: %v", err)
	}
}

func TestAStrictSourceThatIsClosedRefusesNothing(t *testing.T) {
	w := newPreviewedTwin(t)
	exec(t, w.source, "ALTER TABLE orders RENAME TO orders_old")
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := answer(t.Context(), w.routed, "SELECT paid, note FROM orders ORDER BY paid, note"); err != nil {
			t.Error(err)
		}
	})
	testwait.Until(t, "the query waits", func() bool { return w.routed.Stats().InUse == 1 })
	exec(t, w.source, "REPLACE INTO shardid_route VALUES ('orders', 'autumn', 1, 'shards')")
	wg.Wait()
}

func TestAStrictSourceRefusesWhatShardsWillRefuse(t *testing.T) {
	w := newPreviewed(t, sharding.Migration{Strict: true}, sharding.SingleShard)
	_, err := w.routed.Exec("UPDATE orders SET note = 'x'")
	var refusal *sharding.RouteError
	if !errors.As(err, &refusal) || !errors.Is(err, sharding.ErrMissingKey) || !strings.Contains(refusal.Hint, "Migration.Strict") || !strings.Contains(refusal.Hint, "add a condition on user_id") {
		t.Errorf("%v", err)
	}
	exec(t, w.routed, "INSERT INTO orders (user_id) VALUES (7)") // the generator must not number yet
	if _, err := w.routed.Exec("INSERT INTO orders (user_id) VALUES (1), (2)"); !errors.Is(err, sharding.ErrCrossDatabase) {
		t.Errorf("rows that no generator would bring together: %v", err)
	}
	exec(t, w.routed, "UPDATE orders SET note = 'x' WHERE user_id = 7")
	if n := one[int64](t, w.routed, "SELECT COUNT(*) FROM orders WHERE note = 'x'"); n != 1 {
		t.Errorf("%d rows", n)
	}
	exec(t, must(w.routed.Conn(t.Context())), "DELETE FROM orders WHERE user_id = 7")
	if _, err := w.routed.ExecContext(sharding.Unsharded(t.Context()), "DELETE FROM orders"); err != nil {
		t.Error(err)
	}
}

func must[T any](v T, _ error) T { return v }

func TestAPreviewIsSafeForConcurrentUse(t *testing.T) {
	w := newPreviewed(t, sharding.Migration{Preview: new(sharding.Preview)}, sharding.SingleShard)
	exec(t, w.routed, "SELECT id, 0 FROM orders WHERE user_id > ?", 0) // it is counted from when it was found
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				exec(t, w.routed, fmt.Sprintf("SELECT id, %d FROM orders WHERE user_id > ?", j), i)
				w.preview.Statements()
			}
		})
	}
	wg.Wait()
	if found := w.preview.Statements(); len(found) != 1 || found[0].Times != 401 {
		t.Errorf("%+v", found)
	}
}
