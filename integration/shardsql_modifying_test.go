// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// queueTwins are the orders, the archive and the outbox of users over two databases, and the same tables in one.
func queueTwins(t *testing.T, open namedDatabase) (routed, whole *sql.DB) {
	t.Helper()
	dbs, whole := sharding.DBs{"a": open(t, "queue_a"), "b": open(t, "queue_b")}, open(t, "queue_whole")
	var tables []sharding.Table
	for _, name := range []string{"orders", "archive", "outbox"} {
		const columns = " (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, paid BIGINT NOT NULL DEFAULT 0, note TEXT)"
		m, err := sharding.Spread([]string{"a", "b"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range m.Targets() {
			database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+columns)
		}
		database.Exec(t, whole, "CREATE TABLE "+name+columns)
		tables = append(tables, sharding.Table{Name: name, Key: "user_id", Rule: sharding.Mod(4), Map: m, Group: "shop", Also: []sharding.Alt{{Column: "id", Rule: sharding.Mod(4)}}})
	}
	for _, db := range []*sql.DB{dbs["a"], whole} {
		database.Exec(t, db, "CREATE TABLE log (id BIGINT NOT NULL PRIMARY KEY)")
	}
	router, err := sharding.New(dbs, sharding.Tables(tables...))
	if err != nil {
		t.Fatal(err)
	}
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	return routed, whole
}

// modifyingStatements are statements whose WITH writes. :u and :v are users, and :n is an id of :u.
var modifyingStatements = []string{
	"WITH o AS (INSERT INTO orders (id, user_id, note) VALUES (:n, :u, 'n') RETURNING id, user_id) INSERT INTO outbox (id, user_id, note) SELECT id, user_id, 'sent' FROM o RETURNING *",
	"WITH o AS (INSERT INTO orders (id, user_id, note) VALUES (:n, :u, 'n') ON CONFLICT (id) DO UPDATE SET paid = orders.paid + 1 RETURNING id, paid) SELECT * FROM o",
	"WITH gone AS (DELETE FROM orders WHERE user_id = :u AND paid > 1 RETURNING *), kept AS (INSERT INTO archive (id, user_id, paid, note) SELECT id, user_id, paid, note FROM gone RETURNING id) SELECT COUNT(*), MIN(id) FROM kept",
	"WITH picked AS (SELECT id FROM outbox WHERE user_id = :u ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED), done AS (DELETE FROM outbox USING picked WHERE outbox.id = picked.id AND outbox.user_id = :u RETURNING outbox.*) SELECT id, note FROM done ORDER BY id",
	"WITH o AS (UPDATE orders AS x SET paid = x.paid + 1, note = 'p' WHERE x.user_id = :u RETURNING x.id, x.user_id) UPDATE outbox SET note = 'paid' FROM o WHERE outbox.id = o.id AND outbox.user_id = o.user_id RETURNING outbox.id",
	"WITH a AS (UPDATE orders SET paid = 0 WHERE id = :n RETURNING id), b AS (UPDATE outbox SET paid = 7 WHERE id = :n RETURNING id) SELECT (SELECT COUNT(*) FROM a) AS a, (SELECT COUNT(*) FROM b) AS b",
	"WITH o AS (DELETE FROM archive WHERE user_id = :u RETURNING id) SELECT o.id, x.paid FROM o LEFT JOIN outbox x ON x.id = o.id AND x.user_id = :u",
	"WITH o AS (UPDATE orders SET note = 'u' WHERE user_id = :u AND id IN (SELECT id FROM outbox WHERE user_id = :u) RETURNING id) DELETE FROM outbox WHERE user_id = :u AND id IN (SELECT id FROM o)",
	"WITH o AS (INSERT INTO orders (id, user_id) SELECT id, user_id FROM archive WHERE user_id = :u AND id NOT IN (SELECT id FROM orders WHERE user_id = :u) RETURNING id) SELECT COUNT(*) FROM o",
	"WITH o AS (INSERT INTO orders (id, user_id) SELECT id, user_id FROM archive WHERE user_id = :u ON CONFLICT (id) DO NOTHING RETURNING id) SELECT COUNT(*) FROM o",
	"WITH e AS (DELETE FROM log WHERE id < 0 RETURNING id) SELECT COUNT(*) FROM e",
	"WITH o AS (INSERT INTO orders (id, user_id) VALUES (:n, :u) ON CONFLICT (id) DO UPDATE SET paid = orders.paid + 1 RETURNING id, user_id, paid) INSERT INTO outbox (id, user_id, paid) SELECT id, user_id, paid FROM o ON CONFLICT (id) DO UPDATE SET note = 'again' RETURNING id, note",
	"WITH o AS (UPDATE orders SET paid = :v WHERE user_id = :u AND paid = :u RETURNING id, user_id, paid) SELECT x.id, o.paid FROM o JOIN outbox x ON x.user_id = o.user_id",
	// These lead to several shards, unless both users have the same.
	"WITH o AS (UPDATE orders SET paid = 5 WHERE user_id IN (:u, :v) RETURNING id) SELECT * FROM o",
	"WITH o AS (DELETE FROM orders WHERE user_id = :u RETURNING id) SELECT o.id FROM o JOIN archive ON archive.user_id = :v",
	"WITH o AS (INSERT INTO orders (id, user_id) VALUES (:n, :u) RETURNING id) UPDATE outbox SET paid = 1 WHERE user_id = :v RETURNING id",
	"WITH o AS (UPDATE orders SET paid = 1 RETURNING id) SELECT COUNT(*) FROM o",
	"WITH o AS (UPDATE orders SET paid = 1 WHERE user_id = :u RETURNING id) SELECT COUNT(*) FROM archive",
	"WITH o AS (DELETE FROM orders WHERE user_id = :u RETURNING id) INSERT INTO log (id) SELECT id FROM o ON CONFLICT DO NOTHING",
	"WITH o AS (UPDATE orders SET paid = :v WHERE user_id = :u AND paid = :u RETURNING id, paid) SELECT x.id FROM o JOIN outbox x ON x.user_id = o.paid",
	"WITH o AS (UPDATE orders SET paid = :v, note = 'v' WHERE user_id = :u AND paid = user_id RETURNING *) INSERT INTO archive (id, user_id) SELECT paid, paid FROM o ON CONFLICT (id) DO NOTHING",
}

// Each statement whose WITH writes has the answer of one table, or is refused and does nothing.
func TestAWithThatWritesDoesOnOneShardWhatItDoesOnOneTable(t *testing.T) {
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			routed, whole := queueTwins(t, open.of("modifying_"+name))
			r := rand.New(rand.NewPCG(29, 11))
			answered, refused := map[string]int{}, map[string]int{}
			for range effort.Cases(600, 20_000) {
				text := modifyingStatements[r.IntN(len(modifyingStatements))]
				user := r.IntN(6)
				sent := strings.NewReplacer(":n", strconv.Itoa(user+12*r.IntN(6)), ":u", strconv.Itoa(user), ":v", strconv.Itoa(r.IntN(6))).Replace(text)
				got, err := inTransaction(t, routed, sent)
				var refusal *sharding.RouteError
				if errors.As(err, &refusal) {
					refused[text]++
					continue
				}
				answered[text]++
				want, failed := inTransaction(t, whole, sent)
				for _, of := range []string{"orders", "archive", "outbox", "log"} {
					got, want = append(got, rowTexts(t, routed, "SELECT * FROM "+of)...), append(want, rowTexts(t, whole, "SELECT * FROM "+of)...)
				}
				if (err == nil) != (failed == nil) || strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Fatalf("%s\nshards:    %q, %v\none table: %q, %v", sent, got, err, want, failed)
				}
			}
			for i, text := range modifyingStatements {
				if t.Logf("%d answered, %d refused: %s", answered[text], refused[text], text); (i < 13) != (refused[text] == 0) || i < 13 && answered[text] == 0 {
					t.Errorf("%d answered, %d refused: %s", answered[text], refused[text], text)
				}
			}
		})
	}
}

