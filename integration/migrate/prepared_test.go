// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// A statement with arguments is prepared and executed in two steps, between which
// a job may begin or end.
func TestMigrationBeginsAndEndsWithoutAnErrorOfAPreparedStatement(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		failed, done := make([]error, 4), make([]int, 4)
		for i := range failed {
			wg.Go(func() {
				for ctx.Err() == nil && failed[i] == nil {
					_, err := s.source.ExecContext(context.Background(), s.speaks.says("UPDATE orders SET note = ? WHERE id = ?"), fmt.Sprint("by ", i, done[i]), i*20+1)
					if err != nil && (strings.Contains(err.Error(), "1146") || s.speaks == postgresShop) {
						failed[i] = err
					}
					done[i]++
				}
			})
		}
		j := s.job(t, "id")
		for range 10 {
			if err := j.Run(t.Context()); err != nil {
				t.Error(err)
			}
			if err := j.Abort(t.Context()); err != nil {
				t.Error(err)
			}
		}
		cancel()
		wg.Wait()
		for i, err := range failed {
			if err != nil {
				t.Errorf("writer %d, after %d statements: %v", i, done[i], err)
			}
		}
	})
}

// Without the log in the list, MariaDB refuses the statement.
func TestAWriterUnderLockTablesNamesTheLog(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		j := s.job(t, "id")
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		conn, err := s.source.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		for _, text := range []string{
			"LOCK TABLES orders WRITE, shardid_log_orders WRITE",
			"INSERT INTO orders (user_id, note) VALUES (3, 'locked')",
			"UPDATE orders SET note = 'locked, too' WHERE id = 7",
			"DELETE FROM orders WHERE id = 8",
			"UNLOCK TABLES",
		} {
			if _, err := conn.ExecContext(t.Context(), text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		if _, err := j.Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		s.compare(t, "id", "orders_old", "")
	})
}
