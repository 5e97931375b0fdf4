// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"testing"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// idle expects that no connection of the shop's databases, nor of the routed one, is in use.
func (s *shop) idle(t testing.TB) {
	t.Helper()
	for name, db := range map[string]*sql.DB{"home": s.home, "a": s.dbs["a"], "b": s.dbs["b"], "routed": s.routed} {
		testwait.Until(t, "no connection of "+name+" is in use", func() bool { return db.Stats().InUse == 0 })
	}
}

// narrow gives each database one connection.
func (s *shop) narrow() *shop {
	s.home.SetMaxOpenConns(1)
	s.dbs["a"].SetMaxOpenConns(1)
	s.dbs["b"].SetMaxOpenConns(1)
	return s
}

const fewOrders = "INSERT INTO orders (id, user_id, note) VALUES (1, 5, 'x'), (5, 5, 'y'), (9, 5, 'z')"

func TestASessionAsksHomeOnTheConnectionThatItHolds(t *testing.T) {
	s := newShop(t).narrow()
	c, err := s.routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, c, "INSERT INTO coupons (code) VALUES ('x')")
	ctx := within(t)
	if err := c.PingContext(ctx); err != nil {
		t.Errorf("Ping: %v", err)
	}
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Errorf("an empty transaction: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	s.idle(t)
}

// The transaction may itself wait for a connection of the query.
func TestAQueryOfSeveralShardsDoesNotNeedAConnectionThatATransactionHolds(t *testing.T) {
	s := newShop(t)
	exec(t, s.routed, fewOrders)
	for _, db := range s.dbs {
		db.SetMaxOpenConns(2)
	}
	tx, err := s.routed.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "UPDATE orders SET note = 'w' WHERE user_id = 5")
	var n int
	ctx := within(t)
	rows, err := s.routed.QueryContext(ctx, "SELECT id FROM orders")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		n++
	}
	if err := errors.Join(rows.Err(), tx.Rollback()); err != nil || n != 3 {
		t.Errorf("%d rows, %v", n, err)
	}
	s.idle(t)
}

// Another statement may wait for the connection while the rows of the query are read.
func TestASubqueryAtHomeLeavesItsConnectionBeforeItsQueryIsSent(t *testing.T) {
	s := newShop(t).narrow()
	exec(t, s.routed, fewOrders)
	exec(t, s.routed, "CREATE TABLE users (id INTEGER PRIMARY KEY)")
	exec(t, s.routed, "INSERT INTO users VALUES (5), (6)")
	c, err := s.routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, on := range map[string]interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}{"a pool": s.routed, "a connection": c} {
		func() {
			rows, err := on.QueryContext(within(t), "SELECT id FROM orders WHERE user_id IN (SELECT id FROM users WHERE id > (SELECT COUNT(*) FROM items))")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = rows.Close() }()
			if !rows.Next() {
				t.Errorf("%s: no row: %v", name, rows.Err())
			}
			if n := s.home.Stats().InUse; n != 0 {
				t.Errorf("%s: %d connections at home are in use", name, n)
			}
		}()
	}
	exec(t, c, "CREATE TEMP TABLE found (id INTEGER)") // this one stays
	if n := one[int](t, c, "SELECT COUNT(*) FROM orders WHERE user_id IN (SELECT id FROM found)"); n != 0 {
		t.Errorf("%d orders of nobody", n)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	s.idle(t)
}

func TestAnEmptyTransactionWaitsNoLongerThanItsContext(t *testing.T) {
	s := newShop(t).narrow()
	_ = one[int64](t, s.routed, "SELECT COUNT(*) FROM coupons")
	taken, err := s.home.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tx, err := s.routed.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- tx.Commit() }()
	testwait.Until(t, "Commit waits", func() bool { return s.home.Stats().WaitCount > 0 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Commit: %v", err)
	}
	if err := taken.Close(); err != nil {
		t.Error(err)
	}
	s.idle(t)
}

