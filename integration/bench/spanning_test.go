// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sharding/twophase"
)

// memberRows is how many users there are on two databases of one server.
const memberRows = 4000

// BenchmarkSpanning measures on MariaDB what it costs to leave one database: a user that is
// found by a lookup table, and a transaction that changes two users.
func BenchmarkSpanning(b *testing.B) {
	m := server.RunMariaDB(b, "--innodb-flush-log-at-trx-commit=2")
	a, z := m.Open(b, "a"), m.Open(b, "b")
	for n, db := range []*sql.DB{a, z} {
		db.SetMaxIdleConns(8)
		execute(b, db, fmt.Sprintf("CREATE TABLE members_%d (id BIGINT NOT NULL PRIMARY KEY, email VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, UNIQUE KEY (email))", n))
		execute(b, db, fmt.Sprintf("CREATE TABLE touched_%d (id BIGINT NOT NULL PRIMARY KEY, times BIGINT NOT NULL)", n))
		execute(b, db, fmt.Sprintf("INSERT INTO touched_%d SELECT seq, 0 FROM seq_0_to_%d WHERE seq %% 2 = %[1]d", n, memberRows-1))
	}
	b.Run("lookup", func(b *testing.B) { lookUp(b, a, z) })
	b.Run("transaction", func(b *testing.B) { span(b, a, z) })
}

// spanned returns the users' database in a mode.
func spanned(b *testing.B, a, z *sql.DB, mode sharding.TxMode) (*sharding.Router, *sql.DB) {
	b.Helper()
	m, err := sharding.MapOf(sharding.Target{DB: "a", Table: "members_0"}, sharding.Target{DB: "b", Table: "members_1"})
	check(b, err)
	counters, err := sharding.MapOf(sharding.Target{DB: "a", Table: "touched_0"}, sharding.Target{DB: "b", Table: "touched_1"})
	check(b, err)
	r, err := sharding.New(sharding.DBs{"a": a, "b": z}, sharding.Table{Name: "touched", Key: "id", Rule: sharding.Mod(2), Map: counters}, sharding.Table{
		Name: "members", Key: "id", Rule: sharding.Mod(2), Map: m,
		Lookups: []sharding.Lookup{{Column: "email", Table: "members_by_email", Unique: true}},
	}, sharding.Transactions(mode))
	check(b, err)
	db := shardsql.OpenDB(shardsql.Config{Router: r, Home: a})
	b.Cleanup(func() { _ = db.Close() })
	return r, db
}

// lookUp finds users by their key, and by their address: where a lookup table leads to one of
// two databases, and where all tables are in one. Then it inserts users, with a lookup and
// without one.
func lookUp(b *testing.B, a, z *sql.DB) {
	r, db := spanned(b, a, z, sharding.SingleShard)
	check(b, lookups.Create(b.Context(), lookups.Config{Router: r, Home: a, Table: "members", Column: "email"}))
	for id := range memberRows {
		_, err := db.ExecContext(b.Context(), "INSERT INTO members (id, email) VALUES (?, ?)", id, fmt.Sprintf("%d@example.com", id))
		check(b, err)
	}
	find := func(query string, arg func(n int) any) func(*testing.B) {
		return func(b *testing.B) {
			n := 0
			for b.Loop() {
				var id int64
				check(b, db.QueryRowContext(b.Context(), query, arg(n%(memberRows/2))).Scan(&id))
				n++
			}
		}
	}
	address := func(side int) func(int) any {
		return func(n int) any { return fmt.Sprintf("%d@example.com", 2*n+side) }
	}
	b.Run("by key", find("SELECT id FROM members WHERE id = ?", func(n int) any { return 2*n + 1 }))
	b.Run("by address, two databases", find("SELECT id FROM members WHERE email = ?", address(1)))
	for _, tables := range []int{2, 8, 16} {
		name := fmt.Sprintf("guests_%d", tables)
		db := guests(b, a, name, tables, true)
		insertGuests(b, db, name, memberRows)
		b.Run(fmt.Sprintf("by address, %d tables of one database", tables), func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				var id int64
				check(b, db.QueryRowContext(b.Context(), "SELECT id FROM "+name+" WHERE email = ?", fmt.Sprintf("%d@example.com", n%memberRows)).Scan(&id))
			}
		})
	}
	for what, looked := range map[string]bool{"without": false, "with": true} {
		name := "guests_" + what
		db := guests(b, a, name, 2, looked)
		b.Run("INSERT "+what+" a lookup", func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				insertGuest(b, db, name, n)
			}
			b.StopTimer()
			execute(b, a, "DELETE FROM "+name+"_0")
			execute(b, a, "DELETE FROM "+name+"_1")
			if looked {
				execute(b, a, "DELETE FROM "+name+"_by_email")
			}
		})
	}
}

// guests returns a database with users whose tables are all in one database.
func guests(b *testing.B, a *sql.DB, name string, tables int, looked bool) *sql.DB {
	b.Helper()
	m, err := sharding.Spread([]string{"a"}, tables, name+"_%d")
	check(b, err)
	of := sharding.Table{Name: name, Key: "id", Rule: sharding.Mod(tables), Map: m}
	if looked {
		of.Lookups = []sharding.Lookup{{Column: "email", Table: name + "_by_email", Unique: true}}
	}
	r, err := sharding.New(sharding.DBs{"a": a}, of)
	check(b, err)
	for _, at := range m.Targets() {
		execute(b, a, "CREATE TABLE "+at.Table+" (id BIGINT NOT NULL PRIMARY KEY, email VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, UNIQUE KEY (email))")
	}
	if looked {
		check(b, lookups.Create(b.Context(), lookups.Config{Router: r, Home: a, Table: name, Column: "email"}))
	}
	db := shardsql.OpenDB(shardsql.Config{Router: r, Home: a})
	b.Cleanup(func() { _ = db.Close() })
	return db
}

func insertGuests(b *testing.B, db *sql.DB, name string, rows int) {
	b.Helper()
	for id := range rows {
		insertGuest(b, db, name, id)
	}
}

func insertGuest(b *testing.B, db *sql.DB, name string, id int) {
	b.Helper()
	_, err := db.ExecContext(b.Context(), "INSERT INTO "+name+" (id, email) VALUES (?, ?)", id, fmt.Sprintf("%d@example.com", id))
	check(b, err)
}

// span changes two users in a transaction: of one database, or of two in the modes that let
// it span them.
func span(b *testing.B, a, z *sql.DB) {
	change := func(mode sharding.TxMode, other int) func(*testing.B) {
		return func(b *testing.B) {
			r, db := spanned(b, a, z, mode)
			if mode == sharding.Atomic {
				check(b, twophase.Create(b.Context(), r, nil))
			}
			n := 0
			for b.Loop() {
				check(b, touch(b.Context(), db, 2*(n%(memberRows/2)), (2*n+other)%memberRows))
				n++
			}
		}
	}
	b.Run("one database", change(sharding.SingleShard, 2))
	b.Run("two, BestEffort", change(sharding.BestEffort, 1))
	b.Run("two, Atomic", change(sharding.Atomic, 1))
}

func touch(ctx context.Context, db *sql.DB, ids ...int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	for _, id := range ids {
		if _, err := tx.ExecContext(ctx, "UPDATE touched SET times = times + 1 WHERE id = ?", id); err != nil {
			return err
		}
	}
	return tx.Commit()
}
