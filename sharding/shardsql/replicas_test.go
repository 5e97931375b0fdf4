// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// copied is a shop whose database b has two replicas. The notes of rows say where they were read:
// "b", "first" and "second".
func copied(t *testing.T) *sql.DB {
	t.Helper()
	_, routed, _ := copiedShop(t)
	return routed
}

// copiedShop also returns the shop and the replicas.
func copiedShop(t *testing.T) (s *shop, routed *sql.DB, pools []*sql.DB) {
	t.Helper()
	s = newShop(t)
	open := files(t)
	for _, name := range []string{"first", "second"} {
		pool := open(name)
		pools = append(pools, pool)
		for _, table := range []string{"orders_1", "orders_3"} {
			exec(t, pool, "CREATE TABLE "+table+" (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, note TEXT)")
		}
		exec(t, pool, "INSERT INTO orders_1 VALUES (5, 5, ?)", name)
	}
	exec(t, s.dbs["b"], "INSERT INTO orders_1 VALUES (5, 5, 'b')")
	exec(t, s.dbs["a"], "INSERT INTO orders_0 VALUES (4, 4, 'a')")
	routed = shardsql.OpenDB(shardsql.Config{Router: s.router, Home: s.home, Replicas: map[string][]*sql.DB{"b": pools, "a": nil}})
	t.Cleanup(func() { _ = routed.Close() })
	return s, routed, pools
}

const noteOf5 = "SELECT note FROM orders WHERE user_id = 5"

func TestReadsGoToReplicasInTurn(t *testing.T) {
	routed := copied(t)
	for _, query := range []string{noteOf5, "SELECT MAX(note) FROM orders WHERE id = 5"} {
		read := map[string]int{}
		for range 4 {
			read[one[string](t, routed, query)]++
		}
		if read["first"] != 2 || read["second"] != 2 {
			t.Errorf("%s: read from %v", query, read)
		}
	}
	if from := one[string](t, routed, "SELECT note FROM orders WHERE user_id = 4"); from != "a" {
		t.Errorf("a database without replicas was read from %q", from)
	}
}

type contextual struct {
	querier
	ctx context.Context
}

func (c contextual) QueryRowContext(_ context.Context, query string, args ...any) *sql.Row {
	return c.querier.QueryRowContext(c.ctx, query, args...)
}

