// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
)

// kills is how often something is killed: less in a usual run, more in a long
// one.
func kills() int {
	if effort.Soak() {
		return 500
	}
	return 50
}

func TestNoIDComesTwiceWhenMariaDBIsKilledAgainAndAgain(t *testing.T) {
	m := server.RunMariaDB(t, "--innodb-flush-log-at-trx-commit=1")
	open := database.MariaDB(m)
	const writers = 8
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results := make([][]int64, writers)
	var wg sync.WaitGroup
	for i := range writers {
		_, store := open.Store(t)
		g := openSegment(t, store, 20) // small, so that a kill falls into reservations
		wg.Go(func() {
			for ctx.Err() == nil {
				if id, err := g.Next(ctx); err == nil {
					results[i] = append(results[i], id)
				} else if !errors.Is(err, keygen.ErrStarved) {
					t.Error(err)
					return
				}
			}
		})
	}
	db := open(t)
	for range kills() {
		waitForProgress(t, db)
		m.Kill()
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	waitForProgress(t, db)
	cancel()
	wg.Wait()
	var ids []int64
	for _, r := range results {
		ids = append(ids, r...)
	}
	t.Logf("%d ids over %d kills", len(ids), kills())
	if id, twice := keygentest.Duplicate(ids); twice || len(ids) == 0 {
		t.Errorf("%d came twice, of %d ids", id, len(ids))
	}
}

// waitForProgress returns once ids were reserved after the call.
func waitForProgress(t *testing.T, db *sql.DB) {
	t.Helper()
	first := int64(-1)
	testwait.Until(t, "ids are reserved after a restart", func() bool {
		maxID, err := database.Number(t.Context(), db, "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'")
		if err == nil && first < 0 {
			first = maxID
		}
		return err == nil && maxID > first+2000
	})
}

// The opposite of the test above, to show that its kind of kill finds what it
// looks for.
func TestAMariaDBThatDoesNotFlushGivesRangesTwiceWhenKilled(t *testing.T) {
	server.OnDisk(t)
	m := server.RunMariaDB(t, "--innodb-flush-log-at-trx-commit=0", "--innodb-flush-log-at-timeout=2700")
	db := m.Open(t, "app")
	database.Exec(t, db, "SET GLOBAL innodb_flush_log_at_trx_commit = 1") // the tables are not what is to be lost
	tag := database.Prepare(t, db).Tag("orders")
	database.Exec(t, db, "SET GLOBAL innodb_flush_log_at_trx_commit = 0")
	for ctx, kill := testwait.Context(t), 0; ctx.Err() == nil; kill++ {
		var last int64
		for range 100 {
			span, err := tag.Reserve(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			last = span.Last()
		}
		m.Kill()
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		span, err := tag.Reserve(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		if span.First <= last {
			t.Logf("kill %d: %d was given again, %d had been reached", kill+1, span.First, last)
			return
		}
	}
	t.Error("kills of a server that does not flush lost nothing: kills do not show what they should")
}
