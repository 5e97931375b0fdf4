package gormplugin

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
)

func testGuard(t testing.TB, dialect string) *guard { return guardOf(t, dialect, "orders") }

func guardOf(t testing.TB, dialect, table string) *guard {
	t.Helper()
	m, err := sharding.Spread([]string{"db"}, 2, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	r, err := sharding.New(sharding.DBs{"db": new(sql.DB)}, sharding.Table{Name: table, Key: "id", Rule: sharding.Low(1), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGuard(dialect, r)
	if err != nil {
		t.Fatal(err)
	}
	return &g
}

func TestGuardFindsEveryMentionOfAShardedTable(t *testing.T) {
	for _, dialect := range []string{"mysql", "sqlite"} {
		g := testGuard(t, dialect)
		for sql, stopped := range map[string]bool{
			"SELECT * FROM orders":                                 true,
			"select * from ORDERS where 1":                         true,
			"SELECT * FROM `Orders`":                               true,
			`SELECT * FROM "orders"`:                               true,
			"SELECT * FROM db.orders":                              true,
			"SELECT * FROM db . `orders`":                          true,
			"SELECT 1; DELETE FROM orders":                         true,
			"SELECT 1 /* x */ FROM/**/orders":                      true,
			"TRUNCATE orders":                                      true,
			"SELECT '\\' FROM orders -- '":                         true,
			"SELECT '\\'' FROM orders":                             dialect == "mysql", // one reading ends the string earlier
			"SELECT 'x' 'FROM orders'":                             false,
			"SELECT 'it''s orders'":                                false,
			"SELECT * FROM orders_1":                               false,
			"SELECT * FROM my_orders, preorders":                   false,
			"SELECT * FROM users -- orders":                        false,
			"SELECT /* orders */ 1":                                false,
			"SELECT /*! * FROM orders */":                          dialect == "mysql",
			"SELECT /*!50000 * FROM orders */":                     dialect == "mysql",
			"SELECT /*M!100100 * FROM orders */":                   dialect == "mysql",
			"SELECT 1 # \n FROM orders":                            true,
			"SELECT * FROM 'orders'":                               dialect == "sqlite",
			"SELECT * FROM [orders]":                               true,
			"INSERT INTO audit (t) VALUES ('orders')":              false,
			"SELECT count(*) AS orders FROM users":                 false,
			"SELECT users.orders, orders FROM users AS orders":     false,
			"SELECT * FROM users WHERE orders = 1 ORDER BY orders": false,
			"UPDATE users SET orders = 1":                          false,
			"INSERT INTO users (orders) VALUES (1) ON DUPLICATE KEY UPDATE orders = 2": false,
			"INSERT INTO users (id) SELECT id FROM orders":                             true,
			"UPDATE (users, orders) SET x = 1":                                         true,
			"UPDATE users JOIN orders ON 1 SET x = 1":                                  true,
			"DELETE FROM a USING users a, orders":                                      true,
			"DELETE orders FROM users":                                                 true,
			"SELECT * FROM users WHERE id IN orders":                                   true,
			"SELECT * FROM users WHERE id IN main.orders":                              true,
			"SELECT * FROM users, (orders)":                                            true,
			"SELECT * FROM (SELECT 1) x, orders":                                       true,
			"SELECT * FROM users WHERE EXISTS (SELECT 1 FROM orders)":                  true,
			"SELECT 1 UNION TABLE orders":                                              true,
			"SELECT * FROM returning, orders":                                          true,
			"WITH orders AS (SELECT 1) SELECT * FROM orders":                           true,
			"EXPLAIN SELECT orders FROM users":                                         true,
			"CREATE INDEX i ON orders (id)":                                            true,
			"SELECT * FROM users u JOIN log l ON u.id = l.id, orders":                  true,
			"SELECT f(x) FROM users JOIN orders":                                       true,
			"SELECT (1), orders FROM users":                                            false,
			"SELECT * FROM users WHERE note = 'the orders x'":                          false,
			"": false,
		} {
			err := g.unrouted(sql, nil)
			if stopped != errors.Is(err, sharding.ErrRawTable) || !stopped && err != nil {
				t.Errorf("%s: %s: %v", dialect, sql, err)
			}
		}
	}
}

func TestATableCalledLikeAKeywordIsNotMistakenForOne(t *testing.T) {
	for _, dialect := range []string{"mysql", "sqlite"} {
		g := guardOf(t, dialect, "order")
		for sql, stopped := range map[string]bool{
			"SELECT * FROM users ORDER BY name":                         false,
			"SELECT * FROM `order` WHERE id = 1":                        true,
			"SELECT * FROM shop.order WHERE id = 1":                     true,
			"SELECT * FROM users WHERE id IN (SELECT uid FROM `Order`)": true,
		} {
			if err := g.unrouted(sql, nil); stopped != errors.Is(err, sharding.ErrRawTable) || !stopped && err != nil {
				t.Errorf("%s: %s: %v", dialect, sql, err)
			}
		}
		if err := g.routed("query", "SELECT * FROM `order_1` AS `order` WHERE `order`.`id` = ? ORDER BY `order`.`id`", &g.tables[0], false); err != nil {
			t.Errorf("%s: %v", dialect, err)
		}
	}
}

func TestGuardLetsARoutedStatementNameOnlyItsAlias(t *testing.T) {
	for _, dialect := range []string{"mysql", "sqlite"} {
		g := testGuard(t, dialect)
		for sql, want := range map[string]error{
			"SELECT * FROM `orders_1` AS `orders` WHERE `orders`.`id` = ? AND orders.x = orders . y": nil,
			"DELETE `orders` FROM `orders_1` AS `orders` WHERE `orders`.`id` = ?":                    nil,
			"INSERT INTO `orders_1` (`id`) VALUES (?)":                                               nil,
			"SELECT * FROM `orders_1` AS `orders` FORCE INDEX (x) WHERE 1 FOR UPDATE":                nil,
			"SELECT * FROM `orders_1` AS `orders` WHERE note = ' FROM orders'":                       nil,
			"SELECT * FROM orders":                                                    sharding.ErrRawTable,
			"DELETE FROM orders WHERE 1":                                              sharding.ErrRawTable,
			"SELECT * FROM `orders_1` AS `orders`, orders":                            sharding.ErrRawTable,
			"SELECT * FROM `orders_1` AS `orders` WHERE id IN (SELECT id FROM users)": sharding.ErrCrossShard,
			"SELECT * FROM `orders_1` AS `orders` JOIN users":                         sharding.ErrCrossShard,
			"SELECT * FROM `orders_1` AS `orders` UNION SELECT * FROM x":              sharding.ErrCrossShard,
			"SELECT * FROM `orders_1` AS `orders`; DELETE FROM users":                 sharding.ErrCrossShard,
			"SELECT * FROM `orders_1` AS `orders` WHERE note = 'x":                    sharding.ErrRawTable,
			"SELECT * FROM `orders_1` AS `orders` /* x":                               sharding.ErrRawTable,
		} {
			if err := g.routed("query", sql, &g.tables[0], false); !errors.Is(err, want) {
				t.Errorf("%s: %s: %v", dialect, sql, err)
			}
		}
	}
}

func TestGuardRefusesDatabasesItCannotRead(t *testing.T) {
	if _, err := newGuard("postgres", &sharding.Router{}); err == nil {
		t.Error("postgres was accepted")
	}
}

func FuzzGuard(f *testing.F) {
	for _, seed := range []string{"SELECT * FROM orders", "'", "/*! orders", "`orders", "\\'orders", "AS orders"} {
		f.Add(seed)
	}
	guards := []*guard{testGuard(f, "mysql"), testGuard(f, "sqlite")}
	f.Fuzz(func(t *testing.T, text string) {
		for _, g := range guards {
			_ = g.routed("query", text, &g.tables[0], false)
			if err := g.unrouted("SELECT * FROM orders WHERE "+text, nil); err == nil {
				t.Errorf("let pass with %q", text)
			}
		}
	})
}

func BenchmarkGuard(b *testing.B) {
	g := testGuard(b, "mysql")
	const free = "SELECT `users`.`id`,`users`.`name` FROM `users` WHERE `users`.`id` = ? AND note LIKE ? ORDER BY `users`.`id` LIMIT 1"
	const routed = "SELECT * FROM `orders_1` AS `orders` WHERE `orders`.`id` = ? AND note LIKE ? ORDER BY `orders`.`id` LIMIT 1"
	b.Run("unrouted", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = g.unrouted(free, nil)
		}
	})
	b.Run("routed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = g.routed("query", routed, &g.tables[0], false)
		}
	})
}

