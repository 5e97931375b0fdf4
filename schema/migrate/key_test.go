// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"testing"

	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

func TestAnEmptyTextIsAShardingKey(t *testing.T) {
	t.Parallel()
	s := newShop(t, 20)
	exec(t, s.source, "UPDATE orders SET note = ''") // that of the first row, too
	j := s.job(t, "note", func(c *migrate.Config) { c.Tables[0].Rule = sharding.HashText(4) })
	mustRun(t, j)
	if v, err := j.Verify(t.Context()); err != nil || !v.Clean() || v.Rows != 20 {
		t.Errorf("%+v, %v", v, err)
	}
}
