// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/testkit/changes"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/sharding"
)

// throughRouters runs a test through routers before one group: one that sends everything to
// the primary, and one that sends to the secondaries what only reads.
func throughRouters(t *testing.T, test func(t *testing.T, name string, m *server.MySQL, r *server.Router), flags ...string) {
	t.Helper()
	members := server.RunGroup(t, 3, flags...)
	for name, run := range map[string]func(testing.TB, ...*server.MySQL) *server.Router{
		"shared": server.RunRouter, "splitting": server.RunSplittingRouter,
	} {
		t.Run(name, func(t *testing.T) {
			members[0].Open(t, name)
			test(t, name, members[0], run(t, members...))
		})
	}
}

func TestIDsAreNumberedThroughMySQLRouter(t *testing.T) {
	throughRouters(t, func(t *testing.T, name string, m *server.MySQL, r *server.Router) {
		makeTables(t, m.Open(t, name))
		db := r.Open(t, name)
		if _, err := db.ExecContext(t.Context(), "DO 1"); err != nil {
			t.Fatal(err)
		}
		_, err := db.ExecContext(t.Context(), "UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(max_id + 1)")
		if !dialect.AnswersWithheld(err) {
			t.Errorf("the router shares no connections: %v", err)
		}
		s := database.StoreOn(t, db)
		t.Run("segments", func(t *testing.T) {
			keygentest.Source(t, func(*testing.T) keygen.Source { return s.Tag("orders") })
		})
		t.Run("guarded segments", func(t *testing.T) {
			keygentest.Source(t, func(*testing.T) keygen.Source { return s.GuardedTag("orders") })
		})
		t.Run("leases", func(t *testing.T) {
			keygentest.Ledger(t, func(*testing.T) workerid.Ledger { return s.Leases() })
		})
		t.Run("WORKER_NODE", func(t *testing.T) {
			var ids []int64
			for _, assigner := range []keygen.Assigner{s.WorkerNode("h", "1"), s.GuardedWorkerNode("h", "1")} {
				for range 50 {
					lease, err := assigner.Acquire(t.Context(), uidLayout)
					if err != nil {
						t.Fatal(err)
					}
					ids = append(ids, lease.ID())
				}
			}
			if id, twice := keygentest.Duplicate(ids); twice {
				t.Errorf("worker id %d was given twice", id)
			}
		})
		t.Run("everything at once", func(t *testing.T) {
			w := &writers{each: 4, calls: 50}
			w.on(testwait.Context(t), counters(t, db, s), new(atomic.Bool))
			w.check(t)
		})
	})
}

// readsSeeWrites has a secondary wait for all that was committed before it reads. By itself the
// router keeps to that within one of its clients' connections, and a pool has several.
const readsSeeWrites = "--loose-group-replication-consistency=BEFORE"

func TestStatementsAreRoutedThroughMySQLRouter(t *testing.T) {
	throughRouters(t, func(t *testing.T, name string, m *server.MySQL, r *server.Router) {
		dbs := sharding.DBs{"a": r.Open(t, name), "b": r.Open(t, name)}
		layout, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%d")
		if err != nil {
			t.Fatal(err)
		}
		whole := m.Open(t, "whole_"+name)
		routed := database.RoutedOrders(t, dbs, layout, whole)
		done := 0
		programs := effort.Cases(100, 10_000)
		for seed := range uint64(programs) {
			maker := &changes.Maker{Rand: rand.New(rand.NewPCG(seed, 6))}
			n, err := maker.Program(sharding.AllShards(t.Context()), routed, whole)
			if done += n; err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if t.Logf("%d statements", done); done < 2*programs {
			t.Error("too few succeed")
		}
	}, readsSeeWrites)
}
