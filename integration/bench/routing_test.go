// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	gormsharding "gorm.io/sharding"
	"modernc.org/sqlite"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/internal/testkit/secondpool"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// Order has its sharding key beside its primary key, as go-gorm/sharding's
// examples have.
type Order struct {
	ID     int64  `db:"id" gorm:"primaryKey;autoIncrement:false" keygen:""`
	UserID int64  `db:"user_id"`
	Note   string `db:"note"`
}

// Coupon is a row of a table that is not sharded.
type Coupon struct {
	ID   int64  `db:"id" gorm:"primaryKey;autoIncrement:false"`
	Note string `db:"note"`
}

const (
	shards = 4
	user   = int64(8)
)

// instant is a database that answers statements on the tables below with nothing at
// once, so that a benchmark sees what stands before it. What it is asked about itself,
// SQLite answers.
type instant struct{ file string }

func (i instant) Connect(context.Context) (driver.Conn, error) {
	conn, err := i.Driver().Open(i.file)
	return instantConn{conn}, err
}

func (instant) Driver() driver.Driver { return &sqlite.Driver{} }

type instantConn struct{ driver.Conn }

func (instantConn) CheckNamedValue(*driver.NamedValue) error { return nil }

func (c instantConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if strings.HasPrefix(query, "INSERT") || strings.HasPrefix(query, "UPDATE") {
		return oneRow{}, nil
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c instantConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if strings.HasPrefix(query, "SELECT *") {
		return noRows{}, nil
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

type oneRow struct{}

func (oneRow) LastInsertId() (int64, error) { return 1, nil }
func (oneRow) RowsAffected() (int64, error) { return 1, nil }

type noRows struct{}

func (noRows) Columns() []string         { return nil }
func (noRows) Close() error              { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }

// instantly returns an instant database that has the tables of the benchmark.
func instantly(b *testing.B) *sql.DB {
	b.Helper()
	db := sql.OpenDB(instant{filepath.Join(b.TempDir(), "instant.db")})
	b.Cleanup(func() { _ = db.Close() })
	execute(b, db, "CREATE TABLE coupons (id BIGINT NOT NULL PRIMARY KEY, note TEXT)")
	execute(b, db, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, note TEXT)")
	for i := range shards {
		execute(b, db, fmt.Sprintf("CREATE TABLE orders_%d (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, note TEXT)", i))
	}
	return db
}

// routedBy returns a router of the tables in home.
func routedBy(b *testing.B, home *sql.DB) *sharding.Router {
	b.Helper()
	orders, err := sharding.Spread([]string{"home"}, shards, "orders_%d")
	check(b, err)
	router, err := sharding.New(sharding.DBs{"home": home}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: orders})
	check(b, err)
	return router
}

// opened returns gorm on the pool, with a plugin if there is one.
func opened(b *testing.B, dialector gorm.Dialector, plugin gorm.Plugin) *gorm.DB {
	b.Helper()
	db, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard, SkipDefaultTransaction: true})
	check(b, err)
	if plugin != nil {
		check(b, db.Use(plugin))
	}
	return db
}

// routing is gormplugin with a router.
func routing(router *sharding.Router) gorm.Plugin {
	return gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1, 1)}, Router: router})
}

// goGorm is the other library's plugin; the ids are in the rows.
func goGorm(tables uint) gorm.Plugin {
	return gormsharding.Register(gormsharding.Config{
		ShardingKey: "user_id", NumberOfShards: tables, PrimaryKeyGenerator: gormsharding.PKCustom,
		PrimaryKeyGeneratorFn: func(int64) int64 { return 0 },
	}, "orders")
}

