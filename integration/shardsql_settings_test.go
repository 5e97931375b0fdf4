// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// One table has one time zone and one sql_mode. Shards with different ones would give results
// that no table gives.
func TestDatabasesThatAreSetUpDifferentlyAreRefused(t *testing.T) {
	for name, m := range map[string]interface {
		DSN(database string) string
		Open(tb testing.TB, database string) *sql.DB
	}{"MariaDB": server.ShareMariaDB(t), "MySQL": server.ShareMySQL(t)} {
		t.Run(name, func(t *testing.T) {
			open := func(db, params string) *sql.DB {
				t.Helper()
				c, err := sql.Open("mysql", m.DSN(db)+"?"+params)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				return c
			}
			database.Exec(t, m.Open(t, "app"), "CREATE TABLE notes_0 (id BIGINT PRIMARY KEY, at DATETIME)")
			database.Exec(t, m.Open(t, "alike"), "CREATE TABLE notes_1 (id BIGINT PRIMARY KEY, at DATETIME)")
			for params, setting := range map[string]string{
				"": "", "time_zone=%27SYSTEM%27": "", "time_zone=%27-05%3A00%27": "time_zone", "sql_mode=ANSI_QUOTES": "sql_mode",
				"collation=utf8mb4_bin": "collation_connection", "max_sort_length=64": "max_sort_length", "parseTime=true": "parseTime",
			} {
				dbs := sharding.DBs{"a": open("app", ""), "b": open("alike", params)}
				places, err := sharding.MapOf(sharding.Target{DB: "a", Table: "notes_0"}, sharding.Target{DB: "b", Table: "notes_1"})
				if err != nil {
					t.Fatal(err)
				}
				router, err := sharding.New(dbs, sharding.Table{Name: "notes", Key: "id", Rule: sharding.Mod(2), Map: places})
				if err != nil {
					t.Fatal(err)
				}
				routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
				t.Cleanup(func() { _ = routed.Close() })
				one := "SELECT COUNT(*) FROM notes WHERE id = 1"
				for _, query := range []string{one, "SELECT COUNT(*) FROM notes"} {
					var n int
					err := routed.QueryRowContext(t.Context(), query).Scan(&n)
					if setting == "" && err != nil || setting != "" && (!errors.Is(err, sharding.ErrSettings) || !strings.Contains(err.Error(), setting)) {
						t.Errorf("%s: %s: %v", params, query, err)
					}
				}
				if setting != "" {
					prepared := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
					t.Cleanup(func() { _ = prepared.Close() })
					if err := countPrepared(t, prepared, one); !errors.Is(err, sharding.ErrSettings) {
						t.Errorf("%s: prepared: %v", params, err)
					}
				}
				tx, err := routed.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				_, err = tx.ExecContext(t.Context(), "DELETE FROM notes WHERE id = 1")
				if (setting != "") != errors.Is(err, sharding.ErrSettings) {
					t.Errorf("%s: in a transaction: %v", params, err)
				}
				if err := tx.Rollback(); err != nil {
					t.Error(err)
				}
				if n := dbs["b"].Stats().InUse; n != 0 {
					t.Errorf("%s: %d connections are left in use", params, n)
				}
			}
		})
	}
}

func countPrepared(t *testing.T, db *sql.DB, query string) error {
	t.Helper()
	st, err := db.PrepareContext(t.Context(), query)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	return st.QueryRowContext(t.Context()).Scan(new(int))
}
