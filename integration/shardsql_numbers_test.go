// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
)

func TestAnIDThatTheDatabaseWouldNumberIsRefused(t *testing.T) {
	for name, open := range map[string]database.Opener{"MariaDB": database.MariaDB(server.ShareMariaDB(t)), "MySQL": database.MySQL(server.ShareMySQL(t))} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			m, err := sharding.Spread([]string{"a"}, 4, "numbered_%d")
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range m.Targets() {
				database.Exec(t, db, "CREATE TABLE "+at.Table+" (id BIGINT AUTO_INCREMENT PRIMARY KEY, user_id BIGINT NOT NULL)")
			}
			router, err := sharding.New(sharding.DBs{"a": db}, sharding.Table{
				Name: "numbered", Key: "user_id", Rule: sharding.Mod(4), Map: m,
				Also: []sharding.Alt{{Column: "id", Rule: sharding.Mod(4)}},
			})
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: db})
			t.Cleanup(func() { _ = routed.Close() })
			for _, query := range []string{
				"INSERT INTO numbered (user_id) VALUES (4)", "INSERT INTO numbered (id, user_id) VALUES (NULL, 4)",
				"INSERT INTO numbered (id, user_id) VALUES (DEFAULT, 4)", "INSERT INTO numbered (id, user_id) VALUES (0, 4)",
			} {
				if _, err := routed.Exec(query); !errors.Is(err, sharding.ErrMissingKey) {
					t.Errorf("%s: %v", query, err)
				}
			}
			database.Exec(t, routed, "INSERT INTO numbered (id, user_id) VALUES (8, 4)")
		})
	}
}

// eventID is a type of ids as large as BIGINT UNSIGNED.
type eventID uint64

// An id above 2^63 leads to one shard, and a lookup finds it, whatever its Go type is.
func TestALargeUnsignedIDLeadsToItsShardInEveryGoType(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			dbs := sharding.DBs{"a": open(t, "unsigned_a"), "b": open(t, "unsigned_b")}
			spread := func(name, columns string) sharding.Map {
				m, err := sharding.Spread([]string{"a", "b"}, 3, name+"_%d")
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range m.Targets() {
					if columns != "" {
						database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+columns)
					}
				}
				return m
			}
			router, err := sharding.New(dbs,
				sharding.Table{Name: "visits", Key: "id", Rule: sharding.Mod(3), Map: spread("visits", " (id BIGINT UNSIGNED PRIMARY KEY, device BIGINT UNSIGNED NOT NULL UNIQUE)"), Lookups: []sharding.Lookup{{Column: "device", Table: "visit_of", Unique: true}}},
				sharding.Table{Name: "visit_of", Key: "device", Rule: sharding.Mod(3), Map: spread("visit_of", "")})
			if err == nil {
				err = lookups.Create(t.Context(), lookups.Config{Router: router, Home: dbs["a"], Table: "visits", Column: "device"})
			}
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
			t.Cleanup(func() { _ = routed.Close() })
			const large = 1<<63 + 7
			id := eventID(large)
			values := []any{uint64(large), uint(large), id, &id, strconv.FormatUint(large, 10)}
			for _, value := range values {
				statement := func(query string) {
					if res, err := routed.ExecContext(t.Context(), query, value); err != nil {
						t.Errorf("%s of a %T: %v", query, value, err)
					} else if n, err := res.RowsAffected(); n != 1 || err != nil {
						t.Errorf("%s of a %T: %d rows, %v", query, value, n, err)
					}
				}
				statement("INSERT INTO visits (id, device) VALUES (?, 9223372036854775809)")
				for _, query := range []string{"SELECT COUNT(*) FROM visits WHERE id = ?", "SELECT COUNT(*) FROM visits WHERE id IN (?, 1)", "SELECT COUNT(*) FROM visits WHERE id = ? AND device = 9223372036854775809"} {
					if n, err := database.Number(t.Context(), routed, query, value); n != 1 || err != nil {
						t.Errorf("%s of a %T: %d, %v", query, value, n, err)
					}
				}
				statement("DELETE FROM visits WHERE id = ?")
				statement("INSERT INTO visits (id, device) VALUES (9223372036854775810, ?)")
				for _, as := range values {
					if n, err := database.Number(t.Context(), routed, "SELECT COUNT(*) FROM visits WHERE device = ?", as); n != 1 || err != nil {
						t.Errorf("the lookup of a %T as a %T: %d, %v", value, as, n, err)
					}
				}
				statement("DELETE FROM visits WHERE device = ?")
			}
		})
	}
}
