// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
)

// moving is a source whose table of orders moves to two tables of the same file.
type moving struct {
	db     *sql.DB
	router *sharding.Router
	epoch  int
}

func newMoving(t *testing.T, patience time.Duration) *moving {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "source.db")+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	m := &moving{db: db}
	m.do(t, "CREATE TABLE orders (id INTEGER PRIMARY KEY)")
	m.do(t, "CREATE TABLE shardid_route (tbl TEXT PRIMARY KEY, job TEXT, epoch INTEGER, route TEXT)")
	m.router, err = sharding.New(sharding.DBs{"main": db}, ordersTable(t),
		sharding.Migration{Source: "main", Tables: map[string]string{"Orders": "id"}, Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ordersTable(t *testing.T) sharding.Table {
	t.Helper()
	m, err := sharding.Spread([]string{"main"}, 2, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	return sharding.Table{Name: "orders", Key: "id", Rule: sharding.Mod(2), Map: m}
}

func (m *moving) do(t *testing.T, statement string) {
	t.Helper()
	if _, err := m.db.ExecContext(context.Background(), statement); err != nil {
		t.Fatal(err)
	}
}

// flip stores in the next epoch that another database serves.
func (m *moving) flip(t *testing.T, route sharding.Route) {
	t.Helper()
	m.epoch++
	m.do(t, fmt.Sprintf("REPLACE INTO shardid_route VALUES ('orders', 'autumn', %d, '%s')", m.epoch, route))
}

func (m *moving) load(t *testing.T) *sharding.Snapshot {
	t.Helper()
	if err := m.router.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m.router.Snapshot()
}

// closed is the database's error for a missing table.
func (m *moving) closed(t *testing.T, table string) error {
	t.Helper()
	_, err := m.db.ExecContext(t.Context(), "UPDATE "+table+" SET id = id")
	if err == nil {
		t.Fatalf("%s is open", table)
	}
	return err
}

func (m *moving) wantTarget(t *testing.T, want string) {
	t.Helper()
	if got, err := m.router.Target("orders", 1); err != nil || got.String() != want {
		t.Errorf("key 1 is on %s (%v), want %s", got, err, want)
	}
}

func TestTablesOfAMigrationAreRefusedUntilTheirRouteIsRead(t *testing.T) {
	m := newMoving(t, time.Minute)
	if _, err := m.router.Target("orders", 1); !errors.Is(err, sharding.ErrRouteUnread) || !strings.Contains(err.Error(), "Router.Load") {
		t.Errorf("a key: %v", err)
	}
	if _, err := m.router.Snapshot().Everywhere("orders"); !errors.Is(err, sharding.ErrRouteUnread) {
		t.Errorf("all targets: %v", err)
	}
	if got := m.router.Targets("orders"); len(got) != 0 {
		t.Errorf("targets %v", got)
	}
	if _, _, err := m.router.Snapshot().Hinted("orders", sharding.Hint{On: sharding.Target{DB: "main", Table: "orders_1"}}); err == nil {
		t.Error("a hint reaches a shard that may not be open")
	}
	m.load(t)
	m.wantTarget(t, "main/orders")
}

func TestTheRouteChoosesBetweenSourceAndShards(t *testing.T) {
	m := newMoving(t, time.Minute)
	s := m.load(t)
	before, _ := s.Lookup("orders")
	if o := before.Origin(); o == nil || o.Target.String() != "main/orders" || o.Numbered != "id" {
		t.Errorf("origin %+v", o)
	}
	if all, err := s.Everywhere("ORDERS"); err != nil || fmt.Sprint(all) != "[main/orders]" {
		t.Errorf("all targets are %v, %v", all, err)
	}
	m.flip(t, sharding.OnShards)
	next, err := m.router.Moved(t.Context(), s, fakeNoTable("main.orders"))
	if err != nil {
		t.Fatal(err)
	}
	after, _ := next.Lookup("orders")
	if after.Origin() != nil || fmt.Sprint(next.Targets("orders")) != "[main/orders_0 main/orders_1]" {
		t.Errorf("after the switch: origin %v, targets %v", after.Origin(), next.Targets("orders"))
	}
	m.wantTarget(t, "main/orders_1")
	if got, err := s.Target("orders", 1); err != nil || got.Table != "orders" {
		t.Errorf("the old snapshot changed: %v, %v", got, err)
	}
}

// fakeNoTable is SQLite's error for a statement that came too late.
func fakeNoTable(table string) error {
	return errors.New("SQL logic error: no such table: " + table + " (1)")
}

func TestAStatementWaitsOnlyForAClosedTable(t *testing.T) {
	m := newMoving(t, time.Minute)
	s := m.load(t)
	other := errors.New("UNIQUE constraint failed: orders.id (1555)")
	for _, err := range []error{other, m.closed(t, "my_orders"), m.closed(t, "orders_archive"), fakeNoTable("orders")} { // without a job nobody has closed the last one
		if _, got := m.router.Moved(t.Context(), s, err); got != err { //nolint:errorlint // the very error
			t.Errorf("%v became %v", err, got)
		}
	}
	if got := m.router.Closed(s, other); got != other { //nolint:errorlint // the very error
		t.Errorf("in a transaction %v became %v", other, got)
	}
	if err := m.router.Closed(s, nil); err != nil {
		t.Errorf("success became %v", err)
	}
}

func TestStatementsWaitTogetherForTheNextRoute(t *testing.T) {
	m := newMoving(t, time.Minute)
	m.flip(t, sharding.OnSource)
	s := m.load(t)
	m.do(t, "ALTER TABLE orders RENAME TO orders_old")
	closed := m.closed(t, "orders")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			next, err := m.router.Moved(t.Context(), s, closed)
			if err != nil {
				t.Error(err)
				return
			}
			if at, err := next.Target("orders", 1); err != nil || at.Table != "orders_1" {
				t.Errorf("%v, %v", at, err)
			}
		})
	}
	testwait.Until(t, "somebody waits", m.router.Waiting)
	m.flip(t, sharding.OnShards)
	all.Wait()
	// A statement that was planned before and comes late need not wait.
	if next, err := m.router.Moved(t.Context(), s, closed); err != nil || next != m.router.Snapshot() {
		t.Errorf("%v, %v", next, err)
	}
}

