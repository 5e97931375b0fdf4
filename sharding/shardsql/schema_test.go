// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// The home database answers all other queries with an error, which its log shows.
func TestOnlyColumnsOfTablesAreQueried(t *testing.T) {
	for query, want := range map[string][]string{
		"SELECT o.id FROM orders AS o, coupons AS u WHERE o.user_id = 5 AND u.code = o.note":                           {"coupons"},
		"WITH x AS (SELECT code AS y FROM coupons) SELECT o.id FROM orders o JOIN x ON x.y = o.note WHERE user_id = 5": {"coupons"},
		"SELECT id FROM orders WHERE user_id = 5 ORDER BY NEAREST note":                                                nil, // is no SQL
		"EXPLAIN SELECT o.id AS id FROM orders AS o":                                                                   nil,
		"SELECT /*! STRAIGHT_JOIN */ id FROM orders AS o":                                                              nil,
		"DROP TABLE orders": nil,
	} {
		s := newShop(t)
		var mu sync.Mutex
		var asked []string
		home := sql.OpenDB(asking{filepath.Join(t.TempDir(), "home.db"), func(_ context.Context, query string) error {
			if table, found := strings.CutSuffix(query, " WHERE 1 = 0"); found {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, strings.Trim(strings.TrimPrefix(table, "SELECT * FROM "), `"`))
			}
			return nil
		}})
		t.Cleanup(func() { _ = home.Close() })
		exec(t, home, "CREATE TABLE coupons (code TEXT)")
		routed := shardsql.OpenDB(shardsql.Config{Router: s.router, Home: home})
		t.Cleanup(func() { _ = routed.Close() })
		if _, err := shardsql.Explain(sharding.AllShards(t.Context()), routed, query); err != nil {
			t.Error(err)
		}
		if slices.Sort(asked); !reflect.DeepEqual(asked, want) {
			t.Errorf("%s: asked of %q, want %q", query, asked, want)
		}
	}
}