// inTransaction executes a statement, and commits.
func inTransaction(t *testing.T, db *sql.DB, text string) ([]string, error) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	answer, err := answered(t.Context(), tx, text, nil)
	if err == nil {
		err = tx.Commit()
	}
	return answer, err
}

// The source of a migration executes a WITH that writes its tables, and a strict one refuses what the shards will.
func TestTheSourceOfAMigrationExecutesAWithThatWrites(t *testing.T) {
	for name, open := range postgresDrivers(t) {
		for _, group := range []string{"", "shop"} {
			t.Run(name+group, func(t *testing.T) {
				routed := movingQueue(t, open.of("modifying_source_"+name+group), group)
				for _, s := range []struct {
					text string
					want error // if the migration is strict
				}{
					{"WITH o AS (INSERT INTO orders (id, user_id) VALUES (1, 5) RETURNING *) INSERT INTO outbox (id, user_id) SELECT id, user_id FROM o", nil},
					{"WITH o AS (DELETE FROM orders WHERE user_id = 5 RETURNING id), x AS (DELETE FROM outbox WHERE user_id = 5 RETURNING id) SELECT COUNT(*) FROM o, x", nil},
					{"WITH o AS (DELETE FROM orders WHERE user_id = 5 RETURNING id) UPDATE outbox SET id = id WHERE user_id = 6", sharding.ErrCrossShard},
					{"WITH o AS (DELETE FROM orders WHERE user_id = 5 RETURNING id) INSERT INTO log SELECT id FROM o", sharding.ErrCrossShard},
				} {
					if group == "" {
						s.want = nil
					}
					if _, err := routed.ExecContext(t.Context(), s.text); !errors.Is(err, s.want) {
						t.Errorf("%s: %v", s.text, err)
					}
				}
			})
		}
	}
}