func TestReadsThatMustNotGoToReplicasGoToTheDatabase(t *testing.T) {
	routed := copied(t)
	tx, err := routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{
		"transaction":       one[string](t, tx, noteOf5),
		"several shards":    one[string](t, tx, "SELECT MAX(note) FROM orders WHERE user_id IN (5, 7)"),
		"primary":           one[string](t, contextual{routed, sharding.Primary(t.Context())}, noteOf5),
		"primary, all":      one[string](t, contextual{routed, sharding.Primary(t.Context())}, "SELECT MAX(note) FROM orders"),
		"rows of an UPDATE": one[string](t, tx, "UPDATE orders SET note = note WHERE user_id = 5 RETURNING note"),
	} {
		if got != "b" {
			t.Errorf("%s: read from %q", name, got)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	exec(t, routed, "UPDATE orders SET note = note || '!' WHERE user_id = 5")
	if got := one[string](t, routed, "DELETE FROM orders WHERE user_id = 5 RETURNING note"); got != "b!" {
		t.Errorf("a DELETE returned what %q has", got)
	}
}

// While a slot is shared, its rows have come to their database, or will come, a short time before they are read there.
func TestRowsOfASlotThatMovesAreNotReadFromReplicas(t *testing.T) {
	s, routed, _ := copiedShop(t)
	orders, _ := s.router.Table("orders")
	items, _ := s.router.Table("items")
	const noteOf7 = "SELECT note FROM orders WHERE user_id = 7"
	exec(t, routed, "INSERT INTO orders (id, user_id, note) VALUES (7, 7, 'b')")
	read := func(shared []sharding.Slot) (of5, of7, ofBoth string) {
		if err := s.router.Swap(map[string]sharding.Map{"orders": orders.Map.At(orders.Map.Version() + 1).Sharing(shared...), "items": items.Map.At(items.Map.Version() + 1).Sharing(shared...)}); err != nil {
			t.Fatal(err)
		}
		orders, _ = s.router.Table("orders")
		items, _ = s.router.Table("items")
		return one[string](t, routed, noteOf5), one[string](t, routed, "SELECT COALESCE(("+noteOf7+"), 'lacks 7')"), one[string](t, routed, "SELECT MIN(note) FROM orders WHERE user_id IN (5, 7)")
	}
	if of5, of7, ofBoth := read([]sharding.Slot{1}); of5 != "b" || of7 == "b" || ofBoth != "b" {
		t.Errorf("while slot 1 is shared: 5 was read from %q, 7 from %q, both from %q", of5, of7, ofBoth)
	}
	if of5, of7, ofBoth := read(nil); of5 == "b" || of7 == "b" || ofBoth == "b" {
		t.Errorf("afterwards: 5 was read from %q, 7 from %q, both from %q", of5, of7, ofBoth)
	}
}

// A slot of orders has moved to b: only a copy of b whose shard_fence is that of b has its rows.
func TestACopyThatLacksAMoveIsNotRead(t *testing.T) {
	const noAnswer = "DROP TABLE shard_fence; CREATE VIEW shard_fence AS SELECT abs(-9223372036854775808) AS fenced, 4 AS version" // an overflow
	for name, c := range map[string]struct {
		own, copied string // statements on shard_fence of each
		want        string // where orders are read
		down        int    // how often the observer is told
	}{
		"both have it":                 {"INSERT INTO shard_fence VALUES (0, 4)", "INSERT INTO shard_fence VALUES (0, 4)", "copy", 0},
		"the copy lags":                {"INSERT INTO shard_fence VALUES (0, 4)", "INSERT INTO shard_fence VALUES (0, 3)", "b", 0},
		"the copy lacks the deletion":  {"INSERT INTO shard_fence VALUES (2, 4)", "INSERT INTO shard_fence VALUES (1, 4)", "b", 0},
		"the copy has no fence yet":    {"INSERT INTO shard_fence VALUES (0, 4)", "DROP TABLE shard_fence", "b", 0},
		"the copy may not be asked":    {"INSERT INTO shard_fence VALUES (0, 4)", noAnswer, "b", 1},
		"the database has none":        {"DROP TABLE shard_fence", "DROP TABLE shard_fence", "copy", 0},
		"the database cannot be asked": {noAnswer, "INSERT INTO shard_fence VALUES (0, 4)", "b", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			exec(t, s.dbs["b"], "INSERT INTO orders_1 VALUES (5, 5, 'b')")
			other := files(t)("copy")
			exec(t, other, "CREATE TABLE orders_1 (id BIGINT, user_id BIGINT, note TEXT)")
			exec(t, other, "INSERT INTO orders_1 VALUES (5, 5, 'copy')")
			for db, change := range map[*sql.DB]string{s.dbs["b"]: c.own, other: c.copied} {
				exec(t, db, "CREATE TABLE shard_fence (fenced INT, version BIGINT)")
				exec(t, db, change)
			}
			orders, _ := s.router.Table("orders")
			items, _ := s.router.Table("items")
			valid := func() bool { return true }
			if err := s.router.Swap(map[string]sharding.Map{"orders": orders.Map.While(valid).At(4), "items": items.Map.While(valid).At(4)}); err != nil {
				t.Fatal(err)
			}
			var downs []error
			observer := shardsql.Observer{ReplicaDown: func(_ context.Context, _ string, _ int, err error) { downs = append(downs, err) }}
			routed := shardsql.OpenDB(shardsql.Config{Router: s.router, Home: s.home, Replicas: map[string][]*sql.DB{"b": {other}}, Observer: observer})
			t.Cleanup(func() { _ = routed.Close() })
			for range 3 {
				if from := one[string](t, routed, noteOf5); from != c.want {
					t.Errorf("read from %q, want %q", from, c.want)
				}
			}
			if len(downs) != c.down {
				t.Errorf("the observer was told of %v", downs)
			}
		})
	}
}

func TestACopyThatHasNoTableYetIsNotRead(t *testing.T) {
	s := newShop(t)
	exec(t, s.dbs["b"], "INSERT INTO orders_1 VALUES (5, 5, 'b')")
	empty := files(t)("empty")
	routed := shardsql.OpenDB(shardsql.Config{Router: s.router, Home: s.home, Replicas: map[string][]*sql.DB{"b": {empty}}})
	t.Cleanup(func() { _ = routed.Close() })
	for _, query := range []string{noteOf5, "SELECT MAX(note) FROM orders"} {
		if from := one[string](t, routed, query); from != "b" {
			t.Errorf("%s: read from %q", query, from)
		}
	}
}

func TestACopyThatCannotBeReachedIsNotRead(t *testing.T) {
	_, routed, pools := copiedShop(t)
	for i, left := range []string{"second", "b"} {
		if err := pools[i].Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 { // one of them finds that it is closed
			_ = one[string](t, routed, noteOf5)
		}
		for range 2 {
			for _, query := range []string{noteOf5, "SELECT MAX(note) FROM orders WHERE id = 5"} {
				if from := one[string](t, routed, query); from != left {
					t.Errorf("%s: read from %s, want %s", query, from, left)
				}
			}
		}
	}
}

func TestAQueryOfSeveralShardsFindsThatACopyCannotBeReached(t *testing.T) {
	_, routed, pools := copiedShop(t)
	for _, pool := range pools {
		if err := pool.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if from := one[string](t, routed, "SELECT MAX(note) FROM orders WHERE id = 5"); from != "b" {
			t.Errorf("read from %s", from)
		}
	}
}

func TestWhatTheSourceOfAMigrationServesIsNotReadFromReplicas(t *testing.T) {
	m := newMoving(t)
	exec(t, m.db, "INSERT INTO orders VALUES (1, 1, 'source')")
	replica := files(t)("replica")
	exec(t, replica, "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER, note TEXT)")
	exec(t, replica, "INSERT INTO orders VALUES (1, 1, 'replica')")
	routed := shardsql.OpenDB(shardsql.Config{Router: m.router, Home: m.db, Replicas: map[string][]*sql.DB{"main": {replica}}})
	t.Cleanup(func() { _ = routed.Close() })
	if from := one[string](t, routed, "SELECT note FROM orders WHERE user_id = 1"); from != "source" {
		t.Errorf("read from the %s", from)
	}
}

// A subquery is executed first, as a statement of its own. A copy of its table may lag behind the source.
func TestNoPartOfAQueryOfTheSourceOfAMigrationIsReadFromAReplica(t *testing.T) {
	m, open := newMoving(t), files(t)
	exec(t, m.db, "INSERT INTO orders VALUES (1, 1, 'source')")
	origin, behind := open("origin"), open("behind")
	for _, db := range []*sql.DB{origin, behind} {
		for _, table := range []string{"items_0", "items_1"} {
			exec(t, db, "CREATE TABLE "+table+" (id INTEGER PRIMARY KEY, order_id INTEGER)")
		}
	}
	exec(t, origin, "INSERT INTO items_1 VALUES (1, 1)")
	orders, _ := m.router.Table("orders")
	spread, err := sharding.Spread([]string{"main"}, 2, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	orders.Map = spread
	items, err := sharding.Spread([]string{"b"}, 2, "items_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"main": m.db, "b": origin}, orders, sharding.Table{Name: "items", Key: "order_id", Rule: sharding.Mod(2), Map: items},
		sharding.Migration{Source: "main", Tables: map[string]string{"orders": "id"}})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: m.db, Replicas: map[string][]*sql.DB{"b": {behind}}})
	t.Cleanup(func() { _ = routed.Close() })
	for query, want := range map[string]int{
		"SELECT COUNT(*) FROM items": 0,
		"SELECT COUNT(*) FROM orders WHERE id IN (SELECT order_id FROM items)": 1,
		"SELECT COUNT(*) FROM items WHERE order_id IN (SELECT id FROM orders)": 1,
	} {
		if n := one[int](t, routed, query); n != want {
			t.Errorf("%s: %d, want %d", query, n, want)
		}
	}
}

