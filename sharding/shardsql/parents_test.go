// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// families are tables over two databases, and one database with the same rows.
type families struct{ routed, plain *sql.DB }

// openFamilies creates the tables: each definition has a %s for the name.
func openFamilies(t testing.TB, definitions map[string]string, tables ...sharding.Table) families {
	t.Helper()
	open := files(t)
	plain, dbs := open("plain.db"), sharding.DBs{"a": open("a.db"), "b": open("b.db")}
	for i, table := range tables {
		m, err := sharding.Spread([]string{"a", "b"}, 4, table.Name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		tables[i].Rule, tables[i].Map = sharding.Mod(4), m
		exec(t, plain, fmt.Sprintf(definitions[table.Name], table.Name))
		for _, at := range m.Targets() {
			exec(t, dbs[at.DB], fmt.Sprintf(definitions[table.Name], at.Table))
		}
	}
	router, err := sharding.New(dbs, sharding.Tables(tables...))
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	return families{routed, plain}
}

// exec executes a statement on both, which must affect the same number of rows.
func (f families) exec(t testing.TB, text string, args ...any) {
	t.Helper()
	here, err := exec(t, f.routed, text, args...).RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	if there, err := exec(t, f.plain, text, args...).RowsAffected(); err != nil || here != there {
		t.Errorf("%s: %d rows, one table has %d, %v", text, here, there, err)
	}
}

// compare compares the rows of a query, in order if it sorts them.
func (f families) compare(t testing.TB, text string, args ...any) {
	t.Helper()
	here, err := answer(within(t), f.routed, text, args...)
	if err != nil {
		t.Errorf("%s: %v", text, err)
		return
	}
	there, err := answer(within(t), f.plain, text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if !strings.Contains(text, "ORDER BY") {
		slices.Sort(here)
		slices.Sort(there)
	}
	if !slices.Equal(here, there) {
		t.Errorf("%s: %q, one table has %q", text, here, there)
	}
}

func TestNULLsOfAColumnThatLeadsToTheShardAreOneValue(t *testing.T) {
	f := openFamilies(t, map[string]string{"notes": "CREATE TABLE %s (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, order_id BIGINT)"},
		sharding.Table{Name: "notes", Key: "user_id", Also: []sharding.Alt{{Column: "order_id", Rule: sharding.Mod(4)}}})
	for id := range 12 {
		var order any
		if id%3 == 0 {
			order = id
		}
		f.exec(t, "INSERT INTO notes (id, user_id, order_id) VALUES (?, ?, ?)", id, id, order)
	}
	for _, text := range []string{
		"SELECT DISTINCT order_id FROM notes",
		"SELECT DISTINCT order_id FROM notes ORDER BY order_id LIMIT 2",
		"SELECT order_id FROM notes WHERE id < 6 UNION SELECT order_id FROM notes",
		"SELECT COUNT(*) FROM (SELECT DISTINCT order_id FROM notes) AS d",
		"SELECT order_id, COUNT(*) FROM notes GROUP BY order_id",
		"SELECT COUNT(DISTINCT order_id) FROM notes",
		"SELECT COUNT(*) FROM (SELECT order_id, COUNT(*) AS n FROM notes GROUP BY order_id) AS g",
	} {
		f.compare(t, text)
	}
}

// bought is orders of users and their items and payments, which refer to orders by ids that lead to no shard.
func bought(t testing.TB) families {
	t.Helper()
	const item = "CREATE TABLE %s (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, order_id BIGINT, amount BIGINT NOT NULL, UNIQUE (order_id, amount))"
	ofOrders := []sharding.Parent{{Column: "order_id", Table: "orders"}}
	f := openFamilies(t, map[string]string{
		"orders":   "CREATE TABLE %s (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, state TEXT, total BIGINT NOT NULL DEFAULT 0)",
		"items":    item,
		"payments": item,
	},
		sharding.Table{Name: "orders", Key: "user_id", Group: "shop"},
		sharding.Table{Name: "items", Key: "user_id", Group: "shop", Parents: ofOrders},
		sharding.Table{Name: "payments", Key: "user_id", Group: "shop", Parents: ofOrders})
	for order := range 12 {
		user := order * 7 % 5
		f.exec(t, "INSERT INTO orders (id, user_id, state) VALUES (?, ?, ?)", order, user, []string{"new", "paid"}[order%2])
		for i := range order % 4 {
			f.exec(t, "INSERT INTO items (id, user_id, order_id, amount) VALUES (?, ?, ?, ?)", 10*order+i, user, order, i)
		}
		if order%3 > 0 {
			f.exec(t, "INSERT INTO payments (id, user_id, order_id, amount) VALUES (?, ?, ?, ?)", order, user, order, order%3)
		}
		f.exec(t, "INSERT INTO payments (id, user_id, order_id, amount) VALUES (?, ?, NULL, 1)", 100+order, order)
	}
	return f
}

func TestRowsAreJoinedWithTheirParents(t *testing.T) {
	f := bought(t)
	for _, text := range []string{
		"SELECT o.id, i.id, i.amount FROM orders o JOIN items i ON i.order_id = o.id WHERE o.user_id = 4",
		"SELECT o.id, i.id FROM orders o LEFT JOIN items i ON i.order_id = o.id ORDER BY o.id, i.id LIMIT 10 OFFSET 3",
		"SELECT o.id, p.id FROM payments p LEFT JOIN orders o ON o.id = p.order_id ORDER BY p.id",
		"SELECT i.id, p.id FROM items i JOIN payments p ON p.order_id = i.order_id",
		"SELECT o.state, COUNT(*), SUM(i.amount) FROM orders o JOIN items i ON o.id = i.order_id JOIN payments p USING (order_id) GROUP BY o.state",
		"SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM payments p WHERE p.order_id = o.id)",
		"SELECT id FROM orders WHERE id IN (SELECT order_id FROM items WHERE amount > 1) ORDER BY id",
		"SELECT o.id, (SELECT COALESCE(SUM(amount), 0) FROM items WHERE order_id = o.id) FROM orders o ORDER BY o.id DESC LIMIT 5",
		"SELECT o.id, t.n FROM orders o LEFT JOIN (SELECT order_id, COUNT(*) AS n FROM items GROUP BY order_id) AS t ON t.order_id = o.id WHERE o.state = 'paid'",
		"WITH big AS (SELECT order_id FROM items WHERE amount > 0) SELECT DISTINCT o.id FROM orders o JOIN big b ON b.order_id = o.id",
		"SELECT order_id, COUNT(*) FROM payments GROUP BY order_id ORDER BY 1, 2",
		"SELECT COUNT(DISTINCT order_id), COUNT(DISTINCT user_id) FROM payments",
		"SELECT DISTINCT order_id FROM payments",
		"SELECT order_id FROM payments UNION SELECT order_id FROM items",
		"SELECT COUNT(*) FROM (SELECT DISTINCT order_id FROM payments) AS d",
	} {
		f.compare(t, text)
	}
}

func TestRowsAreWrittenByTheirParents(t *testing.T) {
	f := bought(t)
	for _, text := range []string{
		"UPDATE orders SET total = (SELECT COALESCE(SUM(amount), 0) FROM items WHERE items.order_id = orders.id) WHERE user_id = 4",
		"DELETE FROM payments WHERE order_id IN (SELECT id FROM orders WHERE user_id = 2)",
		"UPDATE items SET amount = amount + 10 WHERE EXISTS (SELECT 1 FROM orders o WHERE o.id = items.order_id AND o.user_id = 4 AND o.state = 'paid')",
		"INSERT INTO payments (id, user_id, order_id, amount) SELECT 1000 + i.id, o.user_id, o.id, i.amount FROM orders o JOIN items i ON i.order_id = o.id WHERE o.user_id = 4 AND i.amount > 10",
		"UPDATE items SET amount = amount + 100 WHERE order_id = 7",
		"UPDATE payments SET amount = 5 WHERE order_id IN (4, 77) AND amount < 3",
		"UPDATE payments SET amount = 6 WHERE order_id IS NOT NULL AND order_id = 77",
		"DELETE FROM items WHERE order_id = 11 AND amount > 0",
		"UPDATE orders SET total = (SELECT COALESCE(SUM(amount), 0) FROM items WHERE items.order_id = orders.id) WHERE id = 7",
		"UPDATE orders SET total = (SELECT COUNT(*) FROM items WHERE items.order_id = orders.id) WHERE id IN (3, 77)",
		"UPDATE orders SET total = i.amount FROM items i WHERE i.order_id = orders.id AND i.order_id = 5",
		"DELETE FROM orders WHERE id = 4 AND NOT EXISTS (SELECT 1 FROM items WHERE items.order_id = orders.id)",
		"DELETE FROM payments WHERE order_id IN (SELECT id FROM orders WHERE id = 7)",
	} {
		f.exec(t, text)
	}
	for _, table := range []string{"orders", "items", "payments"} {
		f.compare(t, "SELECT * FROM "+table+" ORDER BY id")
	}
}

// The router relies on the promise of Parents. A statement that sees it broken is refused.
func TestAWriteByAParentWhoseRowsAreOnTwoShardsIsRefused(t *testing.T) {
	f := bought(t)
	exec(t, f.routed, "INSERT INTO items (id, user_id, order_id, amount) VALUES (500, 1, 7, 50)") // order 7 belongs to user 4
	_, err := f.routed.ExecContext(within(t), "DELETE FROM items WHERE order_id = 7")
	if !errors.Is(err, sharding.ErrCrossShard) || !strings.Contains(err.Error(), "have rows with one order_id; add a condition on user_id") {
		t.Error(err)
	}
	if n := one[int64](t, f.routed, "SELECT COUNT(*) FROM items WHERE order_id = 7"); n != 4 {
		t.Errorf("%d rows are left", n)
	}
}

func TestATransactionOfOneDatabaseReadsTheRowsOfAParent(t *testing.T) {
	f := bought(t)
	tx, err := f.routed.BeginTx(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	exec(t, tx, "UPDATE items SET amount = amount + 100 WHERE order_id = 7")
	for _, query := range []string{
		"SELECT SUM(amount) FROM items WHERE order_id = ?",
		"SELECT SUM(i.amount) FROM orders o JOIN items i ON i.order_id = o.id WHERE o.id = ?",
		"SELECT SUM(i.amount) FROM items i LEFT JOIN orders o ON o.id = i.order_id WHERE i.order_id = ?",
		"SELECT (SELECT SUM(amount) FROM items i WHERE i.order_id = o.id) FROM orders o WHERE id = ?",
	} {
		if sum := one[int64](t, tx, query, 7); sum != 303 {
			t.Errorf("%s: the sum is %d", query, sum)
		}
	}
}

// joins makes random queries of bought.
type joins struct {
	*rand.Rand
	aliases []string
	of      map[string]string // the tables of the aliases
}

// reference returns the column of a table by which its rows share the slots of orders.
func (j *joins) reference(alias string) string {
	if j.of[alias] == "orders" {
		return alias + ".id"
	}
	return alias + ".order_id"
}

func (j *joins) pick(list ...string) string { return list[j.IntN(len(list))] }

func (j *joins) any() string { return j.aliases[j.IntN(len(j.aliases))] }

// add names a table in FROM; a quarter of the children are the groups of a derived table.
func (j *joins) add() string {
	alias, table := fmt.Sprint("t", len(j.of)), j.pick("orders", "items", "payments")
	j.of[alias], j.aliases = table, append(j.aliases, alias)
	if table != "orders" && j.IntN(4) == 0 {
		return "(SELECT order_id, COUNT(*) AS id, MAX(user_id) AS user_id FROM " + table + " GROUP BY order_id) AS " + alias
	}
	return table + " AS " + alias
}

func (j *joins) condition() string {
	alias, number := j.any(), strconv.Itoa(j.IntN(12))
	at, other := j.reference(alias), j.pick("orders", "items", "payments")
	in := strings.TrimPrefix((&joins{of: map[string]string{"x": other}}).reference("x"), "x.")
	switch j.IntN(8) {
	case 0:
		return alias + ".user_id = " + number
	case 1:
		return alias + ".user_id IN (1, " + number + ")"
	case 2:
		return at + " = " + number
	case 3:
		return at + " IS " + j.pick("", "NOT ") + "NULL"
	case 4, 5:
		return j.pick("", "NOT ") + "EXISTS (SELECT 1 FROM " + other + " x WHERE x." + in + " = " + at + " AND x.user_id <> " + number + ")"
	case 6:
		return at + " IN (SELECT " + in + " FROM " + other + " WHERE id > " + number + ")"
	}
	return "(" + alias + ".id > " + number + " OR " + at + " < 5)"
}

func (j *joins) query() string {
	j.aliases, j.of = nil, map[string]string{}
	tables := []string{j.add()}
	for range j.IntN(3) {
		near := j.any()
		table := j.add()
		added := j.aliases[len(j.aliases)-1]
		on := j.reference(near) + " = " + j.reference(added)
		if j.IntN(5) == 0 {
			on = near + ".user_id = " + added + ".user_id"
		}
		if j.IntN(4) == 0 {
			on += " AND " + j.condition()
		}
		tables = append(tables, j.pick("JOIN ", "LEFT JOIN ")+table+" ON "+on)
	}
	from := strings.Join(tables, " ")
	if j.IntN(4) > 0 {
		from += " WHERE " + j.condition() + j.pick("", " AND "+j.condition())
	}
	a, b := j.any(), j.any()
	at := j.reference(a)
	switch j.IntN(6) {
	case 0:
		return "SELECT COUNT(*), COUNT(DISTINCT " + at + "), SUM(" + b + ".id) FROM " + from
	case 1:
		return "SELECT " + at + ", COUNT(*), MAX(" + b + ".id) FROM " + from + " GROUP BY " + at
	case 2:
		return "SELECT DISTINCT " + at + ", " + b + ".user_id FROM " + from
	case 3:
		return "SELECT " + a + ".id, (SELECT COUNT(*) FROM items x WHERE x.order_id = " + at + ") FROM " + from
	case 4:
		text := "SELECT " + a + ".id, " + b + ".user_id, " + at + " FROM " + from + " ORDER BY 1, 2, 3 LIMIT 7"
		if !strings.Contains(from, "EXISTS") { // with both, SQLite itself skips one row too few of some queries
			text += " OFFSET " + strconv.Itoa(j.IntN(4))
		}
		return text
	}
	return "SELECT " + a + ".id, " + b + ".user_id, " + at + " FROM " + from
}

func TestRandomJoinsByParentsAreThoseOfOneTable(t *testing.T) {
	f := bought(t)
	f.exec(t, "INSERT INTO items (id, user_id, order_id, amount) VALUES (900, 8, 7, 90), (901, 4, NULL, 1)") // another user of the slot
	j, answered, all := &joins{Rand: rand.New(rand.NewPCG(1, 2))}, 0, effort.Cases(500, 200_000)
	for range all {
		text := j.query()
		here, err := answer(within(t), f.routed, text)
		if errors.Is(err, sharding.ErrUnmergeable) || errors.Is(err, sharding.ErrCrossShard) {
			continue
		}
		there, failed := answer(within(t), f.plain, text)
		if answered++; !strings.Contains(text, "ORDER BY") {
			slices.Sort(here)
			slices.Sort(there)
		}
		if err != nil || failed != nil || !slices.Equal(here, there) {
			t.Errorf("%s: %q, %v; one table has %q, %v", text, here, err, there, failed)
		}
	}
	if t.Logf("%d of %d queries are answered", answered, all); answered*2 < all {
		t.Error("too few")
	}
}
