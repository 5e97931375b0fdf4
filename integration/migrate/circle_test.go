// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testwait"
)

// A transaction that has changed a shard searches another one, as a statement without the sharding key does. A rollback
// has locked that one already, and waits for the transaction: no server sees the circle.
func TestARollbackDoesNotWaitInACircleWithATransactionThatReadsAnotherShard(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		j := s.job(t, "id")
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		tx, err := s.shards["b"].BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), "UPDATE orders_01 SET note = 'open' WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		const pause = 5 * time.Second // in which the transaction ends, unless it waits for the rollback
		var rolling sync.WaitGroup
		rolling.Go(func() { _, err = j.Rollback(t.Context(), pause) })
		testwait.Until(t, "the rollback waits for the transaction", func() bool { return len(database.Texts(t, s.shards["b"], s.speaks.waiting)) > 0 })
		var n int
		if err := s.shards["a"].QueryRowContext(context.WithoutCancel(t.Context()), "SELECT COUNT(*) FROM orders_00").Scan(&n); err != nil {
			t.Error(err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		rolling.Wait()
		if err != nil {
			t.Error(err)
		}
		s.compare(t, "id", "orders", "_sealed")
	})
}
