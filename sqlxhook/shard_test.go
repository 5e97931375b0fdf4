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
	for key, want := range map[any]string{0: "east/orders_0", 5: "west/orders_1", "6": "east/orders_2", int64(-1): "west/orders_3"} {
		s, err := h.For("orders", key)
		if err != nil {
			t.Fatal(err)
		}
		db, ok := s.Unguarded().(*sqlx.DB)
		if s.Target().String() != want || s.DriverName() != "sqlite" || !ok || db.DB != own[s.Target().DB].DB {
			t.Errorf("%v: %s, want %s", key, s.Target(), want)
		}
		at, err := h.At(s.Target())
		if err != nil || at.Target() != s.Target() {
			t.Errorf("At: %v, %v", at, err)
		}
	}
	for _, c := range []struct {
		table string
		key   any
		want  error
	}{{"orders", nil, sharding.ErrKeyType}, {"users", 1, sharding.ErrUnknownTable}} {
		if _, err := h.For(c.table, c.key); !errors.Is(err, c.want) {
			t.Errorf("%s %v: %v", c.table, c.key, err)
		}
	}
	if _, err := h.At(sharding.Target{DB: "east", Table: "orders_1"}); !errors.Is(err, sharding.ErrUnknownTable) {
		t.Error(err)
	}
	plain, _ := newHook(t, sqlxhook.Config{})
	if _, err := plain.For("orders", 1); !errors.Is(err, sharding.ErrUnknownTable) || !strings.Contains(err.Error(), "Config.Router") {
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
		for i, row := range g.Items {
			ids = append(ids, row.ID)
			if rows[g.Index[i]] != row {
				t.Errorf("row %d of %s is not row %d of the input", i, g.Shard.Target(), g.Index[i])
			}
		}
		got = append(got, fmt.Sprint(g.Shard.Target(), ids))
		res, err := h.Insert(t.Context(), g.Shard, "orders", g.Items)
		if err != nil || !slices.Equal(res.IDs, ids) {
			t.Errorf("%s: %+v, %v", g.Shard.Target(), res, err)
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
	if err != nil || len(items) != 2 || items[0].Shard.Target().Table != "items_1" || items[0].Items[1].ID != 3 {
		t.Errorf("%+v, %v", items, err)
	}
	maps, err := sqlxhook.GroupBy(t.Context(), h, "orders", []map[string]any{{"id": 5}, {"id": "9"}})
	if err != nil || len(maps) != 1 || len(maps[0].Items) != 2 {
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
		key   any // of the shard, here all of the east
		query string
		arg   any
		want  error
		text  string
	}{
		"another table":    {2, "orders", &order{ID: 4}, sharding.ErrMisplaced, "row 0: row belongs to another shard: east/orders_0, and the handle is bound to east/orders_2"},
		"another database": {0, "orders", &order{ID: 5}, sharding.ErrMisplaced, "row 0: row belongs to another shard: west/orders_1"},
		"physical name":    {0, "Orders_0", []order{{ID: 4}, {ID: 6}}, sharding.ErrMisplaced, "row 1: row belongs to another shard: east/orders_2"},
		"generated id":     {0, "orders", &order{}, sharding.ErrMisplaced, "row 0: row belongs to another shard: west/orders_1"},
		"literal":          {0, "INSERT INTO orders (id, user_id) VALUES (7, :id)", &order{ID: 1}, sharding.ErrMisplaced, "west/orders_3"},
		"text literal":     {0, "INSERT INTO orders (id, user_id) VALUES ('7', :id)", &order{ID: 1}, sharding.ErrMisplaced, "west/orders_3"},
		"negative":         {0, "INSERT INTO orders (user_id, id) VALUES (:id, -1)", &order{ID: 1}, sharding.ErrMisplaced, "west/orders_3"},
		"positive":         {0, "INSERT INTO orders (user_id, id) VALUES (:id, + 7)", &order{ID: 1}, sharding.ErrMisplaced, "west/orders_3"},
		"difference":       {0, "INSERT INTO orders (user_id, id) VALUES (:id, 4 - 1)", &order{ID: 1}, sharding.ErrMissingKey, "its value is an expression"},
		"negative text":    {0, "INSERT INTO orders (user_id, id) VALUES (:id, -'1')", &order{ID: 1}, sharding.ErrMissingKey, "its value is an expression"},
		"two signs":        {0, "INSERT INTO orders (user_id, id) VALUES (:id, - -1)", &order{ID: 1}, sharding.ErrMissingKey, "its value is an expression"},
		"no text of digits": {0, "INSERT INTO orders (id, user_id) VALUES ('it''s', :id)", &order{ID: 1}, sharding.ErrMissingKey,
			"its value is an expression (id); give each row's key as a parameter of its own"},
		"expression":   {0, "INSERT INTO orders (id, user_id) VALUES (:id + 0, 1)", &order{ID: 4}, sharding.ErrMissingKey, "its value is an expression"},
		"no columns":   {0, "INSERT INTO orders VALUES (:id, 1, '')", &order{ID: 4}, sharding.ErrMissingKey, "no list of columns"},
		"SELECT":       {0, "INSERT INTO orders (id, user_id) SELECT :id, 1", &order{ID: 4}, sharding.ErrMissingKey, "no VALUES"},
		"SET":          {0, "INSERT INTO orders SET id = :id", map[string]any{"id": 4}, sharding.ErrMissingKey, "no VALUES"},
		"two groups":   {0, "INSERT INTO orders (id, user_id) VALUES (:id, 1), (6, 1)", &order{ID: 4}, sharding.ErrMissingKey, "several VALUES groups"},
		"too few":      {0, "INSERT INTO orders (user_id, id) VALUES (:user_id)", map[string]any{"user_id": 4}, sharding.ErrMissingKey, "expression"},
		"not stored":   {0, "INSERT INTO orders (user_id) VALUES (:user_id)", map[string]any{"user_id": 4}, sharding.ErrMissingKey, "does not store it (id)"},
		"NULL":         {0, "orders", map[string]any{"id": nil, "user_id": 1}, sharding.ErrKeyType, "row 0: NULL"},
		"behind a CTE": {0, "WITH x AS (SELECT 1) INSERT INTO orders (id, user_id) VALUES (:id, 1)", &order{ID: 6}, sharding.ErrMisplaced, "east/orders_2"},
		"inside a CTE": {0, "WITH x AS (INSERT INTO orders (id) VALUES (:id) RETURNING id) SELECT * FROM x", &order{ID: 4}, sharding.ErrRawTable, "of its own"},
		"REPLACE":      {0, "REPLACE INTO orders (id, user_id) VALUES (:id, 1)", &order{ID: 6}, sharding.ErrMisplaced, "east/orders_2"},
	} {
		t.Run(name, func(t *testing.T) {
			h, own := newSharded(t)
			s, err := h.For("orders", c.key)
			if err != nil {
				t.Fatal(err)
			}
			before := fmt.Sprint(c.arg)
			if strings.Contains(c.query, " ") {
				_, err = h.NamedExec(t.Context(), s, c.query, c.arg)
			} else {
				_, err = h.Insert(t.Context(), s, c.query, c.arg)
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
}

func TestAHandleThatIsNotBoundMayNotNameAShardedTable(t *testing.T) {
	h, own := newSharded(t)
	tx := own["east"].MustBegin()
	conn, err := own["west"].Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = tx.Rollback(), conn.Close() }()
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
		// A physical name says nothing about the database behind the handle.
		"INSERT INTO orders_0 (id, user_id) VALUES (:id, 1)",
		"INSERT INTO log SELECT id FROM Orders_0 WHERE id = :id",
		"UPDATE orders_0 SET note = '' WHERE id = :id",
		"DELETE FROM `orders_3` WHERE id = :id",
		"SELECT * FROM orders_0 AS orders WHERE orders.id = :id",
	}
	for _, query := range refused {
		for name, e := range map[string]sqlxhook.Execer{"db": own["east"], "tx": tx, "conn": conn, "unknown database": open(t), "wrapped": &spy{Execer: tx}} {
			_, err := h.NamedExec(t.Context(), e, query, &order{ID: 4})
			var route *sharding.RouteError
			if !errors.Is(err, sharding.ErrRawTable) || !errors.As(err, &route) || !strings.Contains(err.Error(), "Hook.For") && !strings.Contains(query, "'orders'") {
				t.Errorf("%s: %s: %v", name, query, err)
			}
		}
	}
	for _, table := range []string{"orders", "orders_0"} {
		if _, err := h.Insert(t.Context(), own["east"], table, &order{ID: 4}); !errors.Is(err, sharding.ErrRawTable) {
			t.Errorf("Insert into %s: %v", table, err)
		}
		if err := queryError(t, h, own["east"], "SELECT * FROM "+table+" WHERE id = :id", &order{ID: 4}); !errors.Is(err, sharding.ErrRawTable) {
			t.Errorf("NamedQuery on %s: %v", table, err)
		}
	}
	own["east"].MustExec("CREATE TABLE log (id INTEGER, orders TEXT)")
	for _, query := range []string{
		"INSERT INTO log (id, orders) VALUES (:id, 'FROM orders')",
		"UPDATE log SET orders = 'orders' WHERE id = :id /* orders */",
		"SELECT 1 AS orders_0 FROM log AS orders WHERE orders.id = :id",
	} {
		if _, err := h.NamedExec(t.Context(), own["east"], query, &order{ID: 4}); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	ctx := sharding.Unsharded(t.Context())
	if _, err := h.NamedExec(ctx, own["east"], "INSERT INTO orders_0 (id, user_id) SELECT :id, 1", &order{ID: 4}); err != nil {
		t.Errorf("Unsharded takes names as they are: %v", err)
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

func TestAnInsertIsReadAsEverySQLModeDoes(t *testing.T) {
	db := openSilent(t, nil)
	router, err := sharding.New(sharding.DBs{"main": db}, sharding.Table{Name: "orders", Key: "id", Rule: sharding.Low(2), Map: spread(t, []string{"main"}, "orders_%d")})
	if err != nil {
		t.Fatal(err)
	}
	h, _ := newHook(t, sqlxhook.Config{Router: router, DriverName: "mysql"})
	s, err := h.For("orders", 4)
	if err != nil {
		t.Fatal(err)
	}
	// With NO_BACKSLASH_ESCAPES the first literal ends at its backslash.
	query := `INSERT INTO orders (note, id) VALUES ('a\', 7) -- ', :id)`
	if _, err := h.NamedExec(t.Context(), s, query, &order{ID: 4}); !errors.Is(err, sharding.ErrRawTable) || !strings.Contains(err.Error(), "more than one way") {
		t.Error(err)
	}
	for _, query := range []string{`INSERT INTO orders (note, id) VALUES ('it\'s', :id)`, `INSERT INTO orders (note, id) VALUES ("a", 8)`} {
		if _, err := h.NamedExec(t.Context(), s, query, &order{ID: 4}); err != nil {
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
	s, err := h.For("order", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ExecContext(t.Context(), "DELETE FROM `order` WHERE id IN (SELECT id FROM order_0 ORDER BY id)"); err != nil {
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
					if _, err := h.Insert(t.Context(), g.Shard, "orders", g.Items); err != nil {
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

func TestARouterNeedsTheNameOfADriverThatShardsCanHave(t *testing.T) {
	m := spread(t, []string{"a"}, "t_%d")
	r, err := sharding.New(sharding.DBs{"a": open(t).DB}, sharding.Table{Name: "t", Key: "id", Rule: sharding.Low(2), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	for driver, want := range map[string]string{
		"":         "it is required with a Router",
		"postgres": "a Router is for MySQL, MariaDB and SQLite",
		"pgx":      "a Router is for MySQL, MariaDB and SQLite",
	} {
		if _, err := sqlxhook.New(sqlxhook.Config{Router: r, DriverName: driver}); err == nil || !strings.Contains(err.Error(), "DriverName") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", driver, err)
		}
	}
}
