// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// account is sharded by a text column, and found by another one, too.
type account struct {
	ID     int64  `gorm:"primaryKey;autoIncrement:false" keygen:""`
	Tenant string `gorm:"size:64;not null;default:nobody;index"`
	Code   string
	Note   string `gorm:"size:20"`
}

// accounts routes them on one server, whose tables are not there yet.
func accounts(t *testing.T, open func(tb testing.TB, database string) *sql.DB) (*gorm.DB, *sharding.Router) {
	t.Helper()
	m, err := sharding.Spread([]string{"a", "b"}, 4, "accounts_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"a": open(t, "accounts_a"), "b": open(t, "accounts_b")}, sharding.Table{
		Name: "accounts", Key: "tenant", Rule: sharding.HashText(4), Map: m,
		Also: []sharding.Alt{{Column: "code", Rule: sharding.HashText(4)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	db := database.OpenGORM(t, open(t, "accounts_home"), true)
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1, 1)}, Router: router})); err != nil {
		t.Fatal(err)
	}
	return db, router
}

// collationsOf are those of the columns of texts in all shards.
func collationsOf(t *testing.T, router *sharding.Router) []string {
	t.Helper()
	var all []string
	for _, name := range router.Databases() {
		all = append(all, database.Texts(t, router.DB(name), "SELECT CONCAT(COLUMN_NAME, ' ', COLUMN_TYPE, ' ', COLLATION_NAME) FROM information_schema.COLUMNS"+
			" WHERE TABLE_SCHEMA = DATABASE() AND COLUMN_NAME IN ('tenant', 'code')")...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestKeysOfTextAreComparedByTheirBytes(t *testing.T) {
	for name, open := range map[string]func(tb testing.TB, database string) *sql.DB{"MariaDB": server.RunMariaDB(t).Open, "MySQL": server.RunMySQL(t).Open} {
		t.Run(name, func(t *testing.T) {
			db, router := accounts(t, open)
			for range 2 { // the second time, there is nothing to change
				if err := gormplugin.Migrate(t.Context(), db, &account{}); err != nil {
					t.Fatal(err)
				}
				want := []string{"code longtext utf8mb4_bin", "tenant varchar(64) utf8mb4_bin"}
				if got := collationsOf(t, router); !slices.Equal(got, want) {
					t.Errorf("made %q, want %q", got, want)
				}
			}
			expectDiagnosis(t, router)
			target, err := router.Target("accounts", "Alice")
			if err != nil {
				t.Fatal(err)
			}
			database.Exec(t, router.DB(target.DB), "ALTER TABLE "+target.Table+" MODIFY tenant VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL DEFAULT 'nobody'")
			expectDiagnosis(t, router, "warning collation "+target.String())
			if err := gormplugin.Migrate(t.Context(), db, &account{}); err != nil { // lets a table be that is there
				t.Error(err)
			}
			expectDiagnosis(t, router, "warning collation "+target.String())
		})
	}
}

func TestCheckRefusesAKeyOfTextThatIsNotComparedByItsBytes(t *testing.T) {
	db, router := accounts(t, server.RunMariaDB(t).Open)
	for _, target := range router.Targets("accounts") {
		database.Exec(t, router.DB(target.DB), "CREATE TABLE "+target.Table+" (id BIGINT PRIMARY KEY, tenant VARBINARY(64), code VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_swedish_ci, note TEXT)")
	}
	if err := gormplugin.Check(db, &account{}); !errors.Is(err, gormplugin.ErrCollation) || !strings.Contains(err.Error(), "column code: ") || !strings.Contains(err.Error(), "latin1_swedish_ci") || strings.Contains(err.Error(), "tenant") {
		t.Error(err)
	}
}
