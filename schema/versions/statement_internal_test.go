// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqltext"
)

var flavors = map[string]sqltext.Flavor{"mysql": sqltext.MySQL, "postgres": sqltext.PostgreSQL, "sqlite": sqltext.SQLite}

// Each statement stands beside what orders_2 and items_2 are sent. The first ones make the
// names that the later ones drop.
var rewritten = []struct{ dialect, text, want string }{
	{"mysql", "CREATE TABLE orders (id INT, CONSTRAINT u UNIQUE (id), CONSTRAINT p CHECK (`orders`.id > 0))", "CREATE TABLE `orders_2` (id INT, CONSTRAINT u UNIQUE (id), CONSTRAINT `p_orders_2` CHECK (`orders_2`.id > 0))"},
	{"mysql", "CREATE TABLE IF NOT EXISTS items LIKE orders", "CREATE TABLE IF NOT EXISTS `items_2` LIKE `orders_2`"},
	{"mysql", "CREATE UNIQUE INDEX i USING BTREE ON Orders (id) COMMENT 'orders'", "CREATE UNIQUE INDEX i USING BTREE ON `orders_2` (id) COMMENT 'orders'"},
	{"mysql", "ALTER TABLE items ADD CONSTRAINT f FOREIGN KEY (o) REFERENCES orders (id), ALGORITHM = INPLACE", "ALTER TABLE `items_2` ADD CONSTRAINT `f_items_2` FOREIGN KEY (o) REFERENCES `orders_2` (id), ALGORITHM = INPLACE"},
	{"mysql", "ALTER TABLE items DROP FOREIGN KEY f, DROP COLUMN o", "ALTER TABLE `items_2` DROP FOREIGN KEY `f_items_2`, DROP COLUMN o"},
	{"mysql", "ALTER TABLE orders DROP CONSTRAINT p, DROP CONSTRAINT u", "ALTER TABLE `orders_2` DROP CONSTRAINT `p_orders_2`, DROP CONSTRAINT u"},
	{"mysql", "ALTER TABLE orders RENAME COLUMN a TO orders, RENAME INDEX i TO j, MODIFY b ENUM('x', 'y') DEFAULT 'x'", "ALTER TABLE `orders_2` RENAME COLUMN a TO orders, RENAME INDEX i TO j, MODIFY b ENUM('x', 'y') DEFAULT 'x'"},
	{"mysql", "ALTER TABLE orders ADD c INT GENERATED ALWAYS AS (id + 1), ADD PARTITION (PARTITION p9 VALUES LESS THAN (9))", "ALTER TABLE `orders_2` ADD c INT GENERATED ALWAYS AS (id + 1), ADD PARTITION (PARTITION p9 VALUES LESS THAN (9))"},
	{"mysql", "RENAME TABLE orders TO items", "RENAME TABLE `orders_2` TO `items_2`"},
	{"mysql", "DROP INDEX i ON orders", "DROP INDEX i ON `orders_2`"},
	{"postgres", "CREATE TABLE orders (id INT CONSTRAINT one PRIMARY KEY, t TEXT COLLATE pg_catalog.\"C\", CONSTRAINT p CHECK (\"orders\".id > 0)); -- orders", "CREATE TABLE \"orders_2\" (id INT CONSTRAINT \"one_orders_2\" PRIMARY KEY, t TEXT COLLATE pg_catalog.\"C\", CONSTRAINT \"p_orders_2\" CHECK (\"orders_2\".id > 0))"},
	{"postgres", "CREATE TABLE items (LIKE orders INCLUDING ALL)", "CREATE TABLE \"items_2\" (LIKE \"orders_2\" INCLUDING ALL)"},
	{"postgres", "CREATE INDEX CONCURRENTLY IF NOT EXISTS i ON ONLY orders USING gin (t) WHERE orders.id > 0", "CREATE INDEX CONCURRENTLY IF NOT EXISTS \"i_orders_2\" ON ONLY \"orders_2\" USING gin (t) WHERE \"orders_2\".id > 0"},
	{"postgres", "ALTER TABLE ONLY orders ADD CONSTRAINT k UNIQUE USING INDEX i, VALIDATE CONSTRAINT p", "ALTER TABLE ONLY \"orders_2\" ADD CONSTRAINT \"k_orders_2\" UNIQUE USING INDEX \"i_orders_2\", VALIDATE CONSTRAINT \"p_orders_2\""},
	{"postgres", "ALTER TABLE orders RENAME CONSTRAINT k TO l", "ALTER TABLE \"orders_2\" RENAME CONSTRAINT \"k_orders_2\" TO \"l_orders_2\""},
	{"postgres", "ALTER TABLE orders ALTER COLUMN t SET DEFAULT $$orders; it's$$, DROP CONSTRAINT IF EXISTS p", "ALTER TABLE \"orders_2\" ALTER COLUMN t SET DEFAULT $$orders; it's$$, DROP CONSTRAINT IF EXISTS \"p_orders_2\""},
	{"postgres", "COMMENT ON COLUMN orders.t IS 'of orders'", "COMMENT ON COLUMN \"orders_2\".t IS 'of orders'"},
	{"postgres", "DROP INDEX CONCURRENTLY i", "DROP INDEX CONCURRENTLY \"i_orders_2\""},
	{"postgres", "DROP TABLE IF EXISTS items, orders CASCADE", "DROP TABLE IF EXISTS \"items_2\", \"orders_2\" CASCADE"},
	{"sqlite", "CREATE TABLE [orders] (id INTEGER PRIMARY KEY, CONSTRAINT p CHECK (id > 0)) STRICT, WITHOUT ROWID", "CREATE TABLE \"orders_2\" (id INTEGER PRIMARY KEY, CONSTRAINT p CHECK (id > 0)) STRICT, WITHOUT ROWID"},
	{"sqlite", "CREATE INDEX i ON orders (id)", "CREATE INDEX \"i_orders_2\" ON \"orders_2\" (id)"},
	{"sqlite", "ALTER TABLE orders RENAME COLUMN a TO b", "ALTER TABLE \"orders_2\" RENAME COLUMN a TO b"},
	{"sqlite", "DROP INDEX IF EXISTS i", "DROP INDEX IF EXISTS \"i_orders_2\""},
}

