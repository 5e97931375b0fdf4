// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// A transaction that began before a slot moved to its database does not see the rows of the slot if its isolation level is
// REPEATABLE READ. The level may be the default of the server, which differs.
func TestATransactionReadsAMovedSlotIfItsIsolationLevelShowsTheRows(t *testing.T) {
	open := writing(t)
	open["PostgreSQL"] = postgresDrivers(t)["pgx"]
	defaults := map[string]map[string]error{ // the statement that sets the default level, and the error afterwards
		"PostgreSQL": {"SET default_transaction_isolation = 'read committed'": nil, "SET default_transaction_isolation = 'repeatable read'": sharding.ErrSlotMoving},
	}
	for _, name := range []string{"MariaDB", "MySQL"} {
		defaults[name] = map[string]error{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED": nil, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ": sharding.ErrSlotMoving}
	}
	for name, levels := range defaults {
		for set, want := range levels {
			t.Run(name+"/"+set, func(t *testing.T) {
				old, pool, rows := open[name](t, "isolated_a"), open[name](t, "isolated_b"), open[name](t, "isolated_b")
				pool.SetMaxOpenConns(1)
				database.Exec(t, pool, set)
				for _, db := range []*sql.DB{old, rows} {
					database.Exec(t, db, "DROP TABLE IF EXISTS isolated")
					database.Exec(t, db, "CREATE TABLE isolated (id BIGINT PRIMARY KEY, user_id BIGINT)")
				}
				router := routerWithLease(t, sharding.DBs{"a": old, "b": pool})
				routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: old})
				defer func() { _ = routed.Close() }()
				count := func(on interface {
					QueryRow(query string, args ...any) *sql.Row
				}, user int) (n int, err error) {
					err = on.QueryRow("SELECT COUNT(*) FROM isolated WHERE user_id = " + strconv.Itoa(user)).Scan(&n)
					return n, err
				}
				tx, err := routed.Begin()
				if err != nil {
					t.Fatal(err)
				}
				if n, err := count(tx, 1); err != nil || n != 0 {
					t.Fatalf("%d rows, %v", n, err)
				}
				database.Exec(t, rows, "INSERT INTO isolated VALUES (1, 0), (2, 0)")
				if err := router.Swap(map[string]sharding.Map{"isolated": leased(t, "b", 1)}); err != nil {
					t.Fatal(err)
				}
				if n, err := count(tx, 0); !errors.Is(err, want) || want == nil && n != 2 {
					t.Errorf("%d rows, %v", n, err)
				}
				if err := tx.Rollback(); err != nil {
					t.Error(err)
				}
				if n, err := count(routed, 0); err != nil || n != 2 {
					t.Errorf("%d rows afterwards, %v", n, err)
				}
			})
		}
	}
}

