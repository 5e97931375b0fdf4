// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// On MySQL and MariaDB, a query that locks rows of several shards returns the rows that it
// returns of one table, while others hold some of them, and holds the same rows afterwards.
func TestRandomLocksOfSeveralShardsAreThoseOfOneTable(t *testing.T) {
	for name, open := range writing(t) {
		for layout, m := range layouts(t) {
			t.Run(name+", "+layout, func(t *testing.T) { lockRandomly(t, name, open.of("locked_"+layout), m) })
		}
	}
}

func lockRandomly(t *testing.T, name string, open namedDatabase, m sharding.Map) {
	t.Helper()
	routed, whole := writtenTwins(t, open, m)
	for id := range 60 {
		for _, db := range []*sql.DB{routed, whole} {
			database.Exec(t, db, fmt.Sprintf("INSERT INTO orders (id, user_id, paid, note) VALUES (%d, %d, %d, 'x')", id, id%4+4*(id%3), id%5))
		}
	}
	answered, denied := 0, 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 9))
		held, query := locking("id IN ("+ids(random, 12)+")", " FOR UPDATE"), lockingQuery(random, name)
		want, got := lockedBy(t, whole, held, query), lockedBy(t, routed, held, query)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: while %s is held, %s:\n%q\nwant %q", seed, held, query, got, want)
		}
		if answered++; want[0] == deniedLock {
			denied++
		}
	}
	if t.Logf("%d queries, of which %d were denied a lock", answered, denied); denied == 0 || denied == answered {
		t.Error("all of one kind")
	}
}

func ids(random *rand.Rand, most int) string {
	var list []string
	for range 1 + random.IntN(most) {
		list = append(list, strconv.Itoa(random.IntN(60)))
	}
	return strings.Join(list, ", ")
}

func locking(where, lock string) string {
	return "SELECT id FROM orders WHERE " + where + " ORDER BY id" + lock
}

// lockingQuery waits for no lock. One that is denied a lock that others hold names few rows by
// their ids: of many, a server may read the whole table, and lock what it does not return.
func lockingQuery(random *rand.Rand, name string) string {
	locks := []string{" FOR UPDATE", " LOCK IN SHARE MODE"}
	if name == "MySQL" {
		locks = []string{" FOR UPDATE", " FOR SHARE"}
	}
	lock := locks[random.IntN(2)]
	switch random.IntN(5) {
	case 0:
		return "SELECT COUNT(*) FROM orders WHERE id IN (" + ids(random, 5) + ")" + lock + " SKIP LOCKED"
	case 4:
		return locking("id IN ("+ids(random, 2)+")", lock+" NOWAIT")
	case 1:
		return locking(fmt.Sprintf("id = %d", random.IntN(60)), " LIMIT 1"+lock+" SKIP LOCKED")
	case 2:
		return locking(fmt.Sprintf("paid = %d AND id > %d", random.IntN(5), random.IntN(60)), lock+" SKIP LOCKED")
	}
	return locking(fmt.Sprintf("user_id IN (%d, %d) OR paid = %d", random.IntN(12), random.IntN(12), random.IntN(5)), lock+" SKIP LOCKED")
}

const deniedLock = "denied"

// lockedBy returns what a query answers while another transaction holds rows, and which
// rows nobody holds afterwards.
func lockedBy(t *testing.T, db *sql.DB, held, query string) (answer []string) {
	t.Helper()
	begin := func() *sql.Tx {
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	holder, asker, witness := begin(), begin(), begin()
	defer func() {
		if err := errors.Join(witness.Rollback(), asker.Rollback(), holder.Rollback()); err != nil {
			t.Error(err)
		}
	}()
	if _, err := lockedIDs(t.Context(), holder, held); err != nil {
		t.Fatalf("%s: %v", held, err)
	}
	answer, err := lockedIDs(t.Context(), asker, query)
	switch {
	case err != nil && strings.Contains(query, "NOWAIT"):
		return []string{deniedLock}
	case err != nil:
		t.Fatalf("%s: %v", query, err)
	}
	free, err := lockedIDs(t.Context(), witness, "SELECT id FROM orders ORDER BY id FOR UPDATE SKIP LOCKED")
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat([]string{"answer"}, answer, []string{"free"}, free)
}

func lockedIDs(ctx context.Context, tx *sql.Tx, query string) (all []string, err error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		all = append(all, id)
	}
	return all, rows.Err()
}

