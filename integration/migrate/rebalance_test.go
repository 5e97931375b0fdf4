// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/slotstore"
)

// rebalancer runs the built program on a map of slots.
type rebalancer struct {
	*slotShop

	dir, program string
}

func newRebalancer(t *testing.T, s *slotShop) *rebalancer {
	t.Helper()
	r := &rebalancer{slotShop: s, dir: t.TempDir(), program: server.Command(t)}
	var targets, shards []string
	for range slotCount {
		targets = append(targets, `"a/orders_0"`)
	}
	for _, at := range s.shards {
		shards = append(shards, fmt.Sprintf("%q", at))
	}
	var lookedUp []string
	for _, l := range s.lookups {
		lookedUp = append(lookedUp, fmt.Sprintf(`{"column": %q, "table": %q, "unique": %t}`, l.Column, l.Table, l.Unique))
	}
	layout := fmt.Sprintf(`{"databases": {"home": {"file": "home"}, "a": {"file": "a"}, "b": {"file": "b"}, "c": {"file": "c"}}, "home": "home",
		"tables": [{"name": "orders", "key": "user_id", "rule": "low(3)", "also": [{"column": "id", "rule": "low(3)"}], "targets": [%s], "lookups": [%s]}],
		"slots": {"name": "shop", "term": "1s", "shards": {"orders": [%s]}}}`, strings.Join(targets, ", "), strings.Join(lookedUp, ", "), strings.Join(shards, ", "))
	files := map[string]string{"shards.json": layout}
	for i, name := range []string{"home", "a", "b", "c"} {
		files[name] = s.dsns[i]
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// bring runs the command until it ends by itself, and kills it a few times before.
func (r *rebalancer) bring(t *testing.T, kills int, args ...string) {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(kills), 7))
	for killed := 0; ; killed++ {
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), r.program, append([]string{"rebalance", "run", "--config", "shards.json", "--slots", "2"}, args...)...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = r.dir, &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if killed < kills {
			timer := time.AfterFunc(time.Duration(100+random.IntN(1500))*time.Millisecond, func() { _ = cmd.Process.Kill() })
			err := cmd.Wait()
			timer.Stop()
			if cmd.ProcessState.Exited() {
				t.Logf("it ended before it was killed: %v %s", err, out.String())
				if err == nil {
					return
				}
			}
			continue
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		t.Logf("after %d kills: %s", killed, out.String())
		return
	}
}

// slotsOf returns how many slots each shard has.
func (r *rebalancer) slotsOf(t *testing.T) string {
	t.Helper()
	_, store := r.process(t)
	v, err := store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slots := make([]int, len(r.shards))
	for _, s := range v.Slots {
		if s.State != slotstore.Active {
			t.Errorf("slot %d is %s", s.Slot, s.State)
		}
		slots[s.Shard]++
	}
	return fmt.Sprint(slots)
}

// All slots are on the first server. The second one is added, then a third database, and
// that one is drained again.
func TestServersAreAddedAndDrainedByCommandUnderWritersAndKills(t *testing.T) {
	test := func(t *testing.T, first, second database.Server) {
		t.Helper()
		s := newSlotShop(t, first, second, 2000)
		s.dbs["c"] = first.Open(t, "shop_c")
		s.shards = append(s.shards, sharding.Target{DB: "c", Table: "orders_2"})
		s.dsns = append(s.dsns, first.DSN("shop_c"))
		r := newRebalancer(t, s)
		stop := s.writers(t)
		r.bring(t, 3, "--drain", "c")
		if got := r.slotsOf(t); got != "[4 4 0]" {
			t.Errorf("slots %s with two servers", got)
		}
		r.bring(t, 4)
		if got := r.slotsOf(t); got != "[3 3 2]" && got != "[3 2 3]" && got != "[2 3 3]" {
			t.Errorf("slots %s with three", got)
		}
		r.bring(t, 3, "--drain", "c")
		if got := r.slotsOf(t); got != "[4 4 0]" {
			t.Errorf("slots %s with two again", got)
		}
		writers := stop()
		s.check(t, 2000, writers)
	}
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		test(t, server.RunMariaDB(t), server.RunMariaDB(t))
	})
	t.Run("MySQL", func(t *testing.T) {
		t.Parallel()
		test(t, server.RunMySQL(t), server.RunMySQL(t))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, server.RunPostgres(t), server.RunPostgres(t))
	})
}

// Slots move while writers change a column with a unique lookup in rows of them.
func TestALookupTableIsKeptWhileSlotsMoveUnderWritersAndKills(t *testing.T) {
	m := server.RunMariaDB(t)
	s := newSlotShop(t, m, server.RunMariaDB(t), 2000)
	database.Exec(t, s.dbs["a"], "UPDATE orders_0 SET note = CONCAT('first', id)")
	database.Exec(t, s.dbs["a"], "CREATE UNIQUE INDEX by_note ON orders_0 (note)")
	s.dbs["c"] = m.Open(t, "shop_c")
	s.shards = append(s.shards, sharding.Target{DB: "c", Table: "orders_2"})
	s.dsns = append(s.dsns, m.DSN("shop_c"))
	on := func(building bool) lookups.Config {
		s.lookups = []sharding.Lookup{{Column: "note", Table: "orders_by_note", Unique: true, Building: building}}
		router, store := s.process(t)
		follower, err := store.Follow(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = follower.Close(context.Background()) })
		return lookups.Config{Router: router, Home: s.home, Table: "orders", Column: "note"}
	}
	building := on(true)
	if err := lookups.Create(t.Context(), building); err != nil {
		t.Fatal(err)
	}
	if report, err := lookups.Build(t.Context(), building); err != nil || report.Rows != 2000 {
		t.Fatalf("%+v, %v", report, err)
	}
	built := on(false)
	r := newRebalancer(t, s)
	stop := s.writers(t)
	r.bring(t, 3)
	r.bring(t, 3, "--drain", "c")
	writers := stop()
	s.check(t, 2000, writers)
	if report, err := lookups.Verify(t.Context(), built); err != nil {
		t.Errorf("%+v, %v", report, err)
	} else {
		t.Logf("%+v", report)
	}
}
