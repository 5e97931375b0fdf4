package database

import (
	"database/sql"
	"testing"

	"github.com/jmoiron/sqlx"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// OpenGORM is GORM on a pool of MariaDB or MySQL. With lastInsertID it takes the ids that
// the database makes from LAST_INSERT_ID and not from RETURNING.
func OpenGORM(t *testing.T, db *sql.DB, lastInsertID bool) *gorm.DB {
	t.Helper()
	g, err := gorm.Open(mysql.New(mysql.Config{Conn: db, DisableWithReturning: lastInsertID}), &gorm.Config{Logger: logger.Default.LogMode(logger.Silent)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// RoutedSqlx is sqlx on what routes statements over the shards of a router. What has none
// goes home.
func RoutedSqlx(t *testing.T, router *sharding.Router, home *sql.DB) *sqlx.DB {
	t.Helper()
	db := sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: router, Home: home}), "mysql")
	t.Cleanup(func() { _ = db.Close() })
	return db
}
