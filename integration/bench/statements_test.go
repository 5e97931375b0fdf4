// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"database/sql"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

const (
	manyShards  = 8
	storedRows  = 8000
	firstNewRow = 1_000_000
	columns     = " (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(50) NOT NULL)"
)

// layouts are the same orders three times: in one table, in eight tables of one
// database as go-gorm/sharding has them, and in eight of two databases.
type layouts struct {
	driver             string
	whole, peer, home  *sql.DB
	shards             sharding.DBs
	router             *sharding.Router
	routed             *sql.DB
	gorm, ours, theirs *gorm.DB
	shard              func(db string) *gorm.DB
}

func newLayouts(b *testing.B, driver string, dialector func(gorm.ConnPool) gorm.Dialector, open func(name string) *sql.DB) *layouts {
	b.Helper()
	s := &layouts{driver: driver, whole: open("whole"), peer: open("peer"), home: open("home")}
	s.shards = sharding.DBs{"a": open("a"), "b": open("b")}
	for _, db := range []*sql.DB{s.whole, s.peer, s.home} {
		execute(b, db, "CREATE TABLE coupons (id BIGINT NOT NULL PRIMARY KEY, note VARCHAR(50) NOT NULL)")
		execute(b, db, "INSERT INTO coupons VALUES (1, 'x')")
	}
	s.store(b, s.whole, "orders", -1)
	execute(b, s.peer, "CREATE TABLE orders"+columns)
	for i := range manyShards {
		s.store(b, s.peer, fmt.Sprintf("orders_%d", i), i)
	}
	m, err := sharding.Spread([]string{"a", "b"}, manyShards, "orders_%d")
	check(b, err)
	for i, at := range m.Targets() {
		s.store(b, s.shards[at.DB], at.Table, i)
	}
	s.router, err = sharding.New(s.shards, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(3), Map: m})
	check(b, err)
	s.routed = shardsql.OpenDB(shardsql.Config{Router: s.router, Home: s.home})
	b.Cleanup(func() { _ = s.routed.Close() })
	s.gorm, s.ours = opened(b, dialector(s.whole), nil), opened(b, dialector(s.home), routing(s.router))
	s.shard = func(db string) *gorm.DB { return opened(b, dialector(s.shards[db]), nil) }
	s.theirs = opened(b, dialector(s.peer), goGorm(manyShards))
	return s
}

// store makes a table with the orders of a slot, or with all of them.
func (s *layouts) store(b *testing.B, db *sql.DB, table string, slot int) {
	b.Helper()
	execute(b, db, "CREATE TABLE "+table+columns)
	execute(b, db, "CREATE INDEX "+table+"_user ON "+table+" (user_id)")
	var rows []string
	for i := range storedRows {
		if slot < 0 || i%manyShards == slot {
			rows = append(rows, fmt.Sprintf("(%d, %d, 'order %d')", i, i, i))
		}
	}
	execute(b, db, "INSERT INTO "+table+" VALUES "+strings.Join(rows, ", "))
}

// tidy deletes what was inserted.
func (s *layouts) tidy(b *testing.B) {
	b.Helper()
	remove := func(db *sql.DB, table string) {
		execute(b, db, fmt.Sprintf("DELETE FROM %s WHERE id >= %d", table, firstNewRow))
		if s.driver == "pgx" { // otherwise the queries that follow find the deleted rows in the indexes
			execute(b, db, "VACUUM "+table)
		}
	}
	remove(s.whole, "orders")
	for i, at := range s.router.Targets("orders") {
		remove(s.shards[at.DB], at.Table)
		remove(s.peer, fmt.Sprintf("orders_%d", i))
	}
}

// keep has the pools of the shards keep so many connections between queries.
func (s *layouts) keep(connections int) {
	for _, db := range s.shards {
		db.SetMaxIdleConns(connections)
	}
}

// BenchmarkStatements sends statements to databases that hold their rows in memory:
// ours, what stands below us by itself, and go-gorm/sharding. Pools keep the connections
// that a query of all shards takes at a time, but for "default pools", which keep two as
// database/sql's do.
func BenchmarkStatements(b *testing.B) {
	b.Run("SQLite", func(b *testing.B) {
		dir := b.TempDir()
		compare(b, newLayouts(b, "sqlite", func(pool gorm.ConnPool) gorm.Dialector { return gormsqlite.Dialector{Conn: pool} }, func(name string) *sql.DB {
			db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, name)+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)&_pragma=synchronous(off)")
			check(b, err)
			b.Cleanup(func() { _ = db.Close() })
			db.SetMaxIdleConns(manyShards)
			return db
		}))
	})
	b.Run("MariaDB", func(b *testing.B) {
		m := server.RunMariaDB(b, "--innodb-flush-log-at-trx-commit=2")
		compare(b, newLayouts(b, "mysql", func(pool gorm.ConnPool) gorm.Dialector { return mysql.New(mysql.Config{Conn: pool}) }, func(name string) *sql.DB {
			db := m.Open(b, name)
			db.SetMaxIdleConns(manyShards)
			return db
		}))
	})
}

