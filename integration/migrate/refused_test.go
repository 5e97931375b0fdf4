// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/sharding"
)

// The application sends a join across shards after the cutover, which is refused, and again after the
// rollback. Then the router must not refuse it by the old route, but send it to the source,
// which serves again.
func TestAnApplicationWorksAtOnceAfterARollback(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		ctx := t.Context()
		s.fill(t, 100)
		router, err := sharding.New(sharding.DBs{"legacy": s.source, "a": s.shards["a"], "b": s.shards["b"]}, shopOrders(t, "id").Table,
			sharding.Migration{Source: "legacy", Tables: map[string]string{"orders": "id"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := router.Load(ctx); err != nil {
			t.Fatal(err)
		}
		db := database.RoutedSqlx(t, router, s.source)
		pairs := func() (n int, err error) {
			err = db.GetContext(ctx, &n, "SELECT COUNT(*) FROM orders a JOIN orders b ON a.user_id = b.id")
			return n, err
		}
		before, err := pairs()
		if err != nil {
			t.Fatal(err)
		}
		j := s.job(t, "id")
		if err := j.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Cutover(ctx, longPause); err != nil {
			t.Fatal(err)
		}
		if n, err := pairs(); err == nil || strings.Contains(err.Error(), "1146") {
			t.Errorf("after the switch: %d, %v", n, err)
		} else {
			t.Log(err)
		}
		if _, err := j.Rollback(ctx, longPause); err != nil {
			t.Fatal(err)
		}
		if n, err := pairs(); err != nil || n != before {
			t.Errorf("after the rollback: %d, not %d: %v", n, before, err)
		}
	})
}