// The first statement asks the home database for its properties. The next statement waits for the
// result, but not longer than its context.
func TestAStatementWaitsForAnotherOnesQueryNoLongerThanItsContext(t *testing.T) {
	s := newShop(t).narrow()
	taken, err := s.home.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan error, 1)
	go func() {
		_, err := s.routed.Exec("INSERT INTO orders (id, user_id) VALUES (1, 5)")
		asked <- err
	}()
	testwait.Until(t, "the first statement waits", func() bool { return s.home.Stats().WaitCount > 0 })
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() {
		_, err := s.routed.ExecContext(ctx, "INSERT INTO orders (id, user_id) VALUES (2, 5)")
		second <- err
	}()
	testwait.Until(t, "the second one waits", func() bool { return s.routed.Stats().InUse == 2 })
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("the second one: %v", err)
	}
	if err := taken.Close(); err != nil {
		t.Error(err)
	}
	if err := <-asked; err != nil {
		t.Errorf("the first one: %v", err)
	}
	s.idle(t)
}

// reversed is a shop whose home database is b, which therefore comes before a, and whose parts are
// in b before a.
func reversed(t *testing.T) *shop {
	t.Helper()
	s := newShop(t)
	items, err := sharding.Spread([]string{"b", "a"}, 4, "parts_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range items.Targets() {
		exec(t, s.dbs[at.DB], "CREATE TABLE "+at.Table+" (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL)")
	}
	router, err := sharding.New(s.dbs, sharding.Tables(tablesOf(s.router)...), sharding.Broadcast("countries"), sharding.Transactions(sharding.BestEffort),
		sharding.Table{Name: "parts", Key: "user_id", Rule: sharding.Mod(4), Map: items})
	if err != nil {
		t.Fatal(err)
	}
	s.routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: s.dbs["b"]})
	t.Cleanup(func() { _ = s.routed.Close() })
	return s.narrow()
}

// Two statements that each hold a database which the other one needs would wait for ever.
func TestStatementsAcquireTheirDatabasesInOneOrder(t *testing.T) {
	for name, text := range map[string]string{
		"a query of orders":  "SELECT COUNT(*) FROM orders WHERE note = 'x'",
		"a query of parts":   "SELECT COUNT(*) FROM parts WHERE id = 7",
		"an insert":          "INSERT INTO parts (id, user_id) VALUES (100, 0), (101, 1)",
		"a write of copies":  "INSERT INTO countries (code) VALUES ('CH')",
		"copies, with rows":  "INSERT INTO countries (code) VALUES ('AT') RETURNING code",
		"a delete of orders": "DELETE FROM orders WHERE user_id IN (1, 2, 3, 4)",
	} {
		t.Run(name, func(t *testing.T) {
			s := reversed(t)
			_ = one[int64](t, s.routed, "SELECT COUNT(*) FROM orders WHERE note = 'x'")
			_ = one[int64](t, s.routed, "SELECT COUNT(*) FROM parts WHERE id = 7")
			exec(t, s.routed, "DELETE FROM countries WHERE code = 'CH'")
			before := s.dbs["b"].Stats().WaitCount
			taken, err := s.dbs["b"].Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				rows, err := s.routed.Query(text)
				if err == nil {
					for rows.Next() {
					}
					err = errors.Join(rows.Err(), rows.Close()) //nolint:sqlclosecheck // its error is wanted
				}
				done <- err
			}()
			testwait.Until(t, "it waits for b", func() bool { return s.dbs["b"].Stats().WaitCount > before })
			if n := s.dbs["a"].Stats().InUse; n != 0 {
				t.Errorf("it holds %d connections of b while it waits for b", n)
			}
			if err := taken.Close(); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			s.idle(t)
		})
	}
}

// statements are of each kind of a shop, with the first of several rows.
var statements = map[string]string{
	"one shard":      "SELECT id FROM orders WHERE user_id = 5",
	"several shards": "SELECT id FROM orders ORDER BY id",
	"groups":         "SELECT note, COUNT(*) FROM orders GROUP BY note",
	"home":           "SELECT code FROM coupons",
	"a broadcast":    "SELECT code FROM countries",
	"a write":        "UPDATE orders SET note = 'w' WHERE user_id = 5 RETURNING id",
}

