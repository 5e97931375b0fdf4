// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/rebalance"
	"github.com/shardid/shardid/sharding"
)

// The new shard's server fails over when the slots have switched, to a replica that has not received all
// of the copied rows. Only the old shard has the others.
func TestRowsStayOnTheOldShardWhileTheNewOneMayLackThem(t *testing.T) {
	logs := []string{"--log-bin", "--binlog-format=ROW", "--log-slave-updates"}
	second, copied := server.RunMariaDB(t, append(logs, "--server-id=1")...), server.RunMariaDB(t, append(logs, "--server-id=2")...)
	s := newSlotShop(t, server.RunMariaDB(t), second, 4000)
	r := database.Replicate(t, second, copied)
	b := database.NewAddress(t, second, "shop_b")
	s.dbs["b"] = b.Open(t)
	behind := false
	moves := []sharding.Move{{Slot: 1, From: s.shards[0], To: s.shards[1]}, {Slot: 2, From: s.shards[0], To: s.shards[1]}}
	m := s.mover(t, func(at rebalance.Step) {
		switch {
		case at.Name == rebalance.StepStored && !behind:
			r.CatchUp(t)
			r.CutOff(t)
			behind = true
		case at.Name == rebalance.StepSwitched:
			second.Kill()
			r.TakeOver(t)
			b.Move(copied, "shop_b")
		}
	})
	for n, says := range []string{"another server has taken over", "insert there what is missing", "insert there what is missing"} {
		if _, err := m.Run(t.Context(), moves...); !errors.Is(err, rebalance.ErrNotReady) || !strings.Contains(err.Error(), says) {
			t.Errorf("run %d ended with %v", n, err)
		}
	}
	left := database.MustNumber(t, s.dbs["a"], "SELECT COUNT(*) FROM orders_0 WHERE user_id & 7 IN (1, 2)")
	lost := 1000 - database.MustNumber(t, s.dbs["b"], "SELECT COUNT(*) FROM orders_1")
	if left != 1000 || lost == 0 {
		t.Errorf("%d rows are left, and the replica lacks %d", left, lost)
	}
	for _, id := range database.Texts(t, s.dbs["a"], "SELECT id FROM orders_0 WHERE user_id & 7 IN (1, 2)") {
		database.Exec(t, s.dbs["b"], "INSERT IGNORE INTO orders_1 (id, user_id, note) VALUES ("+id+", "+id+", 'first')")
	}
	database.Exec(t, s.dbs["a"], "DELETE FROM shardid_span WHERE job = 'slots_shop_0_1'")
	if _, err := m.Run(t.Context(), moves...); err != nil {
		t.Error(err)
	}
	left = database.MustNumber(t, s.dbs["a"], "SELECT COUNT(*) FROM orders_0 WHERE user_id & 7 IN (1, 2)")
	if moved := database.MustNumber(t, s.dbs["b"], "SELECT COUNT(*) FROM orders_1"); left != 0 || moved != 1000 {
		t.Errorf("%d rows are left, %d have moved", left, moved)
	}
}
