// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

func TestInspectFindsKeysOfTextThatAreNotComparedByTheirBytesAndValuesWithoutAPlace(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 5)
		m, err := sharding.Spread([]string{"a", "b"}, 2, "orders_%02d")
		if err != nil {
			t.Fatal(err)
		}
		job := s.job(t, "code", func(c *migrate.Config) {
			c.Tables[0].Table = sharding.Table{Name: "orders", Key: "code", Rule: sharding.List(map[string]sharding.Slot{"c1": 0, "c2": 1, "C1": 1}), Map: m}
		})
		database.Exec(t, s.shards["b"], "CREATE TABLE orders_01 (id INT PRIMARY KEY, code VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)")
		found := inspectionOf(t, job)
		for _, want := range []string{"block collation source/orders", "block unplaced source/orders"} {
			if !slices.Contains(found, want) {
				t.Errorf("%q is not in %q", want, found)
			}
		}
		database.Exec(t, s.source, "ALTER TABLE orders MODIFY code VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
		database.Exec(t, s.source, "DELETE FROM orders WHERE id > 2")
		database.Exec(t, s.shards["b"], "ALTER TABLE orders_01 MODIFY code VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
		found = inspectionOf(t, job)
		if !slices.Contains(found, "block collation b/orders_01") || slices.Contains(found, "block collation source/orders") || slices.Contains(found, "block unplaced source/orders") {
			t.Errorf("%q", found)
		}
	})
}

// inspectionOf is the findings as "severity code database/table".
func inspectionOf(t *testing.T, job *migrate.Job) []string {
	t.Helper()
	found, err := job.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range found {
		all = append(all, strings.TrimSuffix(string(f.Severity)+" "+string(f.Code)+" "+f.Database+"/"+f.Table, "/"))
	}
	return all
}