// movingQueue is the orders and the outbox of users that the source of a migration serves, which is strict if they have a group.
func movingQueue(t *testing.T, open namedDatabase, group string) *sql.DB {
	t.Helper()
	dbs := sharding.DBs{"source": open(t, "source"), "a": open(t, "a"), "b": open(t, "b")}
	options := []sharding.Option{sharding.Migration{Source: "source", Tables: map[string]string{"orders": "", "outbox": ""}, Strict: group != ""}}
	for _, of := range []string{"orders", "outbox"} {
		m, err := sharding.Spread([]string{"a", "b"}, 4, of+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, sharding.Table{Name: of, Key: "user_id", Rule: sharding.Mod(4), Map: m, Group: group})
		database.Exec(t, dbs["source"], "CREATE TABLE "+of+" (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL)")
	}
	database.Exec(t, dbs["source"], "CREATE TABLE log (id BIGINT NOT NULL PRIMARY KEY)")
	database.Exec(t, dbs["source"], "CREATE TABLE shardid_route (tbl VARCHAR(64) PRIMARY KEY, job VARCHAR(64), epoch BIGINT, route VARCHAR(20))")
	router, err := sharding.New(dbs, options...)
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["source"]})
	t.Cleanup(func() { _ = routed.Close() })
	return routed
}

// The WITH and the statement behind it name different tables of the group.
func TestAWithThatWritesBeginsAgainIfItsSlotMovesWhileItWaitsForAConnection(t *testing.T) {
	s := server.RunPostgres(t)
	a, b := s.Open(t, "waiting_a"), s.Open(t, "waiting_b")
	names := []string{"orders", "outbox"}
	at := func(db string, version int64) map[string]sharding.Map {
		maps := map[string]sharding.Map{}
		for _, name := range names {
			m, err := sharding.MapOf(sharding.Target{DB: db, Table: name + "_0"}, sharding.Target{DB: "b", Table: name + "_1"})
			if err != nil {
				t.Fatal(err)
			}
			maps[name] = m.At(version).Patient(time.Minute).While(func() bool { return true })
		}
		return maps
	}
	var tables []sharding.Table
	for _, name := range names {
		for _, of := range []struct {
			db    *sql.DB
			table string
		}{{a, name + "_0"}, {b, name + "_0"}, {b, name + "_1"}} {
			database.Exec(t, of.db, "CREATE TABLE "+of.table+" (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, paid BIGINT NOT NULL)")
		}
		tables = append(tables, sharding.Table{Name: name, Key: "user_id", Rule: sharding.Mod(2), Map: at("a", 1)[name], Group: "shop"})
	}
	router, err := sharding.New(sharding.DBs{"a": a, "b": b}, sharding.Tables(tables...))
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: b})
	t.Cleanup(func() { _ = routed.Close() })
	for _, name := range names {
		database.Exec(t, routed, "INSERT INTO "+name+" (id, user_id, paid) VALUES (1, 0, 0)")
	}
	a.SetMaxOpenConns(1)
	held, err := a.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waits, done := a.Stats().WaitCount, make(chan error, 1)
	go func() {
		_, err := routed.ExecContext(t.Context(), "WITH o AS (UPDATE orders SET paid = 1 WHERE user_id = 0 RETURNING id) UPDATE outbox SET paid = 1 WHERE user_id = 0 AND id IN (SELECT id FROM o)")
		done <- err
	}()
	testwait.Until(t, "the statement waits for a connection", func() bool { return a.Stats().WaitCount > waits })
	for _, name := range names {
		database.Exec(t, b, "INSERT INTO "+name+"_0 VALUES (1, 0, 0)")
		database.Exec(t, held, "DELETE FROM "+name+"_0")
	}
	if err := errors.Join(router.Swap(at("b", 2)), held.Close(), <-done); err != nil {
		t.Fatal(err)
	}
	if n := database.MustNumber(t, b, "SELECT (SELECT paid FROM orders_0) + (SELECT paid FROM outbox_0)"); n != 2 {
		t.Errorf("%d of 2 rows are changed", n)
	}
}