// Two transactions would hold one lock: the mover waits for those that have written rows of a slot, and not for those that have locked some.
func TestATransactionWhoseLockedRowsHaveMovedDoesNotCommit(t *testing.T) {
	for name, open := range onThree(t) {
		dbs, home := sharding.DBs{"a": open(t, "locked_a"), "b": open(t, "locked_b")}, open(t, "locked_home")
		for _, db := range dbs {
			for _, table := range []string{"accounts", "payments"} {
				database.Exec(t, db, "CREATE TABLE "+table+" (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, amount BIGINT NOT NULL)")
			}
		}
		database.Exec(t, home, "CREATE TABLE runs (id BIGINT NOT NULL PRIMARY KEY)")
		database.Exec(t, dbs["a"], "INSERT INTO accounts VALUES (1, 0, 5)")
		for text, c := range map[string]struct {
			next string // the database of slot 0 at COMMIT, or "" if it is held
			then string // a statement between
			want error
		}{
			"it moves":                        {"b", "", sharding.ErrSlotMoving},
			"it is held":                      {"", "INSERT INTO payments (id, user_id, amount) VALUES (2, 1, 1)", sharding.ErrSlotMoving},
			"a write of no row":               {"", "UPDATE accounts SET amount = 4 WHERE user_id = 0 AND id = 9", sharding.ErrSlotMoving},
			"a write that returns no row":     {"", "UPDATE accounts SET amount = 4 WHERE user_id = 0 AND id = 9 RETURNING id", sharding.ErrSlotMoving},
			"a write that is undone":          {"", "SAVEPOINT one; UPDATE accounts SET amount = 4 WHERE user_id = 0 AND id = 1; ROLLBACK TO SAVEPOINT one", sharding.ErrSlotMoving},
			"it stays":                        {"a", "", nil},
			"a write keeps it":                {"", "UPDATE accounts SET amount = amount + 1 WHERE user_id = 0 AND id = 1", nil},
			"a write of another table does":   {"", "INSERT INTO payments (id, user_id, amount) VALUES (4, 0, 1)", nil},
			"a query that does not lock rows": {"b", "", nil},
		} {
			t.Run(name+"/"+text, func(t *testing.T) {
				at := func(table, db string, version int64) sharding.Map {
					m, err := sharding.MapOf(sharding.Target{DB: db, Table: table}, sharding.Target{DB: "a", Table: table})
					if err != nil {
						t.Fatal(err)
					}
					return m.At(version).While(func() bool { return true })
				}
				router, err := sharding.New(dbs, sharding.Transactions(sharding.BestEffort),
					sharding.Table{Name: "accounts", Key: "user_id", Rule: sharding.Mod(2), Map: at("accounts", "a", 1), Group: "shop"},
					sharding.Table{Name: "payments", Key: "user_id", Rule: sharding.Mod(2), Map: at("payments", "a", 1), Group: "shop"})
				if err != nil {
					t.Fatal(err)
				}
				routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
				t.Cleanup(func() { _ = routed.Close() })
				tx, err := routed.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				query := "SELECT amount FROM accounts WHERE user_id = 0 AND id = 1"
				if text != "a query that does not lock rows" {
					query += " FOR UPDATE"
				}
				if err := tx.QueryRowContext(t.Context(), query).Scan(new(int)); err != nil {
					t.Fatal(err)
				}
				for then := range strings.SplitSeq(c.then, "; ") {
					switch {
					case strings.HasSuffix(then, "RETURNING id") && name != "PostgreSQL":
						database.Exec(t, tx, strings.TrimSuffix(then, " RETURNING id"))
					case strings.HasSuffix(then, "RETURNING id"):
						if err := tx.QueryRowContext(t.Context(), then).Scan(new(int)); !errors.Is(err, sql.ErrNoRows) {
							t.Fatal(err)
						}
					case then != "":
						database.Exec(t, tx, then)
					}
				}
				next := map[string]sharding.Map{}
				for _, table := range []string{"accounts", "payments"} {
					if next[table] = at(table, cmp.Or(c.next, "a"), 2); c.next == "" {
						next[table] = next[table].Sharing(0).Holding(0)
					}
				}
				if err := router.Swap(next); err != nil {
					t.Fatal(err)
				}
				if err := tx.Commit(); !errors.Is(err, c.want) {
					t.Errorf("COMMIT: %v", err)
				}
				if n := database.MustNumber(t, dbs["a"], "SELECT COUNT(*) FROM payments WHERE id = 2"); n != 0 {
					t.Error("it has committed")
				}
				for db, pool := range dbs {
					if n := pool.Stats().InUse; n != 0 {
						t.Errorf("%d connections of %s are in use", n, db)
					}
				}
			})
		}
	}
}
