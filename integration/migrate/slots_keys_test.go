// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/rebalance"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

// keyedShop has carts of ten users and an item of each in the first of two shards, in slot 0 or 1. On each shard a foreign key
// connects both tables.
func keyedShop(t *testing.T, dbs sharding.DBs, rule string) (store *slotstore.Store, moves []sharding.Move) {
	t.Helper()
	shards := map[string][]sharding.Target{}
	var tables []sharding.Table
	for _, name := range []string{"carts", "items"} {
		shards[name] = []sharding.Target{{DB: "a", Table: name + "_0"}, {DB: "b", Table: name + "_1"}}
		m, err := sharding.MapOf(shards[name][0], shards[name][0])
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, sharding.Table{Name: name, Key: "user_id", Rule: sharding.Low(1), Map: m, Group: "shop"})
	}
	tables[1].Parents = []sharding.Parent{{Column: "cart_id", Table: "carts"}}
	for i, at := range shards["carts"] {
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(9))")
		database.Exec(t, dbs[at.DB], fmt.Sprintf("CREATE TABLE items_%d (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, cart_id BIGINT NOT NULL, FOREIGN KEY (cart_id) REFERENCES %s (id) %s)", i, at.Table, rule))
	}
	for id := range 10 {
		database.Exec(t, dbs["a"], fmt.Sprintf("INSERT INTO carts_0 VALUES (%d, %[1]d, 'old')", id))
		database.Exec(t, dbs["a"], fmt.Sprintf("INSERT INTO items_0 VALUES (%d, %[1]d, %[1]d)", id))
	}
	router, err := sharding.New(dbs, sharding.Tables(tables...))
	if err != nil {
		t.Fatal(err)
	}
	if store, err = slotstore.New(t.Context(), slotstore.Config{Name: "keyed", DB: dbs["a"], Router: router, Term: 300 * time.Millisecond, Shards: shards}); err != nil {
		t.Fatal(err)
	}
	if err := store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store, []sharding.Move{{Slot: 1, From: shards["carts"][0], To: shards["carts"][1]}}
}

func TestSlotsMovePastTheForeignKeysOfTheirShards(t *testing.T) {
	for name, c := range map[string]struct {
		open database.DSNOpener
		rule string
	}{
		"MariaDB": {server.RunMariaDB(t), ""}, "MySQL": {server.RunMySQL(t), ""}, "PostgreSQL": {server.RunPostgres(t), ""}, "PostgreSQL, cascading": {server.RunPostgres(t), "ON DELETE CASCADE"},
	} {
		t.Run(name, func(t *testing.T) {
			dbs := sharding.DBs{"a": c.open.Open(t, "keyed_a"), "b": c.open.Open(t, "keyed_b")}
			store, moves := keyedShop(t, dbs, c.rule)
			m, err := rebalance.NewMover(rebalance.MoverConfig{Store: store, Observe: func(s rebalance.Step) {
				if s.Name == rebalance.StepCompared { // the row of the cart is deleted on the new shard, and inserted again
					database.Exec(t, dbs["a"], "UPDATE carts_0 SET note = 'new' WHERE id = 3")
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			if moved, err := m.Run(t.Context(), moves...); err != nil || moved.Slots != 1 {
				t.Fatalf("%+v, %v", moved, err)
			}
			const query = "SELECT CONCAT(c.id, c.note, i.id) FROM carts_%d c JOIN items_%[1]d i ON i.cart_id = c.id"
			for i, want := range [][]string{{"0old0", "2old2", "4old4", "6old6", "8old8"}, {"1old1", "3new3", "5old5", "7old7", "9old9"}} {
				got := database.Texts(t, dbs[moves[0].From.DB], fmt.Sprintf(query, 0))
				if i == 1 {
					got = database.Texts(t, dbs[moves[0].To.DB], fmt.Sprintf(query, 1))
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("shard %d has %q, want %q", i, got, want)
				}
			}
		})
	}
}

func TestAMoverThatMayNotIgnoreForeignKeysMovesNothing(t *testing.T) {
	p := server.RunPostgres(t)
	dbs := sharding.DBs{"a": database.PostgresAs(t, p, "keyed_a", "mover", "GRANT CREATE, USAGE ON SCHEMA public TO mover"), "b": p.Open(t, "keyed_b")}
	store, moves := keyedShop(t, dbs, "")
	m, err := rebalance.NewMover(rebalance.MoverConfig{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Run(t.Context(), moves...)
	if !errors.Is(err, rebalance.ErrNotReady) {
		t.Errorf("got %v", err)
	}
	v, err := store.Load(t.Context())
	if err != nil || v.Slots[1].State != slotstore.Active {
		t.Errorf("%+v, %v", v, err)
	}
}