// Another transaction may have changed the rows in the other database since: what the first one has read or locked says nothing of them.
func TestATransactionThatHasLockedRowsOfAMovedSlotIsRefusedThem(t *testing.T) {
	open := writing(t)
	open["PostgreSQL"] = postgresDrivers(t)["pgx"]
	for name, open := range open {
		for mode, spans := range map[sharding.TxMode]bool{sharding.SingleShard: false, sharding.BestEffort: true} {
			t.Run(fmt.Sprint(name, "/", mode), func(t *testing.T) {
				a, b := open(t, "locked_a"), open(t, "locked_b")
				for _, db := range []*sql.DB{a, b} {
					database.Exec(t, db, "DROP TABLE IF EXISTS isolated")
					database.Exec(t, db, "CREATE TABLE isolated (id BIGINT PRIMARY KEY, user_id BIGINT)")
					database.Exec(t, db, "INSERT INTO isolated VALUES (1, 0), (2, 1)")
				}
				for text, want := range map[string]error{
					"UPDATE isolated SET id = 3 WHERE user_id = 0":                                   sharding.ErrSlotMoving,
					"DELETE FROM isolated WHERE user_id = 0":                                         sharding.ErrSlotMoving,
					"INSERT INTO isolated (id, user_id) VALUES (4, 0)":                               sharding.ErrSlotMoving,
					"UPDATE isolated SET id = 5 WHERE user_id = 1":                                   nil,
					"INSERT INTO isolated (id, user_id) VALUES (6, 1)":                               nil,
					"INSERT INTO isolated (id, user_id) VALUES (7, 3), (8, 4)":                       sharding.ErrSlotMoving,
					"UPDATE isolated SET id = id + 10 WHERE user_id IN (0, 1)":                       sharding.ErrSlotMoving,
					"SELECT id FROM isolated WHERE user_id = 0 FOR UPDATE":                           sharding.ErrSlotMoving,
					"INSERT INTO isolated (id, user_id) SELECT 9, 0 FROM isolated WHERE user_id = 0": sharding.ErrSlotMoving,
				} {
					router := routerWithLease(t, sharding.DBs{"a": a, "b": b}, sharding.Transactions(mode))
					routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: a})
					defer func() { _ = routed.Close() }()
					tx, err := routed.Begin()
					if err != nil {
						t.Fatal(err)
					}
					var id int
					if err := tx.QueryRow("SELECT id FROM isolated WHERE user_id = 0 FOR UPDATE").Scan(&id); err != nil {
						t.Fatal(err)
					}
					if err := router.Swap(map[string]sharding.Map{"isolated": leased(t, "b", 1)}); err != nil {
						t.Fatal(err)
					}
					if want == nil && !spans {
						want = sharding.ErrCrossDatabase
					}
					if _, err := tx.Exec(text); !errors.Is(err, want) {
						t.Errorf("%s: %v, want %v", text, err, want)
					}
					if err := tx.Rollback(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// levelQueries count the queries for an isolation level.
type levelQueries struct{ atomic.Int64 }

func (q *levelQueries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "transaction_isolation") {
		q.Add(1)
	}
	return ctx
}

func (*levelQueries) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// The parts of a query are executed side by side. None of them may use the connection of another one, which may be in use: pgx panics then.
func TestAQueryOfSeveralDatabasesAsksEachOnceForTheIsolationLevelOfItsTransaction(t *testing.T) {
	var asked levelQueries
	open := func(name string) *sql.DB {
		p := server.SharePostgres(t)
		database.Exec(t, p.Open(t, name), "DROP TABLE IF EXISTS isolated")
		database.Exec(t, p.Open(t, name), "CREATE TABLE isolated (id BIGINT PRIMARY KEY, user_id BIGINT)")
		config, err := pgx.ParseConfig(p.DSN(name))
		if err != nil {
			t.Fatal(err)
		}
		config.Tracer = &asked
		db := stdlib.OpenDB(*config)
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	a, b := open("asked_a"), open("asked_b")
	router := routerWithLease(t, sharding.DBs{"a": a, "b": b}, sharding.Transactions(sharding.BestEffort))
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: a})
	defer func() { _ = routed.Close() }()
	tx, err := routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	moved, err := sharding.MapOf(sharding.Target{DB: "b", Table: "isolated"}, sharding.Target{DB: "a", Table: "isolated"})
	if err != nil {
		t.Fatal(err)
	}
	for query := range 20 {
		if err := tx.QueryRow("SELECT COUNT(*) FROM isolated").Scan(new(int)); err != nil {
			t.Fatal(err)
		}
		if query == 0 {
			if err := router.Swap(map[string]sharding.Map{"isolated": moved.While(func() bool { return true }).At(1)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("two databases were asked %d times", n)
	}
}

func routerWithLease(t *testing.T, dbs sharding.DBs, options ...sharding.Option) *sharding.Router {
	t.Helper()
	router, err := sharding.New(dbs, append(options, sharding.Table{Name: "isolated", Key: "user_id", Rule: sharding.Mod(2), Map: leased(t, "a", 0)})...)
	if err != nil {
		t.Fatal(err)
	}
	return router
}

// leased returns a map with slot 0 in a database and slot 1 in "b". Its lease does not end.
func leased(t *testing.T, db string, version int64) sharding.Map {
	t.Helper()
	m, err := sharding.MapOf(sharding.Target{DB: db, Table: "isolated"}, sharding.Target{DB: "b", Table: "isolated"})
	if err != nil {
		t.Fatal(err)
	}
	return m.While(func() bool { return true }).At(version)
}
