package sqlxhook_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

type item struct {
	ID      int64  `db:"id" keygen:"order"`
	OrderID *int64 `db:"order_id"`
}

// newSharded returns a hook over 2 databases with 4 tables of orders, by id,
// and 4 of items, by order_id.
func newSharded(t testing.TB) (*sqlxhook.Hook, map[string]*sqlx.DB) {
	t.Helper()
	names := []string{"east", "west"}
	orders := spread(t, names, "orders_%d")
	items := spread(t, names, "items_%d")
	own := map[string]*sqlx.DB{}
	dbs := sharding.DBs{}
	for d, name := range names {
		var ddl []string
		for i := d; i < 4; i += 2 {
			ddl = append(ddl,
				strings.Replace(ordersDDL, "orders", fmt.Sprintf("orders_%d", i), 1),
				fmt.Sprintf("CREATE TABLE items_%d (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL)", i))
		}
		own[name] = open(t, ddl...)
		dbs[name] = own[name].DB
	}
	router, err := sharding.New(dbs,
		sharding.Table{Name: "Orders", Key: "id", Rule: sharding.Low(10), Map: orders},
		sharding.Table{Name: "items", Key: "order_id", Rule: sharding.Low(10), Map: items})
	if err != nil {
		t.Fatal(err)
	}
	h, err := sqlxhook.New(sqlxhook.Config{
		Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"order": keygen.Counting(1, 1)}},
		Router:     router, DriverName: "sqlite",
	})
	if err != nil {
		t.Fatal(err)
	}
	return h, own
}