func TestTheWaitEndsWithPatienceAndWithTheContext(t *testing.T) {
	m := newMoving(t, 20*time.Millisecond)
	m.flip(t, sharding.OnShards)
	s := m.load(t)
	closed := m.closed(t, "orders_1")
	_, err := m.router.Moved(t.Context(), s, closed)
	var moved *sharding.MovedError
	if !errors.As(err, &moved) || moved.Table != "orders" || moved.Waited < 20*time.Millisecond || !errors.Is(err, sharding.ErrRouteClosed) || !errors.Is(err, closed) {
		t.Errorf("patience: %v", err)
	}
	if !strings.Contains(err.Error(), "finish its switch or roll it back") {
		t.Errorf("no advice: %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := m.router.Moved(stopped, s, closed); !errors.Is(err, context.Canceled) || !errors.Is(err, sharding.ErrRouteClosed) {
		t.Errorf("context: %v", err)
	}
}

func TestRoutesOfALowerEpochAreNotFollowed(t *testing.T) {
	m := newMoving(t, 50*time.Millisecond)
	m.epoch = 7
	m.flip(t, sharding.OnShards)
	s := m.load(t)
	m.epoch = 3 // as a replica that is behind would say
	m.flip(t, sharding.OnSource)
	if _, err := m.router.Moved(t.Context(), s, m.closed(t, "orders_0")); !errors.Is(err, sharding.ErrRouteClosed) {
		t.Errorf("got %v", err)
	}
	m.do(t, "DELETE FROM shardid_route")
	if _, err := m.router.Moved(t.Context(), s, m.closed(t, "orders_0")); !errors.Is(err, sharding.ErrRouteClosed) {
		t.Errorf("without the row: %v", err)
	}
	m.wantTarget(t, "main/orders_1")
}

func TestAnAbortedJobAndTheNextOneAreFollowed(t *testing.T) {
	m := newMoving(t, time.Minute)
	m.epoch = 7
	m.flip(t, sharding.OnSource)
	s := m.load(t)
	m.do(t, "REPLACE INTO shardid_route VALUES ('orders', 'winter', 2, 'shards')")
	if _, err := m.router.Moved(t.Context(), s, fakeNoTable("orders")); err != nil {
		t.Fatal(err)
	}
	m.wantTarget(t, "main/orders_1")
}

func TestAnUnknownRouteIsNotWaitedFor(t *testing.T) {
	m := newMoving(t, time.Minute)
	m.flip(t, sharding.OnSource)
	s := m.load(t)
	m.flip(t, "mars")
	if _, err := m.router.Moved(t.Context(), s, fakeNoTable("orders")); !errors.Is(err, sharding.ErrRoute) {
		t.Errorf("got %v", err)
	}
	if err := newMovingOn(t, m.db).Load(t.Context()); !errors.Is(err, sharding.ErrRoute) {
		t.Errorf("Load: %v", err)
	}
}

func newMovingOn(t *testing.T, db *sql.DB) *sharding.Router {
	t.Helper()
	r, err := sharding.New(sharding.DBs{"main": db}, ordersTable(t), sharding.Migration{Source: "main", Tables: map[string]string{"orders": "id"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestATransactionThatFoundAClosedTableMakesTheNextOneWait(t *testing.T) {
	m := newMoving(t, time.Minute)
	m.flip(t, sharding.OnSource)
	s := m.load(t)
	m.do(t, "ALTER TABLE orders RENAME TO orders_old")
	err := m.router.Closed(s, m.closed(t, "orders"))
	var moved *sharding.MovedError
	if !errors.As(err, &moved) || !errors.Is(err, sharding.ErrRouteMoved) || !strings.Contains(err.Error(), "run the transaction again") {
		t.Errorf("got %v", err)
	}
	if again := m.router.Closed(s, err); again != err { //nolint:errorlint // the very error
		t.Errorf("wrapped twice: %v", again)
	}
	loaded := make(chan error)
	go func() { loaded <- m.router.Load(t.Context()) }()
	testwait.Until(t, "somebody waits", m.router.Waiting)
	m.flip(t, sharding.OnShards)
	if err := <-loaded; err != nil {
		t.Fatal(err)
	}
	m.wantTarget(t, "main/orders_1")
	if err := m.router.Load(t.Context()); err != nil {
		t.Errorf("a Load without reason: %v", err)
	}
}

func TestAStatementThatMissedTheLogOfAJobIsSentAgain(t *testing.T) {
	m := newMoving(t, time.Minute)
	s := m.load(t)
	missed := errors.New("Error 1146 (42S02): Table 'shop.shardid_log_orders' doesn't exist")
	if _, err := m.router.Moved(t.Context(), s, missed); err != missed { //nolint:errorlint // the very error
		t.Errorf("the log is not there: %v", err)
	}
	m.do(t, "CREATE TABLE shardid_log_orders (id INTEGER)")
	if next, err := m.router.Moved(t.Context(), s, missed); err != nil || next != s {
		t.Errorf("%v, %v", next, err)
	}
	if err := m.router.Closed(s, missed); !errors.Is(err, sharding.ErrRouteMoved) {
		t.Errorf("in a transaction: %v", err)
	}
	if err := m.router.Load(t.Context()); err != nil {
		t.Errorf("the next transaction: %v", err)
	}
}

func TestTheNextTransactionDoesNotWaitForATableThatIsNotMoving(t *testing.T) {
	m := newMoving(t, time.Minute)
	s := m.load(t)
	m.do(t, "DROP TABLE orders")
	if err := m.router.Closed(s, m.closed(t, "orders")); !errors.Is(err, sharding.ErrRouteMoved) {
		t.Error(err)
	}
	if err := m.router.Load(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAStatementDoesNotWaitForAnotherTableThatItsShardLacks(t *testing.T) {
	m := newMoving(t, time.Minute)
	m.flip(t, sharding.OnShards)
	s := m.load(t)
	lacks := fmt.Errorf("shard main/orders_1: %w", m.closed(t, "products"))
	short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := m.router.Moved(short, s, lacks); err != lacks { //nolint:errorlint // the very error
		t.Errorf("it became %v", err)
	}
	if err := m.router.Closed(s, lacks); err != lacks { //nolint:errorlint // the very error
		t.Errorf("in a transaction it became %v", err)
	}
}

func TestSwapKeepsTheRoute(t *testing.T) {
	m := newMoving(t, time.Minute)
	m.flip(t, sharding.OnSource)
	s := m.load(t)
	if err := m.router.Swap(map[string]sharding.Map{"orders": ordersTable(t).Map.At(5)}); err != nil {
		t.Fatal(err)
	}
	m.wantTarget(t, "main/orders")
	m.flip(t, sharding.OnShards)
	if _, err := m.router.Moved(t.Context(), s, fakeNoTable("orders")); err != nil {
		t.Fatal(err)
	}
	m.wantTarget(t, "main/orders_1")
	if got, _ := m.router.Table("orders"); got.Map.Version() != 5 {
		t.Errorf("version %d", got.Map.Version())
	}
}

func TestAllMistakesInAMigrationAreReportedAtOnce(t *testing.T) {
	items := ordersTable(t)
	items.Name, items.Group = "items", "shop"
	items.Map, _ = sharding.Spread([]string{"main"}, 2, "items_%d")
	orders := ordersTable(t)
	orders.Group = "shop"
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	bad := sharding.Migration{Source: "legacy", Patience: -1, Tables: map[string]string{"orders": "a\x00b", "users": ""}}
	_, err = sharding.New(sharding.DBs{"main": db}, orders, items, bad)
	for _, want := range []string{`Source: the router has no database "legacy"`, "Patience: -1ns", `"users": not a sharded table`, `"orders": column`, `"items" is not among them`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	_, err = sharding.New(sharding.DBs{"main": db}, orders, items, sharding.Migration{Source: "main"}, sharding.Migration{Source: "main"})
	for _, want := range []string{"Tables: is empty", "occurs twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
}

func TestLoadReportsThatTheSourceCannotBeRead(t *testing.T) {
	m := newMoving(t, time.Minute)
	m.do(t, "DROP TABLE shardid_route")
	m.do(t, "CREATE TABLE shardid_route (other TEXT)")
	if err := m.router.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "read the routes") {
		t.Errorf("got %v", err)
	}
	if _, err := m.router.Target("orders", 1); !errors.Is(err, sharding.ErrRouteUnread) {
		t.Errorf("got %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := m.router.Load(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
