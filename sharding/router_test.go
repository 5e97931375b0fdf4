// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
)

// names of databases whose *sql.DB is never used.
func databases(n int) ([]string, sharding.DBs) {
	names, dbs := make([]string, n), sharding.DBs{}
	for i := range names {
		names[i] = fmt.Sprintf("db%d", i)
		dbs[names[i]] = new(sql.DB)
	}
	return names, dbs
}

func spread(t *testing.T, dbs []string, tables int, pattern string) sharding.Map {
	t.Helper()
	m, err := sharding.Spread(dbs, tables, pattern)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEveryTargetOfEveryLayoutIsReached(t *testing.T) {
	for d := 1; d <= 6; d++ {
		names, dbs := databases(d)
		for tables := d; tables <= 24; tables++ {
			for _, factor := range []int{1, 2, 5} {
				r, err := sharding.New(dbs, sharding.Table{
					Name: "orders", Key: "id", Rule: sharding.Mod(tables * factor), Map: spread(t, names, tables, "orders_%02d"),
				})
				if err != nil {
					t.Fatal(err)
				}
				reached := map[sharding.Target]int{}
				for id := range tables * factor {
					target, err := r.Target("orders", id)
					if err != nil {
						t.Fatal(err)
					}
					reached[target]++
				}
				targets := r.Targets("orders")
				if len(targets) != tables || len(reached) != tables {
					t.Fatalf("%d databases, %d tables: %d targets, %d reached", d, tables, len(targets), len(reached))
				}
				for _, target := range targets {
					if reached[target] != factor {
						t.Fatalf("%d databases, %d tables: %s reached %d times of %d", d, tables, target, reached[target], factor)
					}
				}
			}
		}
	}
}

func TestSpreadNumbersTablesOverTheDatabasesInTurn(t *testing.T) {
	m := spread(t, []string{"a", "b"}, 4, "orders_%02d")
	if got, want := fmt.Sprint(m.Targets()), "[a/orders_00 b/orders_01 a/orders_02 b/orders_03]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMapOfPutsEachSlotOnItsTarget(t *testing.T) {
	targets := []sharding.Target{{DB: "b", Table: "old"}, {DB: "a", Table: "new"}}
	m, err := sharding.MapOf(targets...)
	if err != nil {
		t.Fatal(err)
	}
	targets[0] = sharding.Target{DB: "changed", Table: "afterwards"}
	if got, ok := m.Target(0); !ok || got.String() != "b/old" {
		t.Errorf("slot 0 is on %s", got)
	}
	for _, s := range []sharding.Slot{-1, 2} {
		if got, ok := m.Target(s); ok {
			t.Errorf("slot %d is on %s", s, got)
		}
	}
}

func TestInvalidMapsAreRefused(t *testing.T) {
	for want, make := range map[string]func() (sharding.Map, error){
		"no databases":            func() (sharding.Map, error) { return sharding.Spread(nil, 4, "o_%d") },
		"1 tables over 2":         func() (sharding.Map, error) { return sharding.Spread([]string{"a", "b"}, 1, "o_%d") },
		"\"orders\" needs one %d": func() (sharding.Map, error) { return sharding.Spread([]string{"a"}, 4, "orders") },
		"\"o_%s\" needs one %d":   func() (sharding.Map, error) { return sharding.Spread([]string{"a"}, 4, "o_%s") },
		"\"%d_%d\" needs one %d":  func() (sharding.Map, error) { return sharding.Spread([]string{"a"}, 4, "%d_%d") },
		"not a plain SQL":         func() (sharding.Map, error) { return sharding.Spread([]string{"a"}, 4, "o-%d") },
		"\"a\" occurs twice":      func() (sharding.Map, error) { return sharding.Spread([]string{"a", "b", "a"}, 4, "o_%d") },
		"a/O_1 also occurs as a/o_1": func() (sharding.Map, error) {
			return sharding.MapOf(sharding.Target{"a", "o_1"}, sharding.Target{"a", "O_1"})
		},
		"no targets":        func() (sharding.Map, error) { return sharding.MapOf() },
		"`; DROP\": not":    func() (sharding.Map, error) { return sharding.MapOf(sharding.Target{"a", "`; DROP"}) },
		"from 1 to 65536 t": func() (sharding.Map, error) { return sharding.Spread([]string{"a"}, 1<<20, "o_%d") },
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// crooked returns slots that it does not have.
type crooked struct{ slots, answer int }

func (c crooked) Slots() int                      { return c.slots }
func (c crooked) Slot(any) (sharding.Slot, error) { return sharding.Slot(c.answer), nil }

func TestNewReportsEveryMistakeWithTableAndField(t *testing.T) {
	names, dbs := databases(2)
	dbs["gone"] = nil
	shared := spread(t, names, 2, "shared_%d")
	_, err := sharding.New(dbs,
		sharding.Table{Name: "a", Key: "id", Map: spread(t, names, 2, "a_%d")},
		sharding.Table{Name: "b", Key: "id", Rule: sharding.Mod(3), Map: spread(t, names, 2, "b_%d")},
		sharding.Table{Name: "c", Key: "id`", Rule: sharding.Low(0), Map: spread(t, names, 2, "c_%d")},
		sharding.Table{Name: "", Key: "id", Rule: sharding.Low(1)},
		sharding.Table{Name: "d", Key: "id", Rule: sharding.Low(1), Map: spread(t, []string{"nowhere"}, 2, "d_%d")},
		sharding.Table{Name: "e", Key: "id", Rule: sharding.Low(1), Map: shared},
		sharding.Table{Name: "f", Key: "id", Rule: sharding.Low(1), Map: shared},
		sharding.Table{Name: "F", Key: "id", Rule: sharding.Low(1), Map: spread(t, names, 2, "f_%d")},
		sharding.Table{Name: "g_1", Key: "id", Rule: sharding.Low(2), Map: spread(t, names, 4, "G_%d")},
		sharding.Table{Name: "j", Key: "id", Rule: sharding.Low(1), Map: spread(t, names, 2, "h")},
		sharding.Table{Name: "h", Key: "id", Rule: crooked{slots: 1 << 20}, Map: spread(t, names, 2, "h_%d")},
		sharding.Table{
			Name: "i", Key: "id", Rule: (*crooked)(nil), Map: spread(t, names, 2, "i_%d"),
			Also: []sharding.Alt{{Column: "other", Rule: (*crooked)(nil)}},
		},
	)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`database "gone" is nil`,
		`table "a": Rule: is nil`, `table "i": Rule: is nil`, `table "i": Also: column "other": Rule is nil`,
		`table "b": Map: 3 slots cannot be spread evenly over 2 tables`,
		`table "c": Key:`, `table "c": Rule: Low(0): bits must be from 1 to 16`,
		`table "": Name:`, `table "": Map: has no targets`,
		`table "d": Map: target nowhere/d_0: the router has no database "nowhere"`,
		`table "f": Map: target db0/shared_0 belongs to table "e" already`,
		`table "F": Name: occurs twice`,
		`table "g_1": Map: target db1/G_1 has the logical name, and db1/G_3 is in the same database`,
		`table "j": Map: target db0/h has the name of logical table "h"`,
		`table "h": Rule: has 1048576 slots`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "nowhere"); n != 2 {
		t.Errorf("an unknown database is reported %d times", n)
	}
	if _, err := sharding.New(nil); err == nil || !strings.Contains(err.Error(), "no tables") {
		t.Errorf("an empty router: %v", err)
	}
}

func TestADatabaseHasOneName(t *testing.T) {
	names, dbs := databases(2)
	dbs["also0"] = dbs["db0"]
	_, err := sharding.New(dbs, sharding.Table{Name: "a", Key: "id", Rule: sharding.Mod(2), Map: spread(t, names, 2, "a_%d")})
	if err == nil || !strings.Contains(err.Error(), `databases "also0" and "db0" are one *sql.DB`) {
		t.Error(err)
	}
}

func TestAMapWithTooFewTargetsIsRefused(t *testing.T) {
	_, dbs := databases(1)
	m, err := sharding.MapOf(sharding.Target{DB: "db0", Table: "o_0"}, sharding.Target{DB: "db0", Table: "o_1"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = sharding.New(dbs, sharding.Table{Name: "o", Key: "id", Rule: sharding.Mod(4), Map: m})
	if err == nil || !strings.Contains(err.Error(), "4 slots need 4 targets, not 2") {
		t.Error(err)
	}
}

func router(t *testing.T) *sharding.Router {
	t.Helper()
	names, dbs := databases(2)
	r, err := sharding.New(dbs,
		sharding.Table{Name: "Orders", Key: "id", Rule: sharding.Low(3), Map: spread(t, names, 4, "orders_%d")},
		sharding.Table{Name: "items", Key: "order_id", Rule: crooked{slots: 2, answer: 2}, Map: spread(t, names, 2, "items_%d")},
		sharding.Table{Name: "notes", Key: "id", Rule: crooked{slots: 2, answer: -1}, Map: spread(t, names, 2, "notes_%d")},
	)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTableNamesIgnoreCase(t *testing.T) {
	r := router(t)
	for _, name := range []string{"orders", "Orders", "ORDERS"} {
		if got, err := r.Target(name, 7); err != nil || got.String() != "db1/orders_3" {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if table, ok := r.Table(name); !ok || table.Name != "Orders" || len(r.Targets(name)) != 4 {
			t.Errorf("%s: %v", name, table)
		}
	}
	if r.DB("db1") == nil || r.DB("DB1") != nil || len(r.Tables()) != 3 {
		t.Error("databases or tables are wrong")
	}
}

func TestRefusalsAreTypedAndNameTableAndColumn(t *testing.T) {
	r := router(t)
	for _, c := range []struct {
		table string
		key   any
		want  error
		text  string
	}{
		{"users", 1, sharding.ErrUnknownTable, "sharding: route users refused: not a sharded table; add it to the router's tables"},
		{"orders", nil, sharding.ErrKeyType, "sharding: route Orders refused: NULL: not a sharding key (id)"},
		{"items", 1, sharding.ErrNoSlot, "sharding: route items refused: slot 2: no slot for the key (order_id); give the rule a slot for it, or correct the key"},
		{"notes", 1, sharding.ErrNoSlot, "sharding: route notes refused: slot -1: no slot for the key (id); give the rule a slot for it, or correct the key"},
	} {
		_, err := r.Target(c.table, c.key)
		var route *sharding.RouteError
		if !errors.Is(err, c.want) || !errors.As(err, &route) || err.Error() != c.text {
			t.Errorf("%s %v: %v", c.table, c.key, err)
		}
	}
	if r.Targets("users") != nil {
		t.Error("an unknown table has targets")
	}
	if _, ok := r.Table("users"); ok {
		t.Error("an unknown table is known")
	}
}
