// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// A shard is renamed to its name and _sealed by a rollback, which makes 64 letters, the
// most that servers take.
func TestATableByIntervalsAndOfALongNameMigratesAndComesBack(t *testing.T) {
	const pause = 5 * time.Second
	name := strings.Repeat("n", 57)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rule := sharding.Interval(start, start.AddDate(0, 0, 4), 24*time.Hour)
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 400)
		database.Exec(t, s.source, "UPDATE orders SET made = '2026-01-01' + INTERVAL id % 4 DAY + INTERVAL id SECOND")
		database.Exec(t, s.source, "ALTER TABLE orders MODIFY made DATETIME NOT NULL")
		database.Exec(t, s.source, "RENAME TABLE orders TO "+name)
		database.Exec(t, s.source, "ALTER TABLE "+name+" ADD CONSTRAINT positive CHECK (user_id >= 0), ADD CONSTRAINT dated CHECK (made > '2000-01-01')")
		m, err := sharding.Spread([]string{"a", "b"}, rule.Slots(), strings.Repeat("n", 54)+"_%02d")
		if err != nil {
			t.Fatal(err)
		}
		job := s.job(t, "made", func(c *migrate.Config) {
			c.Name = "long"
			c.Tables = []migrate.Table{{Table: sharding.Table{Name: name, Key: "made", Rule: rule, Map: m}}}
		})
		found, err := job.Inspect(t.Context())
		if err != nil || migrate.Blocked(found) {
			t.Fatalf("%+v, %v", found, err)
		}
		if err := job.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := job.Cutover(t.Context(), pause); err != nil {
			t.Fatal(err)
		}
		for slot, target := range m.Targets() {
			day := fmt.Sprintf("DATE('2026-01-01' + INTERVAL %d DAY)", slot)
			if n := database.Texts(t, s.shards[target.DB], "SELECT CONCAT(COUNT(*), ' ', SUM(DATE(made) = "+day+")) FROM "+target.Table)[0]; n != "100 100" {
				t.Errorf("%s has rows, and of its day: %s", target.Table, n)
			}
		}
		first := m.Targets()[0]
		database.Exec(t, s.shards[first.DB], "INSERT INTO "+first.Table+" (id, user_id, made) VALUES (5000, 1, '2026-01-01 12:00:00')")
		if _, err := job.Rollback(t.Context(), pause); err != nil {
			t.Fatal(err)
		}
		if n := database.Texts(t, s.source, "SELECT COUNT(*) FROM "+name)[0]; n != "401" {
			t.Errorf("%s rows came back", n)
		}
	})
}