// BenchmarkStatementsOnPostgreSQL does so on PostgreSQL.
func BenchmarkStatementsOnPostgreSQL(b *testing.B) {
	p := server.RunPostgres(b)
	compare(b, newLayouts(b, "pgx", func(pool gorm.ConnPool) gorm.Dialector { return postgres.New(postgres.Config{Conn: pool}) }, func(name string) *sql.DB {
		db := p.Open(b, name)
		db.SetMaxIdleConns(manyShards)
		return db
	}))
}

func compare(b *testing.B, s *layouts) {
	b.Helper()
	plain, routed := sqlx.NewDb(s.whole, s.driver), sqlx.NewDb(s.routed, s.driver)
	own, err := s.router.Target("orders", user)
	check(b, err)
	rows := &newRows{last: firstNewRow, rows: make([]Order, 1000)}
	for _, statement := range sqlOnLayouts(rows) {
		measure(b, statement.name+"/plain", func() error { return statement.run(plain) })
		if query, all := scatters[statement.name]; all {
			shard := s.router.Targets("orders")[0]
			ofOne := strings.Replace(query, "orders", shard.Table, 1)
			measure(b, statement.name+"/one shard", func() error { return drained(s.shards[shard.DB], ofOne) })
		}
		if statement.name == "sqlx, 1000 rows" {
			shard := sqlx.NewDb(s.shards[own.DB], s.driver)
			measure(b, statement.name+"/one shard", func() error { return rows.insert(shard, own.Table) })
		}
		measure(b, statement.name+"/shardid", func() error { return statement.run(routed) })
		if scatters[statement.name] != "" {
			s.keep(2)
			measure(b, statement.name+"/shardid, default pools", func() error { return statement.run(routed) })
			s.keep(manyShards)
		}
		s.tidy(b)
	}
	for _, statement := range gormOnLayouts(rows) {
		measure(b, statement.name+"/plain", func() error { return statement.run(s.gorm) })
		if statement.name == "gorm, 1000 rows" {
			shard := s.shard(own.DB)
			measure(b, statement.name+"/one shard", func() error { return rows.create(shard.Table(own.Table)) })
		}
		measure(b, statement.name+"/shardid", func() error { return statement.run(s.ours) })
		if statement.name != "gorm, latest 20" { // go-gorm/sharding refuses it
			measure(b, statement.name+"/go-gorm/sharding", func() error { return statement.run(s.theirs) })
		}
		s.tidy(b)
	}
}

// scatters are answered by all shards.
var scatters = map[string]string{
	"database/sql, latest 20":     "SELECT id, user_id, note FROM orders ORDER BY id DESC LIMIT 20",
	"database/sql, 8000 in order": "SELECT id, user_id, note FROM orders ORDER BY id",
	"database/sql, 2000 keys":     "SELECT id, user_id, note FROM orders WHERE user_id IN (0" + keysOf(2000) + ")",
}

// keysOf returns the list of n keys of all shards, behind the first one.
func keysOf(n int) string {
	var list strings.Builder
	for i := 1; i < n; i++ {
		fmt.Fprintf(&list, ", %d", i*(storedRows-1)/n)
	}
	return list.String()
}

// newRows are rows of one shard, with new ids for each INSERT.
type newRows struct {
	last int64
	rows []Order
}

func (r *newRows) insert(db *sqlx.DB, table string) error {
	give(r.rows, &r.last)
	_, err := db.NamedExec(strings.Replace(insertNamed, "orders", table, 1), r.rows)
	return err
}

func (r *newRows) create(db *gorm.DB) error {
	give(r.rows, &r.last)
	return db.Create(&r.rows).Error
}

func sqlOnLayouts(rows *newRows) []statement[*sqlx.DB] {
	const byKey = "SELECT id, user_id, note FROM orders WHERE user_id = ?"
	all := []statement[*sqlx.DB]{
		{"database/sql, by key", func(db *sqlx.DB) error { return drained(db.DB, db.Rebind(byKey), user) }},
		{"database/sql, home table", func(db *sqlx.DB) error {
			return drained(db.DB, db.Rebind("SELECT id, 0, note FROM coupons WHERE id = ?"), 1)
		}},
		{"sqlx, by key", func(db *sqlx.DB) error { return db.Select(&[]Order{}, db.Rebind(byKey), user) }},
		{"sqlx, 1000 rows", func(db *sqlx.DB) error { return rows.insert(db, "orders") }},
	}
	for _, name := range slices.Sorted(maps.Keys(scatters)) {
		all = append(all, statement[*sqlx.DB]{name, func(db *sqlx.DB) error { return drained(db.DB, scatters[name]) }})
	}
	return all
}

func gormOnLayouts(rows *newRows) []statement[*gorm.DB] {
	return []statement[*gorm.DB]{
		{"gorm, by key", func(db *gorm.DB) error { return db.Where("user_id = ?", user).Find(&[]Order{}).Error }},
		{"gorm, home table", func(db *gorm.DB) error { return db.Where("id = ?", 1).Find(&[]Coupon{}).Error }},
		{"gorm, latest 20", func(db *gorm.DB) error { return db.Order("id DESC").Limit(20).Find(&[]Order{}).Error }},
		{"gorm, 1000 rows", rows.create},
	}
}
