// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/schema/migrate"
)

// newSales is a shop of orders with items, which lie where their orders do.
// Orders get new ids by what ids says.
func newSales(t *testing.T, ids string) *movable {
	t.Helper()
	m := newMovable(t, 40)
	m.exec(t, "CREATE TABLE items (id INTEGER PRIMARY KEY AUTOINCREMENT, order_id INTEGER NOT NULL REFERENCES orders (id), twin INTEGER NOT NULL)",
		"INSERT INTO items (order_id, twin) SELECT id, id + 1 FROM orders WHERE id < 40")
	layout := `{"databases": {"east": {"sqlite": "east.db"}, "west": {"sqlite": "west.db"}},
		"tables": [{"name": "orders", "key": "user_id", "rule": "low(2)", "ids": "` + ids + `", "spread": {"databases": ["east", "west"], "tables": 4, "pattern": "orders_%d"}},
			{"name": "items", "key": "user_id", "rule": "low(2)", "via": "order_id", "references": [{"column": "twin", "table": "orders"}],
			"spread": {"databases": ["east", "west"], "tables": 4, "pattern": "items_%d"}}]}`
	if err := os.WriteFile(m.file("shards.json"), []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

// Order 7 of user 7 has item 7, which names order 8 as well.
func TestRowsMoveWithNewIDsAndBesideTheirParents(t *testing.T) {
	t.Setenv("ORDERS_KEY", "000102030405060708090a0b0c0d0e0f")
	keyed, err := migrate.Keyed([16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}).New(7)
	if err != nil {
		t.Fatal(err)
	}
	for ids, want := range map[string]int64{"kept": 7, "affine(10, 3)": 73, "keyed(ORDERS_KEY)": keyed, "map(orders)": 0} {
		t.Run(ids, func(t *testing.T) {
			m := newSales(t, ids)
			m.must(t, 0, "inspect")
			m.must(t, 0, "install")
			m.must(t, 0, "seed", "--margin", "1000")
			m.must(t, 0, "run", "--once")
			m.must(t, 0, "verify")
			m.must(t, 0, "cutover", "--max-pause", "10m")
			west := openFile(t, m.file("west.db"))
			var id, twin int64
			err := west.QueryRowContext(t.Context(), "SELECT o.id, i.twin FROM orders_3 o JOIN items_3 i ON i.order_id = o.id WHERE o.note = 'note 7'").Scan(&id, &twin)
			if err != nil {
				t.Fatal(err)
			}
			if want == 0 { // of the generator, which begins above every id of the source
				if id < 1041 || twin < 1041 || id == twin {
					t.Errorf("id %d, twin %d", id, twin)
				}
			} else if id != want {
				t.Errorf("id %d, want %d", id, want)
			}
			m.must(t, 0, "rollback", "--max-pause", "10m")
			if err := m.source.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM items WHERE twin = order_id + 1").Scan(&id); err != nil || id != 39 {
				t.Errorf("%d items came back (%v)", id, err)
			}
		})
	}
}

func TestACutoverComparesComputedIDsAsTheSourceKnewThem(t *testing.T) {
	m := newSales(t, "affine(10, 3)")
	m.must(t, 0, "install")
	m.must(t, 0, "seed", "--margin", "10", "--step", "10") // ids are multiplied after they are generated
	m.must(t, 0, "run", "--once")
	m.exec(t, "INSERT INTO orders (id, user_id) VALUES (51, 1)")
	if o := m.must(t, command.MigrateNotReady, "cutover", "--max-pause", "10m"); !strings.Contains(o.stderr, "orders has ids up to 51, and its generator begins at 51") {
		t.Errorf("%s", o.stderr)
	}
	m.exec(t, "DELETE FROM orders WHERE id = 51")
	m.must(t, 0, "cutover", "--max-pause", "10m")
}

func TestMistakesInIDsAreOneClearSentence(t *testing.T) {
	t.Setenv("NO_KEY", "s3cret")
	for ids, says := range map[string]string{
		"affine(1)":     "affine needs a factor and an offset",
		"affine(x, 1)":  "affine needs a factor and an offset",
		"affine(0, 1)":  "the factor must be at least 1",
		"keyed()":       "keyed needs the name of the environment variable",
		"keyed(NO_KEY)": "NO_KEY holds no key; set it to 32 hexadecimal digits",
		"map()":         "name the tag of leaf_alloc",
		"random(4)":     "write it as kept, affine(10, 3)",
		"affine":        "write it as kept, affine(10, 3)",
	} {
		m := newSales(t, ids)
		o := m.must(t, command.ExitInput, "plan")
		if !strings.Contains(o.stderr, says) || !oneSentence(o.stderr) || strings.Contains(o.stderr, "s3cret") {
			t.Errorf("%s: %s", ids, o.stderr)
		}
	}
}