func filled(t *testing.T) *shop {
	t.Helper()
	s := newShop(t).narrow()
	exec(t, s.routed, fewOrders)
	exec(t, s.routed, "INSERT INTO orders (id, user_id) VALUES (3, 3), (7, 3), (2, 1)")
	exec(t, s.routed, "INSERT INTO coupons (code) VALUES ('x'), ('y'), ('z')")
	for _, db := range []*sql.DB{s.home, s.dbs["a"], s.dbs["b"]} {
		exec(t, db, "INSERT INTO countries (code) VALUES ('x'), ('y'), ('z')")
	}
	return s
}

type rowsQuerier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func TestRowsThatAreNotReadReleaseTheirConnections(t *testing.T) {
	ways := map[string]func(t *testing.T, cancel func(), rows *sql.Rows){
		"closed after the first": func(_ *testing.T, _ func(), _ *sql.Rows) {},
		"cancelled after the first": func(t *testing.T, cancel func(), rows *sql.Rows) {
			t.Helper()
			cancel()
			for rows.Next() {
			}
			if err := rows.Err(); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("after the end of the context: %v", err)
			}
		},
	}
	for name, text := range statements {
		for way, leave := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				s := filled(t)
				for _, on := range []func(ctx context.Context) (rowsQuerier, func() error){
					func(context.Context) (rowsQuerier, func() error) { return s.routed, func() error { return nil } },
					func(context.Context) (rowsQuerier, func() error) {
						c, err := s.routed.Conn(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						return c, c.Close
					},
					func(ctx context.Context) (rowsQuerier, func() error) {
						tx, err := s.routed.BeginTx(ctx, nil)
						if err != nil {
							t.Fatal(err)
						}
						return tx, tx.Rollback
					},
					func(context.Context) (rowsQuerier, func() error) {
						st := prepare(t, s.routed, text)
						return always{st}, func() error { return nil }
					},
				} {
					ctx, cancel := context.WithCancel(within(t))
					db, end := on(ctx)
					rows, err := db.QueryContext(ctx, text)
					if err != nil {
						if errors.Is(err, sharding.ErrCrossDatabase) { // several shards in a transaction of one database
							_ = end()
							cancel()
							continue
						}
						t.Fatal(err)
					}
					if !rows.Next() {
						t.Fatal("no row", rows.Err())
					}
					leave(t, cancel, rows)
					if err := rows.Close(); err != nil { //nolint:sqlclosecheck // as above
						t.Errorf("Close: %v", err)
					}
					if err := end(); err != nil && !errors.Is(err, sql.ErrTxDone) {
						t.Errorf("the end: %v", err)
					}
					cancel()
					s.idle(t)
				}
			})
		}
	}
}

// always is a prepared statement for any text.
type always struct{ *sql.Stmt }

func (a always) QueryContext(ctx context.Context, _ string, args ...any) (*sql.Rows, error) {
	return a.Stmt.QueryContext(ctx, args...)
}

func TestClosingTheDatabaseLeavesNothingBehindOpenRows(t *testing.T) {
	for name, text := range statements {
		t.Run(name, func(t *testing.T) {
			s := filled(t)
			rows, err := s.routed.Query(text)
			if err != nil {
				t.Fatal(err)
			}
			if !rows.Next() {
				t.Fatal("no row", rows.Err())
			}
			if err := s.routed.Close(); err != nil {
				t.Error(err)
			}
			if err := rows.Close(); err != nil { //nolint:sqlclosecheck // as above
				t.Error(err)
			}
			s.idle(t)
		})
	}
}

