// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/shardid/shardid/internal/testkit/gormsuite"
)

func TestFillingOnSQLiteWithoutCgo(t *testing.T) {
	dsn := "file:" + filepath.Join(t.TempDir(), "suite.db") + "?_pragma=busy_timeout(3600000)&_txlock=immediate"
	gormsuite.Run(t, sqliteSuite("sqlite", dsn))
}

func sqliteSuite(driver, dsn string) gormsuite.Database {
	return gormsuite.Database{
		Family: "sqlite",
		Open: func(t testing.TB) *sql.DB {
			db, err := sql.Open(driver, dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
			return db
		},
		Dialector: func(db *sql.DB) gorm.Dialector { return sqlite.Dialector{Conn: db} },
	}
}
