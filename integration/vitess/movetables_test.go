// SPDX-License-Identifier: Apache-2.0

package vitess_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
)

// oldRows is how many rows are there before the writers begin.
const oldRows = 50_000

// firstOfWriters is above the keys of the old rows.
const firstOfWriters = 1_000_000

func TestMoveTablesTakesATableIntoShardsUnderWritersThereAndBackAndThere(t *testing.T) {
	p, s := newSection(t, "From one database, live"), newSite(t)
	old := s.addDatabase(t, "main")
	execf(t, old, ordersTable, "orders")
	fillOrders(t, old)
	r := newRouter(t, sharding.DBs{"east": s.addDatabase(t, "east"), "west": s.addDatabase(t, "west")}, 2, "orders")
	s.write(t, "vitess.json", configOf(t, page))
	s.run(t, p, "shardid export vitess")
	s.run(t, p, "./vitess/apply.sh vitess")
	s.run(t, p, `vtctldclient --server "$VTCTLD" CreateKeyspace`)
	s.run(t, p, "vttablet")
	s.externallyReparented(t, p)
	s.serves(t, "main", "SELECT user_id FROM orders LIMIT 1")

	main := s.open(t, "main")
	w := &traffic{insert: insertInto(main), first: firstOfWriters, retry: refusedBySwitch}
	stop := w.run(t)
	defer stop()
	w.goesOn(t, 50)
	moveTables := func(command string) time.Duration {
		begin := time.Now()
		s.run(t, p, `vtctldclient --server "$VTCTLD" MoveTables --workflow out --target-keyspace shop `+command)
		w.goesOn(t, 50)
		return time.Since(begin)
	}
	begin := time.Now()
	moveTables("create")
	s.copied(t, p, r)
	copyTime := time.Since(begin)
	s.compared(t, p)
	there := moveTables("switchtraffic")
	inShards := rowsIn(t, r)
	back := moveTables("reversetraffic")
	moveTables("switchtraffic")
	if after := rowsIn(t, r); after <= inShards {
		t.Errorf("the shards had %d rows after the first switch and %d after the last", inShards, after)
	}
	shop := s.open(t, "shop")
	w.pause(func() {}, insertInto(shop)) // both names lead to the shards until the end
	moveTables("complete")
	stop()
	w.found(t, shop, oldRows)
	w.foundRouted(t, r)
	if n := rowsIn(t, r); n != oldRows+int64(len(w.keys())) {
		t.Errorf("the shards have %d rows, want %d", n, oldRows+len(w.keys()))
	}
	s.run(t, p, "shardid doctor")
	t.Logf("%d rows and %d of writers: copied in %v, switched in %v, back in %v; %d statements were sent again",
		oldRows, len(w.keys()), copyTime.Round(time.Millisecond), there.Round(time.Millisecond), back.Round(time.Millisecond), w.refused.Load())
}

func fillOrders(t *testing.T, db *sql.DB) {
	t.Helper()
	const batch = 1000
	for from := 0; from < oldRows; from += batch {
		var rows []string
		for id := from; id < from+batch; id++ {
			rows = append(rows, fmt.Sprintf("(%d, %[1]d)", id))
		}
		execf(t, db, "INSERT INTO orders (id, user_id) VALUES %s", strings.Join(rows, ", "))
	}
}

func rowsIn(t *testing.T, r *sharding.Router) (n int64) {
	t.Helper()
	for _, at := range r.Targets("orders") {
		n += number(t.Context(), t, r.DB(at.DB), "SELECT COUNT(*) FROM %s", at.Table)
	}
	return n
}

// refusedBySwitch tells whether vtgate has refused a statement because its table moved:
// nothing was written, and the writer sends it again.
func refusedBySwitch(err error) bool {
	var refused *mysql.MySQLError
	return errors.As(err, &refused) && (strings.Contains(refused.Message, "disallowed due to rule") ||
		strings.Contains(refused.Message, "denied tables") || strings.Contains(refused.Message, "not serving"))
}

// follows is what status says of a stream that has copied its rows and follows the changes.
const follows = "Status: Running. VStream Lag:"

// copied waits until each shard's stream follows.
func (s *site) copied(t *testing.T, p *section, r *sharding.Router) {
	t.Helper()
	var out string
	testwait.Until(t, "the copy is done", func() bool {
		out = s.run(t, p, `vtctldclient --server "$VTCTLD" MoveTables --workflow out --target-keyspace shop status`)
		return strings.Count(out, follows) == len(r.Targets("orders"))
	})
	if n := rowsIn(t, r); n < oldRows {
		t.Errorf("the shards have %d rows of %d", n, oldRows)
	}
}

// compared has Vitess compare the rows of both sides.
func (s *site) compared(t *testing.T, p *section) {
	t.Helper()
	s.run(t, p, `vtctldclient --server "$VTCTLD" VDiff --workflow out --target-keyspace shop create`)
	var out string
	testwait.Until(t, "the comparison is done", func() bool {
		out = s.run(t, p, `vtctldclient --server "$VTCTLD" VDiff --workflow out --target-keyspace shop show`)
		return strings.Contains(out, "completed")
	})
	if !strings.Contains(strings.Join(strings.Fields(out), " "), "HasMismatch: false") {
		t.Errorf("%s", out)
	}
}

func (s *site) externallyReparented(t *testing.T, p *section) {
	t.Helper()
	testwait.Until(t, "the vttablet of main is in the topology", func() bool {
		out, err := s.tryCtl(t, "GetTablets", "--keyspace", "main")
		return err == nil && strings.Contains(out, "main") || s.ctx.Err() != nil
	})
	s.run(t, p, `vtctldclient --server "$VTCTLD" TabletExternallyReparented`)
	for _, keyspace := range []string{"main", "shop"} {
		testwait.Until(t, "the primaries of "+keyspace+" have begun to replicate", func() bool { // a busy machine lets them wait
			_, err := s.tryCtl(t, "Workflow", "--keyspace", keyspace, "list")
			return err == nil || s.ctx.Err() != nil
		})
	}
}
