// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
)

// A runner that waits for a connection of its own would wait for ever.
func TestAPoolThatMayOpenTooFewConnectionsIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t, 100)
	for name, pool := range map[string]*sql.DB{"source": s.source, "shard": s.shards["b"]} {
		pool.SetMaxOpenConns(3)
		if err := s.job(t, "id").Run(t.Context()); !errors.Is(err, migrate.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
		pool.SetMaxOpenConns(4)
	}
	j := s.job(t, "id")
	if err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustCutover(t, j)
	if _, err := j.Rollback(t.Context(), longPause); err != nil {
		t.Error(err)
	}
}
