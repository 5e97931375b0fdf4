// SPDX-License-Identifier: Apache-2.0

package orms

import (
	"database/sql"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	migratemysql "github.com/golang-migrate/migrate/v4/database/mysql"
	migratesqlite "github.com/golang-migrate/migrate/v4/database/sqlite"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/pressly/goose/v3"

	"github.com/shardid/shardid/sharding"
)

func files(texts map[string]string) fs.FS {
	all := fstest.MapFS{}
	for name, text := range texts {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

const staff = "CREATE TABLE staff (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(20) NOT NULL)"

// hasStaff fails unless staff has that many rows at home, and a version table stands beside it.
func hasStaff(t *testing.T, home *sql.DB, rows int, versions string) {
	t.Helper()
	var n, m int
	err := errors.Join(home.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM staff").Scan(&n), home.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+versions).Scan(&m))
	if err != nil || n != rows || m == 0 {
		t.Errorf("%d rows, want %d, and %d versions: %v", n, rows, m, err)
	}
}

func TestGolangMigrateChangesTablesAtHomeAndIsRefusedOnShardedOnes(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, on opening) {
		shop := newShop(t, on)
		texts := map[string]string{
			"1_staff.up.sql": staff, "1_staff.down.sql": "DROP TABLE staff",
			"2_rows.up.sql": "INSERT INTO staff (id, name) VALUES (1, 'Ada')", "2_rows.down.sql": "DELETE FROM staff",
		}
		open := func() *migrate.Migrate {
			source, err := iofs.New(files(texts), ".")
			if err != nil {
				t.Fatal(err)
			}
			var driver database.Driver
			if shop.driver == "mysql" {
				driver, err = migratemysql.WithInstance(shop.routed, &migratemysql.Config{})
			} else {
				driver, err = migratesqlite.WithInstance(shop.routed, &migratesqlite.Config{})
			}
			if err != nil {
				t.Fatal(err)
			}
			m, err := migrate.NewWithInstance("iofs", source, shop.driver, driver)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		if err := errors.Join(open().Up(), open().Steps(-2), open().Up()); err != nil {
			t.Fatal(err)
		}
		hasStaff(t, shop.home, 1, "schema_migrations")
		texts["3_orders.up.sql"] = "ALTER TABLE orders ADD COLUMN more BIGINT"
		// golang-migrate's errors for databases do not wrap.
		if err := open().Up(); err == nil || !strings.Contains(err.Error(), "run the statement for each of Router.Targets on Router.DB") {
			t.Errorf("a sharded table: %v", err)
		}
		if version, dirty, err := open().Version(); version != 3 || !dirty || err != nil {
			t.Errorf("version %d, dirty %v, %v", version, dirty, err)
		}
	})
}

func TestGooseChangesTablesAtHomeAndIsRefusedOnShardedOnes(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, on opening) {
		shop := newShop(t, on)
		texts := map[string]string{
			"00001_staff.sql": "-- +goose Up\n" + staff + ";\n-- +goose Down\nDROP TABLE staff;\n",
			"00002_rows.sql":  "-- +goose Up\nINSERT INTO staff (id, name) VALUES (1, 'Ada');\n-- +goose Down\nDELETE FROM staff;\n",
		}
		open := func() *goose.Provider {
			p, err := goose.NewProvider(map[string]goose.Dialect{"mysql": goose.DialectMySQL, "sqlite": goose.DialectSQLite3}[shop.driver], shop.routed, files(texts))
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		_, up := open().Up(t.Context())
		_, down := open().DownTo(t.Context(), 0)
		_, again := open().Up(t.Context())
		if err := errors.Join(up, down, again); err != nil {
			t.Fatal(err)
		}
		hasStaff(t, shop.home, 1, "goose_db_version")
		texts["00003_orders.sql"] = "-- +goose Up\nALTER TABLE orders ADD COLUMN more BIGINT;\n"
		if _, err := open().Up(t.Context()); !errors.Is(err, sharding.ErrRawTable) {
			t.Errorf("a sharded table: %v", err)
		}
		if version, err := open().GetDBVersion(t.Context()); version != 2 || err != nil {
			t.Errorf("version %d, %v", version, err)
		}
	})
}