func spread(t testing.TB, dbs []string, pattern string) sharding.Map {
	t.Helper()
	m, err := sharding.Spread(dbs, 4, pattern)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func idsIn(t testing.TB, db *sqlx.DB, table string) []int64 {
	t.Helper()
	var ids []int64
	if err := db.Select(&ids, "SELECT id FROM "+table+" ORDER BY id"); err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestForLeadsToTheDatabaseAndTableOfAKey(t *testing.T) {
	h, own := newSharded(t)
	for key, want := range map[any]string{0: "east orders_0", 5: "west orders_1", "6": "east orders_2", int64(-1): "west orders_3"} {
		db, table, err := h.For("orders", key)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(want, " ")
		if db.DB != own[name].DB || name+" "+table != want || db.DriverName() != "sqlite" {
			t.Errorf("%v: %s, want %s", key, table, want)
		}
		if again, _, _ := h.For("orders", key); again != db {
			t.Error("For made another *sqlx.DB for the same database")
		}
	}
	for _, c := range []struct {
		table string
		key   any
		want  error
	}{{"orders", nil, sharding.ErrKeyType}, {"users", 1, sharding.ErrUnknownTable}} {
		if _, _, err := h.For(c.table, c.key); !errors.Is(err, c.want) {
			t.Errorf("%s %v: %v", c.table, c.key, err)
		}
	}
	plain, _ := newHook(t, sqlxhook.Config{})
	if _, _, err := plain.For("orders", 1); !errors.Is(err, sharding.ErrUnknownTable) || !strings.Contains(err.Error(), "Config.Router") {
		t.Errorf("without a router: %v", err)
	}
	if _, err := sqlxhook.GroupBy(t.Context(), plain, "orders", make([]order, 1)); !errors.Is(err, sharding.ErrUnknownTable) {
		t.Errorf("without a router: %v", err)
	}
}

func TestGroupByFillsThenGroupsInInputOrder(t *testing.T) {
	h, own := newSharded(t)
	rows := make([]order, 10)
	rows[3].ID = 100 // preset: orders_0
	groups, err := sqlxhook.GroupBy(t.Context(), h, "orders", rows)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range groups {
		var ids []int64
		for i, row := range g.Rows {
			ids = append(ids, row.ID)
			if rows[g.Index[i]] != row {
				t.Errorf("row %d of %s is not row %d of the input", i, g.Target, g.Index[i])
			}
		}
		got = append(got, fmt.Sprint(g.Target, ids))
		res, err := h.Insert(t.Context(), g.DB, g.Target.Table, g.Rows)
		if err != nil || !slices.Equal(res.IDs, ids) {
			t.Errorf("%s: %+v, %v", g.Target, res, err)
		}
	}
	want := []string{"west/orders_1 [1 5 9]", "east/orders_2 [2 6]", "west/orders_3 [3 7]", "east/orders_0 [100 4 8]"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for table, want := range map[string][]int64{"orders_0": {4, 8, 100}, "orders_1": {1, 5, 9}, "orders_2": {2, 6}, "orders_3": {3, 7}} {
		db := own["east"]
		if table == "orders_1" || table == "orders_3" {
			db = own["west"]
		}
		if got := idsIn(t, db, table); !slices.Equal(got, want) {
			t.Errorf("%s holds %v", table, got)
		}
	}
}

func TestGroupByTakesPointersMapsAndKeysThatAreNotGenerated(t *testing.T) {
	h, _ := newSharded(t)
	five, six := int64(5), int64(6)
	items, err := sqlxhook.GroupBy(t.Context(), h, "ITEMS", []*item{{OrderID: &five}, {OrderID: &six}, {OrderID: &five}})
	if err != nil || len(items) != 2 || items[0].Target.Table != "items_1" || items[0].Rows[1].ID != 3 {
		t.Errorf("%+v, %v", items, err)
	}
	maps, err := sqlxhook.GroupBy(t.Context(), h, "orders", []map[string]any{{"id": 5}, {"id": "9"}})
	if err != nil || len(maps) != 1 || len(maps[0].Rows) != 2 {
		t.Errorf("%+v, %v", maps, err)
	}
	if none, err := sqlxhook.GroupBy(t.Context(), h, "orders", []order{}); none != nil || err != nil {
		t.Errorf("%+v, %v", none, err)
	}
}

func TestGroupByRefusesARowWithoutAKeyAndTakesIDsBack(t *testing.T) {
	h, _ := newSharded(t)
	five, zero := int64(5), int64(0)
	rows := []item{{OrderID: &five}, {}, {OrderID: &zero}}
	for _, c := range []struct {
		rows []item
		text string
	}{
		{rows, "sharding: group items refused: row 1: no sharding key (order_id)"},
		{rows[2:], "sharding: group items refused: row 0: no sharding key (order_id)"},
	} {
		_, err := sqlxhook.GroupBy(t.Context(), h, "items", c.rows)
		var route *sharding.RouteError
		if !errors.Is(err, sharding.ErrMissingKey) || !errors.As(err, &route) || err.Error() != c.text || rows[0].ID != 0 {
			t.Errorf("%v, %+v", err, rows)
		}
	}
	for name, call := range map[string]func() error{
		"no field": func() error {
			_, err := sqlxhook.GroupBy(t.Context(), h, "items", []order{{}})
			return err
		},
		"no map key": func() error {
			_, err := sqlxhook.GroupBy(t.Context(), h, "items", []map[string]any{{"id": 1}})
			return err
		},
		"NULL in a map": func() error {
			_, err := sqlxhook.GroupBy(t.Context(), h, "items", []map[string]any{{"order_id": nil}})
			return err
		},
	} {
		if err := call(); !errors.Is(err, sharding.ErrMissingKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sqlxhook.GroupBy(t.Context(), h, "orders", []map[string]any{{"id": "x"}}); !errors.Is(err, sharding.ErrKeyType) {
		t.Errorf("text key: %v", err)
	}
	if _, err := sqlxhook.GroupBy(t.Context(), h, "orders", []*order{nil}); !errors.Is(err, sqlxhook.ErrNil) {
		t.Errorf("nil row: %v", err)
	}
	if _, err := sqlxhook.GroupBy(t.Context(), h, "orders", []disagrees{{}}); !errors.Is(err, sqlxhook.ErrTag) {
		t.Errorf("bad tag: %v", err)
	}
	if _, err := sqlxhook.GroupBy(t.Context(), h, "orders", []unknownName{{}}); !errors.Is(err, keygen.ErrUnknownGenerator) {
		t.Errorf("unknown generator: %v", err)
	}
}

func TestRowsOfAnotherShardAreRefusedBeforeAnythingIsSent(t *testing.T) {
	for name, c := range map[string]struct {
		db    string
		query string
		arg   any
		want  error
		text  string
	}{
		"wrong table":    {"east", "orders_2", &order{ID: 4}, sharding.ErrCrossShard, "row 0: belongs to east/orders_0"},
		"wrong database": {"west", "orders_0", &order{ID: 4}, sharding.ErrCrossShard, "row 0: belongs to east/orders_0"},
		"generated id":   {"east", "orders_0", &order{}, sharding.ErrCrossShard, "row 0: belongs to west/orders_1"},
		"second row":     {"east", "Orders_0", []order{{ID: 4}, {ID: 5}}, sharding.ErrCrossShard, "row 1: belongs to west/orders_1"},
		"no key":         {"east", "items_0", []item{{}}, sharding.ErrKeyType, "row 0: nil *int64"},
		"no key column": {"east", "INSERT INTO items_0 (id) VALUES (:id)", &item{}, sharding.ErrMissingKey,
			"no sharding key (order_id); take the target"},
		"named": {"east", "INSERT INTO items_0 (id, order_id) VALUES (:id, :order)", map[string]any{"id": 1, "order": 5},
			sharding.ErrCrossShard, "belongs to west/items_1"},
	} {
		t.Run(name, func(t *testing.T) {
			h, own := newSharded(t)
			before := fmt.Sprint(c.arg)
			var err error
			if strings.Contains(c.query, " ") {
				_, err = h.NamedExec(t.Context(), own[c.db], c.query, c.arg)
			} else {
				_, err = h.Insert(t.Context(), own[c.db], c.query, c.arg)
			}
			var route *sharding.RouteError
			if !errors.Is(err, c.want) || !errors.As(err, &route) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v", err)
			}
			if after := fmt.Sprint(c.arg); after != before {
				t.Errorf("the argument became %s", after)
			}
			for _, table := range []string{"orders_0", "orders_2", "items_0"} {
				if ids := idsIn(t, own["east"], table); len(ids) > 0 {
					t.Errorf("%s holds %v", table, ids)
				}
			}
		})
	}
	h, own := newSharded(t)
	ok := "INSERT INTO items_0 (id, order_id) VALUES (:id, :order + 0)"
	if _, err := h.NamedExec(t.Context(), own["east"], ok, map[string]any{"id": 1, "order": 4}); err != nil {
		t.Errorf("an expression cannot be checked: %v", err)
	}
}

func TestSQLThatNamesAShardedTableIsRefused(t *testing.T) {
	h, own := newSharded(t)
	refused := []string{
		"INSERT INTO orders (id) VALUES (:id)",
		"insert into ORDERS (id) values (:id)",
		"INSERT OR IGNORE INTO orders VALUES (:id)",
		"REPLACE orders (id) VALUES (:id)",
		`INSERT INTO "orders" (id) VALUES (:id)`,
		"INSERT INTO `orders` (id) VALUES (:id)",
		"INSERT INTO [orders] (id) VALUES (:id)",
		"INSERT INTO main.orders (id) VALUES (:id)",
		"INSERT INTO 'orders' (id) VALUES (:id)",
		"INSERT INTO/**/orders(id) VALUES (:id)",
		"INSERT INTO log (id) SELECT id FROM orders WHERE id = :id",
		"UPDATE orders SET note = 'x' WHERE id = :id",
		"UPDATE log, orders SET note = 'x' WHERE id = :id",
		"DELETE FROM orders WHERE id = :id",
		"DELETE orders FROM log JOIN orders ON 1 WHERE id = :id",
		"DELETE FROM log USING log, orders WHERE id = :id",
		"UPDATE log SET a = (SELECT max(id) FROM items) WHERE id = :id",
		"UPDATE log AS l JOIN items AS i ON i.id = l.id SET a = 1 WHERE l.id = :id",
		"DELETE FROM log WHERE id IN (SELECT 1 FROM (SELECT 1 FROM x WHERE 1) y, orders) AND id = :id",
		"SELECT 1; DELETE FROM items WHERE order_id = :id",
		"TRUNCATE TABLE items -- :id",
	}
	for _, query := range refused {
		_, err := h.NamedExec(t.Context(), own["east"], query, &order{ID: 4})
		var route *sharding.RouteError
		if !errors.Is(err, sharding.ErrRawTable) || !errors.As(err, &route) || !strings.Contains(err.Error(), "Hook.For") {
			t.Errorf("%s: %v", query, err)
		}
	}
	if _, err := h.Insert(t.Context(), own["east"], "orders", &order{ID: 4}); !errors.Is(err, sharding.ErrRawTable) {
		t.Errorf("Insert: %v", err)
	}
	for _, query := range []string{
		"UPDATE orders_0 AS orders SET note = 'orders' WHERE orders.id = :id /* orders */",
		"UPDATE orders_0 SET note = 'FROM orders' WHERE id = :id",
		"INSERT INTO orders_0 (id, user_id) VALUES (:id, 1) ON CONFLICT (id) DO UPDATE SET note = 'x'",
		"DELETE FROM orders_0 WHERE id = :id",
	} {
		if _, err := h.NamedExec(t.Context(), own["east"], query, &order{ID: 4}); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestTheGuardReadsMySQLAsEverySQLModeDoes(t *testing.T) {
	h, _ := newSharded(t)
	for _, query := range []string{
		"UPDATE log SET note = '\\', a = (SELECT 1 FROM orders) -- '",
		"UPDATE /*! orders */ SET note = 1",
		"UPDATE `log` SET orders = 1, a = (SELECT 1 FROM `Orders`)",
		`DELETE FROM "orders" WHERE 1`,
	} {
		if _, err := h.NamedExec(t.Context(), &speaks{driver: "mysql"}, query, &order{ID: 4}); !errors.Is(err, sharding.ErrRawTable) {
			t.Errorf("%s: %v", query, err)
		}
	}
	for _, query := range []string{
		"INSERT INTO stats (orders) VALUES (:id) ON DUPLICATE KEY UPDATE orders = VALUES(orders)",
		"UPDATE stats SET note = REPLACE(note, 'a', 'b'), orders = :id",
	} {
		if _, err := h.NamedExec(t.Context(), &speaks{driver: "mysql"}, query, order{ID: 4}); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestATableCalledLikeAKeywordIsGuarded(t *testing.T) {
	db := open(t, "CREATE TABLE order_0 (id INTEGER PRIMARY KEY)")
	m, err := sharding.Spread([]string{"main"}, 2, "order_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"main": db.DB}, sharding.Table{Name: "order", Key: "id", Rule: sharding.Low(1), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	h, _ := newHook(t, sqlxhook.Config{Router: router, DriverName: "sqlite"})
	if _, err := h.NamedExec(t.Context(), db, "UPDATE order_0 SET id = id WHERE id IN (SELECT id FROM order_0 ORDER BY :id)", order{ID: 1}); err != nil {
		t.Error(err)
	}
	for _, query := range []string{`SELECT * FROM "order"`, "SELECT * FROM main.order", "DELETE FROM `order`"} {
		if _, err := h.NamedExec(t.Context(), db, query, order{ID: 1}); !errors.Is(err, sharding.ErrRawTable) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestAHookServesManyGoroutines(t *testing.T) {
	h, own := newSharded(t)
	for _, db := range own {
		db.SetMaxOpenConns(1)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				groups, err := sqlxhook.GroupBy(t.Context(), h, "orders", make([]order, 8))
				if err != nil {
					t.Error(err)
				}
				for _, g := range groups {
					if _, err := h.Insert(t.Context(), g.DB, g.Target.Table, g.Rows); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for i, name := range []string{"east", "west", "east", "west"} {
		ids := idsIn(t, own[name], fmt.Sprintf("orders_%d", i))
		for _, id := range ids {
			if id%4 != int64(i) {
				t.Errorf("orders_%d holds %d", i, id)
			}
		}
		total += len(ids)
	}
	if total != 800 {
		t.Errorf("%d rows", total)
	}
}

func TestARouterNeedsADriverName(t *testing.T) {
	m := spread(t, []string{"a"}, "t_%d")
	r, err := sharding.New(sharding.DBs{"a": open(t).DB}, sharding.Table{Name: "t", Key: "id", Rule: sharding.Low(2), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqlxhook.New(sqlxhook.Config{Router: r}); err == nil || !strings.Contains(err.Error(), "DriverName") {
		t.Error(err)
	}
}