// BenchmarkRouting is what a statement costs before the database: without
// sharding, with it, and through a second pool that routes nothing. All rows of a batch have the same key.
func BenchmarkRouting(b *testing.B) {
	home := instantly(b)
	router := routedBy(b, home)
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
	b.Cleanup(func() { _ = routed.Close() })
	gorms := map[string]*gorm.DB{}
	for who, plugin := range map[string]gorm.Plugin{"plain": nil, "shardid": routing(router), "go-gorm/sharding": goGorm(shards)} {
		gorms[who] = opened(b, gormsqlite.Dialector{Conn: home}, plugin)
	}
	second := secondpool.Open(home)
	b.Cleanup(func() { _ = second.Close() })
	gorms["second pool"] = opened(b, gormsqlite.Dialector{Conn: second}, nil)
	for _, s := range gormStatements() {
		for _, who := range []string{"plain", "second pool", "shardid", "go-gorm/sharding"} {
			measure(b, s.name+"/"+who, func() error { return s.run(gorms[who]) })
		}
	}
	pools := map[string]*sqlx.DB{"plain": sqlx.NewDb(home, "sqlite"), "second pool": sqlx.NewDb(second, "sqlite"), "shardid": sqlx.NewDb(routed, "sqlite")}
	for _, s := range sqlStatements() {
		for _, who := range []string{"plain", "second pool", "shardid"} {
			measure(b, s.name+"/"+who, func() error { return s.run(pools[who]) })
		}
	}
}

func measure(b *testing.B, name string, run func() error) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			check(b, run())
		}
	})
}

// A statement is what is done with a database of a kind.
type statement[DB any] struct {
	name string
	run  func(DB) error
}

func gormStatements() []statement[*gorm.DB] {
	many := make([]Order, 1000)
	in := make([]int64, 100)
	for i := range in {
		in[i] = int64(i)
	}
	id := int64(0)
	return []statement[*gorm.DB]{
		{"create", func(db *gorm.DB) error {
			id++
			return db.Create(&Order{ID: id, UserID: user, Note: "n"}).Error
		}},
		{"create of 1000", func(db *gorm.DB) error {
			give(many, &id)
			return db.Create(&many).Error
		}},
		{"first by key", func(db *gorm.DB) error { return db.Where("user_id = ?", user).Find(&[]Order{}).Error }},
		{"key and IN of 100", func(db *gorm.DB) error {
			return db.Where("user_id = ? AND id IN ?", user, in).Find(&[]Order{}).Error
		}},
		{"update by key", func(db *gorm.DB) error {
			return db.Model(&Order{}).Where("user_id = ? AND id = ?", user, id).Update("note", "m").Error
		}},
		{"home table", func(db *gorm.DB) error { return db.Where("id = ?", 1).Find(&[]Coupon{}).Error }},
	}
}

func sqlStatements() []statement[*sqlx.DB] {
	many := make([]Order, 1000)
	id := int64(0)
	return []statement[*sqlx.DB]{
		{"database/sql, by key", func(db *sqlx.DB) error { return drained(db.DB, "SELECT * FROM orders WHERE user_id = ?", user) }},
		{"database/sql, home table", func(db *sqlx.DB) error { return drained(db.DB, "SELECT * FROM coupons WHERE id = ?", 1) }},
		{"sqlx, by key", func(db *sqlx.DB) error { return db.Select(&[]Order{}, "SELECT * FROM orders WHERE user_id = ?", user) }},
		{"sqlx, NamedExec of 1000", func(db *sqlx.DB) error {
			give(many, &id)
			_, err := db.NamedExec(insertNamed, many)
			return err
		}},
	}
}

const insertNamed = "INSERT INTO orders (id, user_id, note) VALUES (:id, :user_id, :note)"

// give makes rows of one user with the next ids.
func give(rows []Order, id *int64) {
	for i := range rows {
		*id++
		rows[i] = Order{ID: *id, UserID: user, Note: "n"}
	}
}

// drained reads the rows of a query.
func drained(db *sql.DB, query string, args ...any) (err error) {
	rows, err := db.QueryContext(context.Background(), query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var o Order
	for rows.Next() {
		if err := rows.Scan(&o.ID, &o.UserID, &o.Note); err != nil {
			return err
		}
	}
	return rows.Err()
}

func check(b *testing.B, err error) {
	if err != nil {
		b.Helper() // takes a part of a microsecond, so no measured call has it
		b.Fatal(err)
	}
}
