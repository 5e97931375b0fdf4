// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// An opening opens databases of one server by their names.
type opening func(t *testing.T, name string) gorm.Dialector

func onEachDatabase(t *testing.T, test func(t *testing.T, open opening)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		dir := t.TempDir()
		test(t, func(t *testing.T, name string) gorm.Dialector {
			t.Helper()
			return sqlite.Dialector{DriverName: "sqlite", Conn: connected(t, "sqlite", "file:"+filepath.Join(dir, name)+"?_pragma=busy_timeout(10000)")}
		})
	})
	onMySQL := func(s interface {
		Open(tb testing.TB, name string) *sql.DB
		DSN(name string) string
	}) opening {
		return func(t *testing.T, name string) gorm.Dialector {
			t.Helper()
			s.Open(t, name) // makes it
			return mysql.New(mysql.Config{Conn: connected(t, "mysql", s.DSN(name)+"?parseTime=true")})
		}
	}
	t.Run("MariaDB", func(t *testing.T) { test(t, onMySQL(server.ShareMariaDB(t))) })
	t.Run("MySQL", func(t *testing.T) { test(t, onMySQL(server.ShareMySQL(t))) })
	t.Run("PostgreSQL", func(t *testing.T) {
		s := server.SharePostgres(t)
		test(t, func(t *testing.T, name string) gorm.Dialector {
			t.Helper()
			return postgres.New(postgres.Config{Conn: s.Open(t, name)})
		})
	})
}

func connected(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

var morning = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

func opened(t *testing.T, d gorm.Dialector) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(d, &gorm.Config{Logger: logger.Discard, NowFunc: func() time.Time { return morning }})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// pair opens the models as tables of four shards in two databases, and whole in one. Keys are
// filled in both.
func pair(t *testing.T, open opening, models ...any) (routed, whole *gorm.DB) {
	t.Helper()
	pool := func(d gorm.Dialector) *sql.DB {
		db, err := opened(t, d).DB()
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	routed, whole = opened(t, open(t, "home")), opened(t, open(t, "whole"))
	dbs := sharding.DBs{"a": pool(open(t, "a")), "b": pool(open(t, "b"))}
	var tables []sharding.Table
	for _, m := range models {
		stmt := &gorm.Statement{DB: whole}
		if err := stmt.Parse(m); err != nil {
			t.Fatal(err)
		}
		if stmt.Schema.LookUpField("UserID") == nil {
			continue // at home
		}
		targets, err := sharding.Spread([]string{"a", "b"}, 4, stmt.Table+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, sharding.Table{Name: stmt.Table, Key: "user_id", Rule: sharding.Low(2), Map: targets, Group: "user"})
	}
	router, err := sharding.New(dbs, sharding.Tables(tables...), sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	for db, r := range map[*gorm.DB]*sharding.Router{routed: router, whole: nil} {
		if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1, 1)}, Router: r})); err != nil {
			t.Fatal(err)
		}
	}
	if err := gormplugin.Migrate(t.Context(), routed, models...); err != nil {
		t.Fatal(err)
	}
	if err := whole.AutoMigrate(models...); err != nil {
		t.Fatal(err)
	}
	return routed, whole
}

// A step is a call of a program, and what it answers.
type step struct {
	name string
	do   func(db *gorm.DB) (any, error)
}

// answersAlike runs the steps on shards and on one table.
func answersAlike(t *testing.T, routed, whole *gorm.DB, steps []step) {
	t.Helper()
	for _, s := range steps {
		want, wantErr := s.do(whole)
		got, err := s.do(routed)
		if err != nil || wantErr != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: %+v, %v\nwant %+v, %v", s.name, got, err, want, wantErr)
		}
	}
}

// all are the rows of a table, the number of those that changed before, and the error.
func all[T any](db, changed *gorm.DB) (any, error) {
	var rows []T
	err := db.Unscoped().Order("id").Find(&rows).Error
	return fmt.Sprintf("%d changed: %+v", changed.RowsAffected, rows), errors.Join(changed.Error, err)
}

// ids are the ids of the rows of a query.
func ids[T any](query *gorm.DB) (any, error) {
	var found []int64
	err := query.Model(new(T)).Order("id").Pluck("id", &found).Error
	return found, err
}

// of is the first row of a user, also if it is deleted.
func of[T any](db *gorm.DB, user int64) *T {
	var row T
	if err := db.Unscoped().Where("user_id = ?", user).Order("id").First(&row).Error; err != nil {
		_ = db.AddError(err)
	}
	return &row
}
