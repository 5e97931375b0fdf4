// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// besideItsCopy routes to shards of orders in a database that has one copy.
func besideItsCopy(t *testing.T, origin, copied *sql.DB, shards int, observer shardsql.Observer) *sql.DB {
	t.Helper()
	m, err := sharding.Spread([]string{"a"}, shards, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"a": origin}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(shards), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: origin, Replicas: map[string][]*sql.DB{"a": {copied}}, Observer: observer})
	t.Cleanup(func() { _ = routed.Close() })
	return routed
}

// A subquery is executed first, as a statement of its own. A copy lags behind the rows that the query locks.
func TestNoPartOfAQueryThatLocksRowsIsReadFromACopy(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, db string) *sql.DB{
		"MariaDB":    func(t *testing.T, db string) *sql.DB { return server.ShareMariaDB(t).Open(t, db) },
		"MySQL":      func(t *testing.T, db string) *sql.DB { return server.ShareMySQL(t).Open(t, db) },
		"PostgreSQL": func(t *testing.T, db string) *sql.DB { return server.SharePostgres(t).Open(t, db) },
	} {
		t.Run(name, func(t *testing.T) {
			origin, behind := open(t, "copied"), open(t, "behind")
			for _, db := range []*sql.DB{origin, behind} {
				for _, table := range []string{"orders_0", "orders_1"} {
					database.Exec(t, db, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, total BIGINT NOT NULL)")
				}
				database.Exec(t, db, "INSERT INTO orders_0 VALUES (2, 2, 10)")
			}
			database.Exec(t, origin, "INSERT INTO orders_1 VALUES (1, 1, 20)")
			routed := besideItsCopy(t, origin, behind, 2, shardsql.Observer{})
			for query, want := range map[string]int64{
				"SELECT id FROM orders WHERE total = (SELECT MAX(total) FROM orders)":                                                            2,
				"SELECT id FROM orders WHERE total = (SELECT MAX(total) FROM orders) FOR UPDATE":                                                 1,
				"SELECT id FROM orders WHERE user_id = 1 AND total > (SELECT AVG(total) FROM orders) FOR UPDATE":                                 1,
				"SELECT id FROM orders WHERE user_id IN (1, 2) AND total = (SELECT total FROM orders WHERE user_id = 1 FOR UPDATE)":              1,
				"SELECT id FROM orders WHERE total >= (SELECT MAX(total) FROM orders WHERE total >= (SELECT AVG(total) FROM orders)) FOR UPDATE": 1,
			} {
				var id int64
				if err := routed.QueryRowContext(t.Context(), query).Scan(&id); err != nil || id != want {
					t.Errorf("%s: %d (%v), want %d", query, id, err, want)
				}
			}
		})
	}
}

