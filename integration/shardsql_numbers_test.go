// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"errors"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
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
