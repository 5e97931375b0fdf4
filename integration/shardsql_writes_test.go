package integration_test

import (
	"database/sql"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/changes"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// On MySQL and MariaDB, writes to several shards leave what one table has.
func TestRandomWritesToSeveralShardsLeaveWhatOneTableHas(t *testing.T) {
	for name, open := range map[string]database{"MariaDB": mariaDB(server.ShareMariaDB(t)), "MySQL": mySQL(server.ShareMySQL(t))} {
		t.Run(name, func(t *testing.T) {
			routed, whole := writtenTwins(t, open)
			programs := 150
			if os.Getenv("SHARDID_SOAK") != "" {
				programs = 20_000
			}
			done := 0
			for seed := range uint64(programs) {
				m := &changes.Maker{Rand: rand.New(rand.NewPCG(seed, 6))}
				n, err := m.Program(sharding.AllShards(t.Context()), routed, whole)
				if done += n; err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if t.Logf("%d statements", done); done < 3*programs {
				t.Error("too few succeed")
			}
		})
	}
}

// writtenTwins returns a routed database with orders whose ids carry the slot, and one
// with a single table.
func writtenTwins(t *testing.T, open database) (routed, whole *sql.DB) {
	t.Helper()
	dbs, whole := sharding.DBs{"a": open(t), "b": open(t)}, open(t)
	m, err := sharding.Spread([]string{"a", "b"}, 4, "written_orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		mustExec(t, dbs[at.DB], "CREATE TABLE "+at.Table+changes.Columns)
	}
	mustExec(t, whole, "CREATE TABLE orders"+changes.Columns)
	router, err := sharding.New(dbs, sharding.Transactions(sharding.BestEffort), sharding.Table{
		Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m, OnMissing: sharding.FanOutReads,
		Also: []sharding.Alt{{Column: "id", Rule: sharding.Mod(4)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	return routed, whole
}
