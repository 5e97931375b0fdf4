// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
	"github.com/shardid/shardid/sharding/twophase"
)

// To end a deadlock, MySQL and MariaDB roll back a whole transaction.
// Its error is the server's, and no database commits a part of it.
func TestADeadlockEndsTheWholeTransaction(t *testing.T) {
	for name, open := range writing(t) {
		for mode, how := range map[sharding.TxMode]string{sharding.BestEffort: "best_effort", sharding.Atomic: "atomic"} {
			for where, users := range map[string][2]int{"first": {2, 6}, "second": {1, 5}} {
				t.Run(name+", "+how+", on the "+where+" database", func(t *testing.T) {
					deadlock(t, deadlocking(t, open.of(how+"_"+where), mode), users)
				})
			}
		}
	}
}

// deadlocking returns members by user: those of the slots 0 and 2 on one database, and the
// others on another one.
func deadlocking(t *testing.T, open namedDatabase, mode sharding.TxMode) *sql.DB {
	t.Helper()
	dbs := sharding.DBs{"a": open(t, "deadlock_a"), "b": open(t, "deadlock_b")}
	m, err := sharding.Spread([]string{"a", "b"}, 4, "members_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (user_id BIGINT PRIMARY KEY, paid INT NOT NULL)")
	}
	router, err := sharding.New(dbs, sharding.Transactions(mode), sharding.Table{Name: "members", Key: "user_id", Rule: sharding.Mod(4), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	if err := twophase.Create(t.Context(), router, dbs["a"]); err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	return routed
}

// deadlock makes two transactions wait for a row that the other one has locked.
func deadlock(t *testing.T, routed *sql.DB, users [2]int) {
	t.Helper()
	database.Exec(t, routed, "INSERT INTO members (user_id, paid) VALUES (1, 0), (2, 0), (5, 0), (6, 0), (8, 0), (12, 0)")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const several = "UPDATE members SET paid = paid + 1 WHERE user_id IN (?, ?)"
	var txs [2]*sql.Tx
	errs := make(chan error, 2)
	for i := range txs {
		var err error
		if txs[i], err = routed.BeginTx(ctx, nil); err != nil {
			t.Fatal(err)
		}
		for _, user := range []int{8 + 4*i, users[i]} {
			if _, err := txs[i].ExecContext(ctx, "UPDATE members SET paid = paid + 1 WHERE user_id = ?", user); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, tx := range txs {
		go func() {
			_, err := tx.ExecContext(ctx, several, users[1-i], 8+4*i)
			if err == nil {
				errs <- tx.Commit()
				return
			}
			if text := err.Error(); !strings.Contains(text, "1213") || strings.Contains(text, "SAVEPOINT") {
				t.Error(err)
			}
			checkEnded(ctx, t, tx, users[i])
			errs <- err
		}()
	}
	checkOneCommits(ctx, t, routed, errs, 4)
}

// checkEnded checks that a transaction which a deadlock has ended executes and commits nothing.
func checkEnded(ctx context.Context, t *testing.T, tx *sql.Tx, user int) {
	t.Helper()
	if _, err := tx.ExecContext(ctx, "UPDATE members SET paid = paid + 10 WHERE user_id = ?", user); err == nil || !strings.Contains(err.Error(), "begin a new one") {
		t.Errorf("the next statement: %v", err)
	}
	if err := tx.Commit(); err == nil || !strings.Contains(err.Error(), "begin a new one") {
		t.Errorf("COMMIT: %v", err)
	}
}

// checkOneCommits checks that one of two transactions has committed, whose changes are what is paid.
func checkOneCommits(ctx context.Context, t *testing.T, routed *sql.DB, errs <-chan error, want int) {
	t.Helper()
	if one, other := <-errs, <-errs; (one == nil) == (other == nil) {
		t.Error("not one of two: ", errors.Join(one, other))
	}
	var paid int
	if err := routed.QueryRowContext(sharding.AllShards(ctx), "SELECT SUM(paid) FROM members").Scan(&paid); err != nil || paid != want {
		t.Errorf("%d, %v, want the %d of one transaction", paid, err, want)
	}
}

// A query that locks rows gets the error of a deadlock with its rows.
func TestADeadlockThatEndsRowsEndsTheWholeTransaction(t *testing.T) {
	for name, open := range writing(t) {
		for mode, how := range map[sharding.TxMode]string{sharding.BestEffort: "best_effort", sharding.Atomic: "atomic"} {
			for where, users := range map[string][2][2]int{"first": {{2, 6}, {1, 5}}, "second": {{8, 12}, {1, 5}}} {
				for way, end := range map[string]func(*sql.Rows) error{"read": readRows, "closed": (*sql.Rows).Close} {
					t.Run(name+", "+how+", on the "+where+" database, "+way, func(t *testing.T) {
						routed := deadlocking(t, open.of(how+"_"+where), mode)
						database.Exec(t, routed, "INSERT INTO members (user_id, paid) VALUES (1, 0), (2, 0), (5, 0), (6, 0), (8, 0), (12, 0)")
						at := map[string]int{"first": 0, "second": 1}[where]
						deadlockOfRows(t, routed, users, at, end)
					})
				}
			}
		}
	}
}

func readRows(rows *sql.Rows) error {
	for rows.Next() {
	}
	return errors.Join(rows.Err(), rows.Close())
}

// deadlockOfRows makes two transactions change rows on two databases, and query the rows of both on one of these.
func deadlockOfRows(t *testing.T, routed *sql.DB, users [2][2]int, at int, end func(*sql.Rows) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var txs [2]*sql.Tx
	for i := range txs {
		var err error
		if txs[i], err = routed.BeginTx(ctx, nil); err != nil {
			t.Fatal(err)
		}
		for _, pair := range users {
			if _, err := txs[i].ExecContext(ctx, "UPDATE members SET paid = paid + 1 WHERE user_id = ?", pair[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	errs := make(chan error, 2)
	for i, tx := range txs {
		go func() {
			rows, err := tx.QueryContext(ctx, "SELECT paid FROM members WHERE user_id IN (?, ?) FOR UPDATE", users[at][1-i], users[at][i]) //nolint:rowserrcheck // by end
			if err == nil {
				err = end(rows)
			}
			if err == nil {
				errs <- tx.Commit()
				return
			}
			checkEnded(ctx, t, tx, users[1-at][i])
			errs <- err
		}()
	}
	checkOneCommits(ctx, t, routed, errs, 2)
}

// MariaDB rolls the whole transaction back, as after a deadlock.
func TestARowThatAnotherOneHasChangedEndsTheWholeTransaction(t *testing.T) {
	m := server.ShareMariaDB(t)
	open := namedDatabase(func(tb testing.TB, name string) *sql.DB {
		tb.Helper()
		m.Open(tb, name) // makes it
		return opened(tb, "mysql", m.DSN(name)+"?innodb_snapshot_isolation=ON")
	})
	for mode, how := range map[sharding.TxMode]string{sharding.BestEffort: "best_effort", sharding.Atomic: "atomic"} {
		for where, user := range map[string]int{"first": 2, "second": 1} {
			t.Run(how+", on the "+where+" database", func(t *testing.T) {
				routed := deadlocking(t, open.of("changed_"+how+"_"+where), mode)
				database.Exec(t, routed, "INSERT INTO members (user_id, paid) VALUES (1, 0), (2, 0), (4, 0), (3, 0)")
				tx, err := routed.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				database.Exec(t, tx, "UPDATE members SET paid = 1 WHERE user_id = 4")
				database.Exec(t, tx, "UPDATE members SET paid = 1 WHERE user_id = 3")
				var paid int
				if err := tx.QueryRowContext(t.Context(), "SELECT paid FROM members WHERE user_id = ?", user).Scan(&paid); err != nil {
					t.Fatal(err)
				}
				database.Exec(t, routed, fmt.Sprint("UPDATE members SET paid = 2 WHERE user_id = ", user))
				if _, err := tx.ExecContext(t.Context(), "UPDATE members SET paid = 3 WHERE user_id = ?", user); err == nil || !strings.Contains(err.Error(), "1020") {
					t.Fatal(err)
				}
				if _, err := tx.ExecContext(t.Context(), "UPDATE members SET paid = 3 WHERE user_id = 3"); err == nil || !strings.Contains(err.Error(), "begin a new one") {
					t.Errorf("the next statement: %v", err)
				}
				if err := tx.Commit(); err == nil || !strings.Contains(err.Error(), "begin a new one") {
					t.Errorf("COMMIT: %v", err)
				}
				if err := routed.QueryRowContext(sharding.AllShards(t.Context()), "SELECT SUM(paid) FROM members").Scan(&paid); err != nil || paid != 2 {
					t.Errorf("%d, %v, want the two of the other one", paid, err)
				}
			})
		}
	}
}

// The drivers of MySQL and MariaDB close the connection of a statement whose context ends.
func TestNothingIsCommittedAfterAStatementThatItsContextEnded(t *testing.T) {
	for name, open := range writing(t) {
		for where, user := range map[string]int{"first": 1, "second": 2} {
			t.Run(name+", on the "+where+" database", func(t *testing.T) {
				routed := deadlocking(t, open.of("ended_"+where), sharding.BestEffort)
				database.Exec(t, routed, "INSERT INTO members (user_id, paid) VALUES (1, 0), (2, 0)")
				tx, err := routed.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				for id := range 2 {
					if _, err := tx.ExecContext(t.Context(), "UPDATE members SET paid = 1 WHERE user_id = ?", id+1); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				var slept int
				if err := tx.QueryRowContext(ctx, "SELECT SLEEP(60) FROM members WHERE user_id = ?", user).Scan(&slept); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("the statement: %v", err)
				}
				var partial *sharding.PartialCommitError
				if err := tx.Commit(); err == nil || errors.As(err, &partial) || !strings.Contains(err.Error(), "nothing is committed") {
					t.Errorf("COMMIT: %v", err)
				}
				var paid int
				if err := routed.QueryRowContext(sharding.AllShards(t.Context()), "SELECT SUM(paid) FROM members").Scan(&paid); err != nil || paid != 0 {
					t.Errorf("%d rows are changed (%v)", paid, err)
				}
			})
		}
	}
}