// A copy has its own sequences and locks, and refuses other writes.
func TestAQueryWithAFunctionThatWritesIsExecutedByTheDatabaseAndByNoCopy(t *testing.T) {
	for name, c := range map[string]struct {
		s                                   database.DSNOpener
		driver, readOnly, function, locking string
	}{
		"MariaDB": {server.ShareMariaDB(t), "mysql", "?tx_read_only=1", "MODIFIES SQL DATA BEGIN UPDATE notes SET n = n + 1; RETURN (SELECT n FROM notes); END", "is_free_lock('of the test') + 1"},
		"MySQL":   {server.ShareMySQL(t), "mysql", "?transaction_read_only=1", "MODIFIES SQL DATA BEGIN UPDATE notes SET n = n + 1; RETURN (SELECT n FROM notes); END", "is_free_lock('of the test') + 1"},
		"PostgreSQL": {server.SharePostgres(t), "pgx", "?sslmode=disable&default_transaction_read_only=on", "LANGUAGE plpgsql AS $$ BEGIN UPDATE notes SET n = n + 1; RETURN (SELECT n FROM notes); END $$",
			"nextval('numbers') + 1"},
	} {
		t.Run(name, func(t *testing.T) {
			origin, writable := c.s.Open(t, "written"), c.s.Open(t, "unwritten")
			for i, db := range []*sql.DB{origin, writable} {
				database.Exec(t, db, "CREATE TABLE orders_0 (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, place BIGINT)")
				database.Exec(t, db, "INSERT INTO orders_0 VALUES (2, 2, "+strconv.Itoa(i)+")")
				database.Exec(t, db, "CREATE TABLE notes (n BIGINT)")
				database.Exec(t, db, "INSERT INTO notes VALUES (1)")
				database.Exec(t, db, "CREATE FUNCTION noted(of_order BIGINT) RETURNS BIGINT "+c.function)
				if c.driver == "pgx" {
					database.Exec(t, db, "CREATE SEQUENCE numbers")
				}
			}
			behind, err := sql.Open(c.driver, c.s.DSN("unwritten")+c.readOnly)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = behind.Close() })
			for kind, pool := range map[string]*sql.DB{"read-only": behind, "writable": writable} {
				routed := besideItsCopy(t, origin, pool, 1, shardsql.Observer{})
				for query, place := range map[string]int64{
					"SELECT place, id FROM orders WHERE user_id = 2":                  1,
					"SELECT place, " + c.locking + " FROM orders WHERE user_id = 2":   0,
					"SELECT place, noted(id) FROM orders WHERE user_id = 2":           0,
					"SELECT place, id FROM orders WHERE user_id = 2 AND noted(7) > 0": 0,
				} {
					if pool == writable && strings.Contains(query, "noted") {
						continue // the functions of a program are not known
					}
					var from, n int64
					if err := routed.QueryRowContext(t.Context(), query).Scan(&from, &n); err != nil || from != place || n < 2 {
						t.Errorf("%s: %s: %d, %d (%v)", kind, query, from, n, err)
					}
				}
			}
			if n := database.MustNumber(t, writable, "SELECT n FROM notes"); n != 1 {
				t.Errorf("the copy has noted %d", n)
			}
		})
	}
}

// The killed server also leaves broken connections in the pool of the copy.
func TestReadsUseTheDatabaseWhileTheirCopyIsDown(t *testing.T) {
	mariadb, postgres := server.RunMariaDB(t), server.RunPostgres(t)
	for name, c := range map[string]struct {
		origin, copied database.DSNOpener
		kill           func()
		start          func(context.Context) error
	}{
		"MariaDB":    {server.ShareMariaDB(t), mariadb, mariadb.Kill, mariadb.Start},
		"PostgreSQL": {server.SharePostgres(t), postgres, postgres.Kill, postgres.Start},
	} {
		t.Run(name, func(t *testing.T) {
			origin, copied := c.origin.Open(t, "origin"), c.copied.Open(t, "copied")
			for i, db := range []*sql.DB{origin, copied} {
				for _, table := range []string{"orders_0", "orders_1"} {
					database.Exec(t, db, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, place BIGINT)")
				}
				database.Exec(t, db, "INSERT INTO orders_0 VALUES (2, 2, "+strconv.Itoa(i)+")")
			}
			var told atomic.Int64
			routed := besideItsCopy(t, origin, copied, 2, shardsql.Observer{ReplicaDown: func(_ context.Context, database string, replica int, err error) {
				if told.Add(1); database != "a" || replica != 0 || err == nil {
					t.Errorf("replica %d of %s is down: %v", replica, database, err)
				}
			}})
			place := func() (is int) {
				t.Helper()
				for _, query := range []string{"SELECT place FROM orders WHERE user_id = 2", "SELECT MAX(place) FROM orders"} {
					if err := routed.QueryRowContext(t.Context(), query).Scan(&is); err != nil {
						t.Errorf("%s: %v", query, err)
					}
				}
				return is
			}
			if place() != 1 {
				t.Error("the copy is not read")
			}
			c.kill()
			for range 20 {
				if place() != 0 {
					t.Error("the copy is down, and is read")
				}
			}
			if n := told.Load(); n == 0 || n > 20 { // it is asked once in five seconds
				t.Errorf("the observer was told %d times, for 40 queries", n)
			}
			if err := c.start(t.Context()); err != nil {
				t.Fatal(err)
			}
			testwait.Until(t, "the copy is read again", func() bool { return place() == 1 })
		})
	}
}