func TestRowsOfSeveralStatementsAreReadSideBySideInATransaction(t *testing.T) {
	s := filled(t)
	tx, err := s.routed.BeginTx(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	first := prepare(t, s.routed, "SELECT id FROM orders WHERE user_id = ? ORDER BY id")
	a, err := tx.StmtContext(t.Context(), first).Query(5) //nolint:sqlclosecheck,rowserrcheck // with tx
	if err != nil {
		t.Fatal(err)
	}
	b, err := tx.Query("SELECT id FROM orders WHERE user_id IN (5, 3) ORDER BY id") //nolint:rowserrcheck,sqlclosecheck // with tx, and some are read
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, rows := range []*sql.Rows{a, b, a, b, a, b} {
		var id int64
		if !rows.Next() || rows.Scan(&id) != nil {
			t.Fatal("a row is missing", rows.Err())
		}
		got = append(got, id)
	}
	if want := []int64{1, 1, 5, 3, 9, 5}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if err := tx.Commit(); err != nil { // with rows that are not read
		t.Error(err)
	}
	s.idle(t)
}

func TestAStatementBesideItsOwnRowsWaitsNoLongerThanItsContext(t *testing.T) {
	for name, text := range statements {
		t.Run(name, func(t *testing.T) {
			s := filled(t)
			rows, err := s.routed.Query(text)
			if err != nil {
				t.Fatal(err)
			}
			if !rows.Next() {
				t.Fatal("no row", rows.Err())
			}
			ctx, cancel := context.WithCancel(t.Context())
			waits := func() (n int64) {
				return s.home.Stats().WaitCount + s.dbs["a"].Stats().WaitCount + s.dbs["b"].Stats().WaitCount
			}
			before, done := waits(), make(chan error, 1)
			go func() {
				other, err := s.routed.QueryContext(ctx, text)
				if err == nil { // the rows of writes are in memory
					err = errors.Join(other.Err(), other.Close()) //nolint:sqlclosecheck // as above
				}
				done <- err
			}()
			testwait.Until(t, "it waits, or has ended", func() bool { return waits() > before || len(done) > 0 })
			waited := len(done) == 0
			cancel()
			if err = <-done; waited && errors.Is(err, context.Canceled) {
				err = nil
			}
			if err = errors.Join(err, rows.Close()); err != nil { //nolint:sqlclosecheck // as above
				t.Error(err)
			}
			s.idle(t)
		})
	}
}

var errValuer = errors.New("a Valuer that panics")

type panicking struct{}

func (panicking) Value() (driver.Value, error) { panic(errValuer) }

func TestAValuerThatPanicsLeavesNoConnectionInUse(t *testing.T) {
	s := filled(t)
	for _, text := range []string{
		"UPDATE orders SET note = ? WHERE user_id = 5",
		"UPDATE orders SET note = ? WHERE user_id IN (5, 3)",
		"UPDATE coupons SET used = ?",
		"DELETE FROM countries WHERE code = ?",
	} {
		func() {
			defer func() {
				if r := recover(); r != errValuer { //nolint:errorlint // as it was raised
					t.Errorf("%s: %v", text, r)
				}
			}()
			_, err := s.routed.Exec(text, panicking{})
			t.Errorf("%s: %v", text, err)
		}()
		s.idle(t)
	}
}

// The connection went back to the home database's pool, and a later statement was executed in the transaction and lost with it.
func TestADiscardedConnectionEndsTheTransactionThatATextBegan(t *testing.T) {
	s := newShop(t).narrow()
	c, err := s.routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, c, "BEGIN")
	exec(t, c, "INSERT INTO coupons (code) VALUES ('lost')")
	if err := c.Raw(func(any) error { return driver.ErrBadConn }); !errors.Is(err, driver.ErrBadConn) {
		t.Error(err)
	}
	if n := one[int](t, s.routed, "SELECT COUNT(*) FROM coupons WHERE code = 'lost'"); n != 0 {
		t.Errorf("%d rows of the transaction are read", n)
	}
	if _, err := s.routed.Exec("COMMIT"); err == nil {
		t.Error("the transaction goes on")
	}
	s.idle(t)
}
