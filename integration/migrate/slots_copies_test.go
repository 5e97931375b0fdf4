// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// A copy of the new shard that lags would lack rows that were written long ago, and one of the old shard would still have
// them, so that a query of both shards would see them twice.
func TestCopiesAreNotReadUntilTheyHaveTheMovesOfSlots(t *testing.T) {
	for name, run := range map[string]func(flags ...string) database.Server{
		"MariaDB": func(flags ...string) database.Server {
			return server.RunMariaDB(t, append(flags, "--log-bin", "--binlog-format=ROW", "--log-slave-updates")...)
		},
		"MySQL": func(flags ...string) database.Server {
			s := server.RunMySQL(t, append(flags, "--log-bin", "--binlog-format=ROW")...)
			s.Renew(t)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, second, firstCopy, secondCopy := run("--server-id=1"), run("--server-id=2"), run("--server-id=3"), run("--server-id=4")
			s := newSlotShop(t, first, second, 800)
			copies := map[string]*database.Replica{"a": database.Replicate(t, first, firstCopy), "b": database.Replicate(t, second, secondCopy)}
			router, store := s.process(t)
			follower, err := store.Follow(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = follower.Close(context.WithoutCancel(t.Context())) })
			pools := map[string][]*sql.DB{"a": {database.OpenPlain(t, firstCopy, "shop_a")}, "b": {database.OpenPlain(t, secondCopy, "shop_b")}}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: s.home, Replicas: pools})
			t.Cleanup(func() { _ = routed.Close() })
			knows := func() bool {
				stored, err := store.Load(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				table, _ := router.Table("orders")
				return table.Map.Version() == stored.Version
			}
			readsCopies := func() bool {
				return database.MustNumber(t, routed, "SELECT COUNT(*) FROM orders WHERE user_id = 3 AND note = 'copy'") == 1 &&
					database.MustNumber(t, routed, "SELECT COUNT(*) FROM orders WHERE user_id = 8 AND note = 'copy'") == 1
			}
			move := func(slot sharding.Slot) {
				t.Helper()
				if _, err := s.mover(t, nil).Run(t.Context(), s.moves(0, 1, slot)...); err != nil {
					t.Fatal(err)
				}
				testwait.Until(t, "the program knows that the move has ended", knows)
			}
			move(3)
			for _, c := range copies {
				c.CatchUp(t)
			}
			database.Exec(t, pools["a"][0], "UPDATE orders_0 SET note = 'copy' WHERE id = 8")
			database.Exec(t, pools["b"][0], "UPDATE orders_1 SET note = 'copy' WHERE id = 3")
			testwait.Until(t, "copies are read", readsCopies)
			for slot, lagging := range map[sharding.Slot]string{1: "b", 2: "a"} {
				copies[lagging].Hold(t)
				move(slot)
				for range 20 {
					for query, want := range map[string]int64{"SELECT COUNT(*) FROM orders": 800, "SELECT COUNT(*) FROM orders WHERE user_id IN (1, 2)": 2} {
						if n := database.MustNumber(t, routed, query); n != want {
							t.Errorf("%s while the copy of %s lags: %d, want %d", query, lagging, n, want)
						}
					}
				}
				database.Exec(t, pools[lagging][0], "START REPLICA SQL_THREAD")
				testwait.Until(t, "the copy is read again", readsCopies)
			}
		})
	}
}
