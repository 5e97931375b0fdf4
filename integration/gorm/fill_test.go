// SPDX-License-Identifier: Apache-2.0

package gorm_test

import (
	"database/sql"
	"testing"

	"gorm.io/driver/mysql"
	gormpg "gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/gormsuite"
)

func fillSuite(s database.DSNOpener, family string, finds gormsuite.Finds, dialector func(*sql.DB) gorm.Dialector) gormsuite.Database {
	return gormsuite.Database{
		Family: family, Finds: finds, Dialector: dialector,
		Open: func(t testing.TB) *sql.DB {
			db := s.Open(t, "fill")
			if family == "mysql" {
				return parseTimes(t, s.DSN("fill"))
			}
			return db
		},
	}
}

// parseTimes opens a pool with parseTime, as gorm requires.
func parseTimes(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn+"?parseTime=true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestGormFillingOnMariaDBWithReturning(t *testing.T) {
	gormsuite.Run(t, fillSuite(server.ShareMariaDB(t), "mysql", gormsuite.All, func(db *sql.DB) gorm.Dialector {
		return mysql.New(mysql.Config{Conn: db})
	}))
}

// Without RETURNING gorm works as on MySQL.
func TestGormFillingOnMariaDBWithoutReturning(t *testing.T) {
	gormsuite.Run(t, fillSuite(server.ShareMariaDB(t), "mysql", gormsuite.Single, func(db *sql.DB) gorm.Dialector {
		return mysql.New(mysql.Config{Conn: db, DisableWithReturning: true})
	}))
}

func TestGormFillingOnPostgreSQL(t *testing.T) {
	gormsuite.Run(t, fillSuite(server.SharePostgres(t), "postgres", gormsuite.None, func(db *sql.DB) gorm.Dialector {
		return gormpg.New(gormpg.Config{Conn: db})
	}))
}

// MySQL has no RETURNING, and may assign any numbers to the rows of a batch.
func TestGormFillingOnMySQL(t *testing.T) {
	gormsuite.Run(t, fillSuite(server.ShareMySQL(t), "mysql", gormsuite.Single, func(db *sql.DB) gorm.Dialector {
		return mysql.New(mysql.Config{Conn: db})
	}))
}