func TestOnlyNamesAreReplaced(t *testing.T) {
	known := map[string]*catalog{"mysql": newCatalog(), "postgres": newCatalog(), "sqlite": newCatalog()}
	physical := map[string]string{"orders": "orders_2", "items": "items_2"}
	for _, c := range rewritten {
		d, err := dialect.Named(c.dialect)
		if err != nil {
			t.Fatal(err)
		}
		s, err := read(c.text, c.dialect, flavors[c.dialect], known[c.dialect])
		if err == nil {
			err = known[c.dialect].settle(s, c.dialect)
		}
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got, err := s.on(d, physical); err != nil || got != c.want {
			t.Errorf("%s: %s\nbecomes %s\nand not  %s (%v)", c.dialect, c.text, got, c.want, err)
		}
	}
}

// A definition of one shard, with logical names again, is that of another.
func TestDefinitionsAreComparedByLogicalNames(t *testing.T) {
	const shard = "CONSTRAINT `f_items_%` FOREIGN KEY (`o`) REFERENCES `orders_%` (`id`), KEY `items_%_ibfk_1` (`o`) DEFAULT 'nextval(items_%_id_seq)'"
	var lines []string
	for _, n := range []string{"2", "3"} {
		line := strings.ReplaceAll(shard, "%", n)
		lines = append(lines, logical(line, sqltext.MySQL, map[string]string{"orders": "orders_" + n, "items": "items_" + n}))
	}
	if want := "CONSTRAINT f FOREIGN KEY ( o ) REFERENCES orders ( id ) , KEY items_ibfk_1 ( o ) DEFAULT 'nextval(items_id_seq)'"; lines[0] != want || lines[1] != want {
		t.Errorf("%q", lines)
	}
}

// Of two tables, one of whose names ends or begins with the other's, the longer one is meant.
func TestDefinitionsOfTablesWithSimilarNamesAreComparedByTheLongestName(t *testing.T) {
	const shard = "KEY `idx_order_items_%` (`o`), KEY `items_old_%_ibfk_1` (`o`) DEFAULT 'nextval(order_items_%_id_seq)'"
	const want = "KEY idx ( o ) , KEY history_ibfk_1 ( o ) DEFAULT 'nextval(lines_id_seq)'"
	for range 50 { // maps have no order
		for _, n := range []string{"0", "1"} {
			physical := map[string]string{"items": "items_" + n, "lines": "order_items_" + n, "order_items": "items_old", "history": "items_old_" + n}
			if got := logical(strings.ReplaceAll(shard, "%", n), sqltext.MySQL, physical); got != want {
				t.Fatalf("%s\nand not %s", got, want)
			}
		}
	}
}

// Whatever a text is, reading it ends, and what it becomes differs in names alone.
func FuzzRead(f *testing.F) {
	for _, c := range rewritten {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, flavor := range flavors {
			d, err := dialect.Named(name)
			if err != nil {
				t.Fatal(err)
			}
			known := newCatalog()
			s, err := read(text, name, flavor, known)
			if err != nil || known.settle(s, name) != nil {
				continue
			}
			physical := map[string]string{}
			for _, table := range s.tables {
				physical[fold(table)] = table
			}
			got, err := s.on(d, physical)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if a, b := words(s.sql, flavor), words(got, flavor); a != b {
				t.Fatalf("%s: %q becomes %q", name, a, b)
			}
		}
	})
}

// words is a text without what quotes and cases of names differ in.
func words(text string, flavor sqltext.Flavor) (all string) {
	s := sqltext.NewScanner(text, flavor)
	for {
		t, ok := s.NextCode()
		if !ok {
			return all
		}
		all += " " + fold(sqltext.Ident(text, t))
	}
}
