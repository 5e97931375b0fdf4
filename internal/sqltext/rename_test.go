package sqltext_test

import (
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/sqltext"
)

// third gives orders and items the names of a physical table.
func third(name string) (string, bool) {
	switch strings.ToLower(name) {
	case "orders", "items":
		return "`" + strings.ToLower(name) + "_3`", true
	}
	return "", false
}

var mysqlReadings = []sqltext.Flavor{
	sqltext.MySQL, sqltext.MySQL &^ sqltext.BackslashEscapes, sqltext.MySQL &^ sqltext.DoubleQuoteStrings,
	sqltext.MySQL &^ (sqltext.BackslashEscapes | sqltext.DoubleQuoteStrings),
}

func TestRenameChangesTheNamesOfTablesAndNothingElse(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT * FROM orders WHERE id = ?":                                  "SELECT * FROM `orders_3` WHERE id = ?",
		"select * from ORDERS/**/where `Orders`.`id` = ?":                    "select * from `orders_3`/**/where `orders_3`.`id` = ?",
		"SELECT orders.*, 'orders' FROM orders -- orders":                    "SELECT `orders_3`.*, 'orders' FROM `orders_3` -- orders",
		"SELECT o.id FROM orders o JOIN items AS i ON i.order_id = o.id":     "SELECT o.id FROM `orders_3` o JOIN `items_3` AS i ON i.order_id = o.id",
		"SELECT orders.id FROM orders AS orders":                             "SELECT orders.id FROM `orders_3` AS orders",
		"SELECT orders FROM log WHERE orders = 1":                            "SELECT orders FROM log WHERE orders = 1",
		"UPDATE orders SET orders = 1, orders.note = 'a\nb'":                 "UPDATE `orders_3` SET orders = 1, `orders_3`.note = 'a\nb'",
		"INSERT INTO orders (orders, id) VALUES (?, ?)":                      "INSERT INTO `orders_3` (orders, id) VALUES (?, ?)",
		"REPLACE orders VALUES (?)":                                          "REPLACE `orders_3` VALUES (?)",
		"DELETE orders FROM orders JOIN items ON items.order_id = orders.id": "DELETE `orders_3` FROM `orders_3` JOIN `items_3` ON `items_3`.order_id = `orders_3`.id",
		"SELECT 1 FROM log WHERE id IN (SELECT id FROM orders)":              "SELECT 1 FROM log WHERE id IN (SELECT id FROM `orders_3`)",
		"SELECT 1 /*! FROM orders */":                                        "SELECT 1 /*! FROM `orders_3` */",
		`SELECT 'it\'s' FROM orders`:                                         "SELECT 'it\\'s' FROM `orders_3`",
		"SELECT 1 FROM log":                                                  "SELECT 1 FROM log",
		"":                                                                   "",
	} {
		got, err := sqltext.Rename(sql, mysqlReadings, third)
		if err != nil || got != want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", sql, got, err, want)
		}
		if again, err := sqltext.Rename(got, mysqlReadings, third); err != nil || again != got {
			t.Errorf("a second time: %s, %v", again, err)
		}
	}
}

func TestRenameRefusesWhatItCannotTell(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT * FROM shop.orders":                     "leave the database out",
		"SELECT * FROM 'orders'":                        "named by a string",
		"SELECT * FROM \"orders\"":                      "named by a string",
		`SELECT 'a\' FROM log, orders -- '`:             "more than one way",
		"SELECT * FROM orders WHERE note = 'not closed": "not closed",
	} {
		if got, err := sqltext.Rename(sql, mysqlReadings, third); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %s, %v", sql, got, err)
		}
	}
}

func FuzzRenameTouchesNothingButTheNames(f *testing.F) {
	f.Add("SELECT orders.id FROM orders AS o, 'items' -- x\n WHERE `orders`.a = \"b\"")
	f.Add("UPDATE /*! orders */ SET x = $$orders$$")
	f.Fuzz(func(t *testing.T, sql string) {
		for _, flavor := range []sqltext.Flavor{sqltext.MySQL, sqltext.SQLite, sqltext.PostgreSQL} {
			marked := func(name string) (string, bool) { return "\x01" + name, strings.EqualFold(name, "orders") }
			got, err := sqltext.Rename(sql, []sqltext.Flavor{flavor}, marked)
			if err != nil || strings.Contains(sql, "\x01") {
				continue
			}
			bare := strings.NewReplacer("\x01", "", "`", "", `"`, "", "[", "", "]", "")
			if bare.Replace(got) != bare.Replace(sql) {
				t.Fatalf("%q became %q", sql, got)
			}
		}
	})
}