func TestAGuardThatLeavesRowsOfParametersOutComesToTheSameVerdict(t *testing.T) {
	guards := []*guard{testGuard(t, "mysql"), testGuard(t, "sqlite")}
	table := guards[0].table("orders")
	parts := []string{"SELECT ", "FROM ", "orders ", "orders_1 AS orders ", "x ", ",", "(", ")", "'", "`", "/* ", "*/ ", "-- ", "\n", "VALUES ", "INSERT INTO orders_1 ", "UNION ", "JOIN ", "WHERE ", "\\", "\"", "(?,?)", "; "}
	random := rand.New(rand.NewPCG(5, 6))
	word := func(n int) (text string) {
		for range random.IntN(n) {
			text += parts[random.IntN(len(parts))] //nolint:perfsprint // a few words
		}
		return text
	}
	passed := 0
	for range 20_000 {
		before, after := "INSERT INTO orders_1 (a,b) VALUES (?,?)", word(4)
		if random.IntN(2) == 0 {
			before = word(6) + "(?,?)"
		}
		long := before + strings.Repeat(",(?,?)", 4+random.IntN(3)) + after
		for i, g := range guards {
			verdict := func(text string) error {
				for _, f := range g.readingsOf(text) {
					if err := g.routedReading("create", text, table, false, f); err != nil {
						return err
					}
				}
				return nil
			}
			short := squeezed(long)
			if len(short) >= len(long) && strings.Index(long, "),(") == len(before)-1 {
				t.Fatalf("nothing was left out of %q", long)
			}
			if a, b := verdict(long), verdict(short); fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("%d: %q: %v, but %q: %v", i, long, a, short, b)
			} else if a == nil {
				passed++
			}
		}
	}
	if passed < 1000 {
		t.Errorf("only %d texts passed", passed)
	}
}
