// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// shop is two databases with orders and items by user_id, and a home database.
type shop struct {
	router *sharding.Router
	home   *sql.DB
	dbs    sharding.DBs
	routed *sql.DB
}

// files opens databases of new files in one directory.
func files(t testing.TB) (open func(name string) *sql.DB) {
	t.Helper()
	return filesWaiting(t, 10*time.Second)
}

// filesWaiting is files whose writers wait this long for each other.
func filesWaiting(t testing.TB, busy time.Duration) (open func(name string) *sql.DB) {
	t.Helper()
	dir := t.TempDir()
	return func(name string) *sql.DB {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, name)+fmt.Sprintf("?_pragma=journal_mode(WAL)&_pragma=busy_timeout(%d)", busy.Milliseconds())+"&_pragma=synchronous(off)&_pragma=foreign_keys(1)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
}

func newShop(t testing.TB) *shop {
	t.Helper()
	open := files(t)
	s := &shop{home: open("home.db"), dbs: sharding.DBs{"a": open("a.db"), "b": open("b.db")}}
	var tables []sharding.Table
	for _, name := range []string{"orders", "items"} {
		m, err := sharding.Spread([]string{"a", "b"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range m.Targets() {
			exec(t, s.dbs[at.DB], "CREATE TABLE "+at.Table+" (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, note TEXT)")
		}
		tables = append(tables, sharding.Table{Name: name, Key: "user_id", Rule: sharding.Mod(4), Map: m, Group: "shop"})
	}
	for _, db := range []*sql.DB{s.home, s.dbs["a"], s.dbs["b"]} {
		exec(t, db, "CREATE TABLE countries (code TEXT PRIMARY KEY)")
	}
	exec(t, s.home, "CREATE TABLE coupons (code TEXT PRIMARY KEY, used INTEGER NOT NULL DEFAULT 0)")
	var err error
	if s.router, err = sharding.New(s.dbs, sharding.Tables(tables...), sharding.Broadcast("countries")); err != nil {
		t.Fatal(err)
	}
	s.routed = shardsql.OpenDB(shardsql.Config{Router: s.router, Home: s.home})
	t.Cleanup(func() { _ = s.routed.Close() })
	return s
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func exec(t testing.TB, on execer, query string, args ...any) sql.Result {
	t.Helper()
	r, err := on.ExecContext(context.Background(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return r
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func one[T any](t testing.TB, on querier, query string, args ...any) (v T) {
	t.Helper()
	if err := on.QueryRowContext(context.Background(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func TestARowIsWrittenReadChangedAndDeletedByItsKey(t *testing.T) {
	s := newShop(t)
	for user := range int64(8) {
		exec(t, s.routed, "INSERT INTO orders (id, user_id, note) VALUES (?, ?, ?)", 100+user, user, "new")
		if n := one[int64](t, s.dbs[[]string{"a", "b"}[user%2]], "SELECT COUNT(*) FROM orders_"+string(rune('0'+user%4))+" WHERE user_id = ?", user); n != 1 {
			t.Errorf("user %d: %d rows on its shard", user, n)
		}
	}
	if note := one[string](t, s.routed, "SELECT orders.note FROM orders WHERE orders.user_id = ? AND orders.id = ?", 6, 106); note != "new" {
		t.Error(note)
	}
	r := exec(t, s.routed, "UPDATE orders SET note = ? WHERE user_id = ?", "paid", 6)
	if n, err := r.RowsAffected(); n != 1 || err != nil {
		t.Error(n, err)
	}
	if note := one[string](t, s.routed, "SELECT note FROM orders WHERE user_id = ?", 6); note != "paid" {
		t.Error(note)
	}
	exec(t, s.routed, "DELETE FROM orders WHERE user_id = ?", 6)
	if n := one[int64](t, s.routed, "SELECT COUNT(*) FROM orders WHERE user_id = ?", 6); n != 0 {
		t.Error(n)
	}
}

func TestATableThatTheRouterDoesNotKnowIsAtHome(t *testing.T) {
	s := newShop(t)
	exec(t, s.routed, "INSERT INTO coupons (code) VALUES (?)", "X")
	if n := one[int64](t, s.home, "SELECT COUNT(*) FROM coupons"); n != 1 {
		t.Error(n)
	}
	if n := one[int64](t, s.routed, "SELECT 1"); n != 1 {
		t.Error(n)
	}
}

func TestWhatCannotBeRoutedIsRefusedBeforeAnythingIsSent(t *testing.T) {
	s := newShop(t)
	for query, want := range map[string]error{
		"UPDATE orders SET note = 'x'":                                 sharding.ErrMissingKey,
		"INSERT INTO orders (id) VALUES (1)":                           sharding.ErrMissingKey,
		"UPDATE orders SET user_id = 2 WHERE user_id = 1":              sharding.ErrKeyChange,
		"DROP TABLE orders":                                            sharding.ErrRawTable,
		"INSERT INTO orders (id, user_id) SELECT 1, code FROM coupons": sharding.ErrMissingKey,
	} {
		if _, err := s.routed.Exec(query); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", query, err, want)
		}
	}
}

func TestATransactionBeginsOnTheDatabaseOfItsFirstStatement(t *testing.T) {
	s := newShop(t)
	tx, err := s.routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO orders (id, user_id) VALUES (1, 5)")
	exec(t, tx, "INSERT INTO items (id, user_id) VALUES (1, 7)") // of another table of the same database
	if _, err := tx.Exec("INSERT INTO orders (id, user_id) VALUES (2, 6)"); !errors.Is(err, sharding.ErrCrossDatabase) {
		t.Errorf("a statement for the other database: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n := one[int64](t, s.routed, "SELECT COUNT(*) FROM orders WHERE user_id = 5"); n != 0 {
		t.Errorf("%d rows after the rollback", n)
	}
	tx, err = s.routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO orders (id, user_id) VALUES (1, 5)")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := one[int64](t, s.routed, "SELECT COUNT(*) FROM orders WHERE user_id = 5"); n != 1 {
		t.Errorf("%d rows after the commit", n)
	}
}

func TestAnEmptyTransactionOnAClosedPoolFails(t *testing.T) {
	s := newShop(t)
	if err := s.home.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.routed.Ping(); err == nil {
		t.Error("Ping succeeds")
	}
	tx, err := s.routed.Begin()
	if err != nil {
		return
	}
	if err := tx.Commit(); err == nil {
		t.Error("Commit succeeds")
	}
}

func TestNoConnectionStaysInUse(t *testing.T) {
	s := newShop(t)
	for _, db := range s.dbs {
		db.SetMaxOpenConns(1)
	}
	st, err := s.routed.Prepare("SELECT COUNT(*) FROM orders WHERE user_id = ?")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	for i := range 20 {
		exec(t, s.routed, "INSERT INTO orders (id, user_id) VALUES (?, 5)", i)
		firstOfMany(t, s.routed)
		var n int
		if err := st.QueryRow(5).Scan(&n); err != nil || n != i+1 {
			t.Fatal(n, err)
		}
		if err := s.routed.QueryRow("SELECT nothing FROM orders WHERE user_id = 5").Scan(&n); err == nil {
			t.Fatal("a column that is not there")
		}
	}
	for name, db := range s.dbs {
		if n := db.Stats().InUse; n != 0 {
			t.Errorf("database %s: %d connections in use", name, n)
		}
	}
}

func TestASessionAtHomeGoesOnOnAConn(t *testing.T) {
	s := newShop(t)
	c, err := s.routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, c, "CREATE TEMP TABLE mine (n INTEGER)")
	exec(t, c, "INSERT INTO mine VALUES (7)")
	exec(t, c, "INSERT INTO orders (id, user_id) VALUES (1, 5)") // of a shard, in between
	if n := one[int64](t, c, "SELECT n FROM mine"); n != 7 {
		t.Error(n)
	}
	tx, err := c.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO mine VALUES (8)")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := one[int64](t, c, "SELECT COUNT(*) FROM mine"); n != 2 {
		t.Errorf("%d rows after a transaction", n)
	}
	if n := s.home.Stats().InUse; n != 1 {
		t.Errorf("%d connections of the home database are in use", n)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_ = one[int64](t, s.routed, "SELECT COUNT(*) FROM coupons")
	}
	if n := s.home.Stats().InUse; n != 0 {
		t.Errorf("%d connections of the home database are in use when nobody uses it", n)
	}
}

// firstOfMany reads one row and leaves the others.
func firstOfMany(t *testing.T, db *sql.DB) {
	t.Helper()
	rows, err := db.Query("SELECT id FROM orders WHERE user_id = 5")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() || rows.Err() != nil {
		t.Fatal("no row", rows.Err())
	}
}

func BenchmarkARowByItsKey(b *testing.B) {
	s := newShop(b)
	exec(b, s.routed, "INSERT INTO orders (id, user_id, note) VALUES (1, 5, 'x')")
	for name, run := range map[string]struct {
		db   *sql.DB
		text string
	}{
		"plain":  {s.dbs["b"], "SELECT id, user_id, note FROM orders_1 WHERE user_id = ? AND id = ?"},
		"routed": {s.routed, "SELECT id, user_id, note FROM orders WHERE user_id = ? AND id = ?"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var id, user int64
				var note string
				if err := run.db.QueryRow(run.text, 5, 1).Scan(&id, &user, &note); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestNamedArgumentsMayComeInAnyOrder(t *testing.T) {
	s := newShop(t)
	exec(t, s.routed, "INSERT INTO orders (id, user_id, note) VALUES (:id, :user, :note)", sql.Named("note", "x"), sql.Named("user", 2), sql.Named("id", 5))
	if n := one[int64](t, s.dbs["a"], "SELECT COUNT(*) FROM orders_2 WHERE user_id = 2 AND id = 5"); n != 1 {
		t.Errorf("%d rows where user 2 belongs", n)
	}
	exec(t, s.routed, "INSERT INTO orders (id, user_id, note) VALUES (:id, :user, 'twice')", sql.Named("id", 6), sql.Named("id", 6), sql.Named("user", 3))
	if note := one[string](t, s.routed, "SELECT note FROM orders WHERE user_id = 3 AND id = 6"); note != "twice" {
		t.Error(note)
	}
	if note := one[string](t, s.routed, "SELECT note FROM orders WHERE id = :id AND user_id = :user", sql.Named("user", 2), sql.Named("id", 5)); note != "x" {
		t.Error(note)
	}
}

func TestTheRefusalOfAStatementForTwoDatabasesSaysWhatItsKindNeeds(t *testing.T) {
	w := newShop(t)
	all := sharding.AllShards(t.Context())
	const spans = "transaction spans databases: this statement writes to database a and to database b; "
	const or = ", or let transactions span databases with sharding.Transactions, Atomic or BestEffort"
	const target = "send it once for each target of Router.Targets, with the context sharding.On(ctx, target)"
	for text, want := range map[string]string{
		"INSERT INTO orders (id, user_id) VALUES (1, 5), (2, 6)": "sharding: insert orders refused: " + spans + "insert the rows of each database with a statement of their own, grouped by Router.Target" + or,
		"UPDATE orders SET note = 'x' WHERE user_id IN (5, 6)":   "sharding: update orders refused: " + spans + "add a condition on the sharding key that leads to one database, or send one statement for each database, with the keys grouped by Router.Target" + or,
		"UPDATE orders SET note = 'x' WHERE note = 'y'":          "sharding: update orders refused: " + spans + target + or,
		"DELETE FROM orders WHERE note = 'y'":                    "sharding: delete orders refused: " + spans + target + or,
	} {
		if _, err := w.routed.ExecContext(all, text); err == nil || err.Error() != want {
			t.Errorf("%s:\n%v\nwant\n%s", text, err, want)
		}
	}
}