func TestASessionInADatabaseDoesNotReadItsReplica(t *testing.T) {
	s := newShop(t)
	exec(t, s.dbs["b"], "INSERT INTO orders_1 VALUES (5, 5, 'b')")
	exec(t, s.dbs["b"], "CREATE TABLE coupons (code TEXT)")
	routed := shardsql.OpenDB(shardsql.Config{Router: s.router, Home: s.dbs["b"], Replicas: map[string][]*sql.DB{"b": {s.home}}})
	t.Cleanup(func() { _ = routed.Close() })
	session, err := routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	exec(t, session, "CREATE TEMP TABLE chosen (user_id INTEGER)")
	exec(t, session, "INSERT INTO chosen VALUES (5)")
	if note := one[string](t, session, "SELECT o.note FROM orders o JOIN chosen c ON c.user_id = o.user_id WHERE o.user_id = 5"); note != "b" {
		t.Error(note)
	}
}

func TestAnInvalidConfigFailsEveryOperation(t *testing.T) {
	s := newShop(t)
	for name, c := range map[string]struct {
		config shardsql.Config
		says   []string
	}{
		"replicas": {
			shardsql.Config{Router: s.router, Home: s.home, Replicas: map[string][]*sql.DB{"nowhere": {s.home}, "a": {nil}}},
			[]string{`no database "nowhere"`, `replica 0 of "a" is nil`},
		},
		"empty": {shardsql.Config{}, []string{"Config.Router is nil", "Config.Home is nil; set it"}},
	} {
		db := shardsql.OpenDB(c.config)
		_, executed := db.ExecContext(t.Context(), "SELECT 1")
		for _, err := range []error{c.config.Check(), db.PingContext(t.Context()), executed} {
			for _, says := range c.says {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("%s: %v, want %q", name, err, says)
				}
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := (shardsql.Config{Router: s.router, Home: s.home}).Check(); err != nil {
		t.Error(err)
	}
}
