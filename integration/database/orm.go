// SPDX-License-Identifier: Apache-2.0

package database

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// DriverName is the name of the registered driver of MariaDB and MySQL, or of PostgreSQL.
func DriverName(db *sql.DB) string {
	if _, ok := db.Driver().(*stdlib.Driver); ok {
		return "pgx"
	}
	return "mysql"
}

// OpenGORM opens GORM on a pool of MariaDB, MySQL or PostgreSQL. With lastInsertID it reads
// MariaDB's ids from LAST_INSERT_ID and not from RETURNING.
func OpenGORM(t *testing.T, db *sql.DB, lastInsertID bool) *gorm.DB {
	t.Helper()
	on := mysql.New(mysql.Config{Conn: db, DisableWithReturning: lastInsertID})
	if DriverName(db) == "pgx" {
		on = postgres.New(postgres.Config{Conn: db})
	}
	g, err := gorm.Open(on, &gorm.Config{Logger: logger.Default.LogMode(logger.Silent)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// RoutedSqlx opens sqlx on the routed database of a router. Statements on tables that are not
// sharded go to the home database.
func RoutedSqlx(t *testing.T, router *sharding.Router, home *sql.DB) *sqlx.DB {
	t.Helper()
	db := sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: router, Home: home}), DriverName(home))
	t.Cleanup(func() { _ = db.Close() })
	return db
}
