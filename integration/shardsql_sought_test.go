// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/changes"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// onThreeAndTexts are the databases of onThree, and MySQL with a driver that writes arguments into texts, whose results are texts.
func onThreeAndTexts(t *testing.T) map[string]namedDatabase {
	t.Helper()
	all, of := onThree(t), server.ShareMySQL(t)
	all["MySQL, texts"] = writingArguments(of.Open, of.DSN)
	return all
}

func TestALockOfARowByItsIDIsTakenOnTheShardThatHasIt(t *testing.T) {
	for name, open := range onThreeAndTexts(t) {
		t.Run(name, func(t *testing.T) {
			routed, _ := memberTwins(t, open, sharding.SingleShard)
			database.Exec(t, routed, "INSERT INTO members (id, user_id, paid) VALUES (7, 1, 3)")
			database.Exec(t, routed, "INSERT INTO members (id, user_id, paid) VALUES (8, 2, 4)")
			tx, err := routed.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var paid int
			if err := tx.QueryRow("SELECT paid FROM members WHERE id = 7 FOR UPDATE").Scan(&paid); err != nil || paid != 3 {
				t.Fatal(paid, err)
			}
			if err := routed.QueryRow("SELECT paid FROM members WHERE id = 7 AND user_id = 1 FOR UPDATE NOWAIT").Scan(&paid); err == nil {
				t.Error("the row is not locked")
			}
			if err := routed.QueryRow("SELECT paid FROM members WHERE id = 8 FOR UPDATE NOWAIT").Scan(&paid); err != nil || paid != 4 {
				t.Error(paid, err)
			}
			if _, err := tx.Exec("UPDATE members SET paid = 5 WHERE id = 7"); err != nil {
				t.Error(err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := routed.QueryRow("SELECT paid FROM members WHERE id = 7").Scan(&paid); err != nil || paid != 5 {
				t.Error(paid, err)
			}
		})
	}
}

// A transaction of MySQL or MariaDB reads what was committed before its first read, and writes later rows, too.
func TestATransactionWritesByItsIDARowThatIsNewerThanItsFirstRead(t *testing.T) {
	for name, open := range onThreeAndTexts(t) {
		t.Run(name, func(t *testing.T) {
			routed, whole := memberTwins(t, open, sharding.SingleShard)
			write := func(on *sql.DB, text string) (affected int64) {
				tx, err := on.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = tx.Rollback() }()
				var n int
				if err := tx.QueryRow("SELECT COUNT(*) FROM members WHERE user_id = 1").Scan(&n); err != nil || n != 0 {
					t.Fatal(n, err)
				}
				database.Exec(t, on, "INSERT INTO members (id, user_id, paid) VALUES (7, 1, 0)")
				database.Exec(t, on, "INSERT INTO members (id, user_id, paid) VALUES (9, 3, 0)") // another shard of the database
				for _, id := range []string{"7", "9", "11", "7, 9"} {
					result, err := tx.Exec(text + " WHERE id IN (" + id + ")")
					if err != nil {
						t.Errorf("%s, %s: %v", text, id, err)
						return -1
					}
					some, err := result.RowsAffected()
					if err != nil {
						t.Error(err)
					}
					affected = affected*10 + some
				}
				return affected
			}
			for _, text := range []string{"UPDATE members SET paid = paid + 1", "DELETE FROM members"} {
				got, want := write(routed, text), write(whole, text)
				if got != want {
					t.Errorf("%s: %d rows, and %d of one table", text, got, want)
				}
				for _, on := range []*sql.DB{routed, whole} {
					database.Exec(t, on, "DELETE FROM members WHERE id IN (7)")
					database.Exec(t, on, "DELETE FROM members WHERE id IN (9)")
				}
			}
		})
	}
}

// MySQL and MariaDB let a DELETE wait for a row that another transaction has inserted, and then delete it.
func TestAWriteByAnIDIsUndoneWithItsTransactionEvenIfItsRowAppearsMeanwhile(t *testing.T) {
	for name, open := range onThreeAndTexts(t) {
		t.Run(name, func(t *testing.T) {
			routed, _ := memberTwins(t, open, sharding.SingleShard)
			for id, first := range []string{"", "UPDATE members SET paid = 1 WHERE user_id = 1"} { // of the other database
				insert, err := routed.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				database.Exec(t, insert, fmt.Sprintf("INSERT INTO members (id, user_id, paid) VALUES (%d, 4, 0)", id))
				undone, err := routed.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if first != "" {
					database.Exec(t, undone, first)
				}
				ended := make(chan error)
				go func() {
					_, err := undone.ExecContext(t.Context(), fmt.Sprintf("DELETE FROM members WHERE id = %d", id))
					ended <- err
				}()
				time.Sleep(100 * time.Millisecond) // for the DELETE to wait
				if err := errors.Join(insert.Commit(), <-ended, undone.Rollback()); err != nil {
					t.Error(err)
				}
				var n int
				if err := routed.QueryRow(fmt.Sprintf("SELECT COUNT(*) FROM members WHERE id = %d", id)).Scan(&n); err != nil || n != 1 {
					t.Errorf("after %q: %d rows, %v", first, n, err)
				}
			}
		})
	}
}

// The repeated search for a row that the transaction does not see locked it with FOR UPDATE, and waited for other locks.
func TestAQueryByAnIDLocksARowThatItsTransactionDoesNotSeeAsItsClauseSays(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			share := "FOR SHARE"
			if name == "MariaDB" {
				share = "LOCK IN SHARE MODE"
			}
			locks := []string{"FOR UPDATE SKIP LOCKED", "FOR UPDATE NOWAIT", share}
			if name == "MySQL" {
				locks = append(locks, "FOR SHARE OF members SKIP LOCKED", "FOR SHARE NOWAIT")
			}
			routed, whole := memberTwins(t, open, sharding.SingleShard)
			for _, insert := range []bool{true, false} { // the row is not committed, or somebody reads it
				for _, lock := range locks {
					if insert && lock == share {
						continue // it waits
					}
					answer := func(on *sql.DB) string {
						asker, holder := begin(t, on), begin(t, on)
						defer func() { _ = errors.Join(asker.Rollback(), holder.Rollback()) }()
						var n int
						if err := asker.QueryRow("SELECT COUNT(*) FROM members WHERE user_id = 1").Scan(&n); err != nil {
							t.Fatal(err)
						}
						if insert {
							database.Exec(t, holder, "INSERT INTO members (id, user_id, paid) VALUES (9, 3, 0)")
						} else {
							database.Exec(t, on, "INSERT INTO members (id, user_id, paid) VALUES (9, 3, 0)")
							if err := holder.QueryRow("SELECT user_id FROM members WHERE id = 9 AND user_id = 3 " + share).Scan(&n); err != nil {
								t.Fatal(err)
							}
						}
						err := asker.QueryRow("SELECT user_id FROM members WHERE id = 9 " + lock).Scan(&n)
						if err := errors.Join(asker.Rollback(), holder.Rollback()); err != nil {
							t.Error(err)
						}
						database.Exec(t, on, "DELETE FROM members WHERE user_id = 3")
						if err != nil {
							return err.Error()
						}
						return strconv.Itoa(n)
					}
					if got, want := answer(routed), answer(whole); !strings.HasSuffix(got, want) {
						t.Errorf("insert %v, %s: %s, and one table says %s", insert, lock, got, want)
					}
				}
			}
		})
	}
}

// One table keeps no lock of a row that is not changed at this isolation level. The repeated search, for the other id, kept it.
func TestAWriteByIDsLeavesARowUnlockedThatItDoesNotChange(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			routed, whole := memberTwins(t, open, sharding.SingleShard)
			for which, on := range map[string]*sql.DB{"the shards": routed, "one table": whole} {
				database.Exec(t, on, "INSERT INTO members (id, user_id, paid) VALUES (7, 1, 0)")
				tx, err := on.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
				if err != nil {
					t.Fatal(err)
				}
				database.Exec(t, tx, "UPDATE members SET paid = 1 WHERE id = 100 AND user_id = 3") // begins it
				database.Exec(t, tx, "UPDATE members SET paid = 1 WHERE id IN (7, 99) AND paid > 3")
				var id int
				if err := on.QueryRow("SELECT id FROM members WHERE id = 7 AND user_id = 1 FOR UPDATE NOWAIT").Scan(&id); err != nil {
					t.Errorf("%s: %v", which, err)
				}
				if err := tx.Commit(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func begin(t *testing.T, on *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := on.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// Every read of a SERIALIZABLE transaction of MySQL or MariaDB locks. Two searches shared the lock of the row, and each UPDATE
// then waited for the other search.
func TestSerializableWritersOfARowByItsIDTakeTurns(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			routed, _ := memberTwins(t, open, sharding.SingleShard)
			database.Exec(t, routed, "INSERT INTO members (id, user_id, paid) VALUES (7, 1, 0)")
			add := func() (err error) {
				tx, err := routed.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelSerializable})
				if err != nil {
					return err
				}
				defer func() { _ = tx.Rollback() }()
				if _, err := tx.Exec("UPDATE members SET paid = 0 WHERE id = 100 AND user_id = 3"); err != nil { // begins it
					return err
				}
				if _, err := tx.Exec("UPDATE members SET paid = paid + 1 WHERE id = 7"); err != nil {
					return err
				}
				return tx.Commit()
			}
			const writers, turns = 4, 20
			var all sync.WaitGroup
			for range writers {
				all.Go(func() {
					for range turns {
						if err := add(); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if n := database.MustNumber(t, routed, "SELECT paid FROM members WHERE id = 7"); n != writers*turns {
				t.Error(n)
			}
		})
	}
}

// sqlc and others pass a list of ids as one argument of PostgreSQL: = ANY ($1).
func TestTheRowsOfAnArrayOfIDsAreSearchedFor(t *testing.T) {
	for name, open := range postgresDrivers(t) {
		t.Run(name, func(t *testing.T) {
			routed, whole := memberTwins(t, open.of("array_"+name), sharding.BestEffort)
			list := func(of any) any {
				if name == "pq" {
					return pq.Array(of)
				}
				return of
			}
			for _, on := range []*sql.DB{routed, whole} {
				database.Exec(t, on, "INSERT INTO members (id, user_id, paid, email) VALUES (10, 1, 0, 'a@x'), (20, 2, 0, 'b@x'), (30, 3, 0, 'c@x'), (40, 4, 0, 'd@x')")
			}
			change := func(on *sql.DB, text string, args ...any) string {
				result, err := on.ExecContext(t.Context(), text, args...)
				if err != nil {
					return err.Error()
				}
				n, err := result.RowsAffected()
				return fmt.Sprint(n, err, database.Texts(t, on, "SELECT id FROM members WHERE paid > 0 ORDER BY id"))
			}
			for _, c := range []struct {
				text string
				args []any
			}{
				{"UPDATE members SET paid = paid + 1 WHERE id = ANY ($1)", []any{list([]int64{10})}},
				{"UPDATE members SET paid = paid + 1 WHERE id = ANY ($1::bigint[])", []any{list([]int64{20, 20, 77})}},
				{"UPDATE members SET paid = paid + 1 WHERE id = ANY (CAST($1 AS int[])) AND paid < $2", []any{list([]int32{10, 20, 30}), 1}},
				{"UPDATE members SET paid = 0 WHERE id = ANY ($1)", []any{list([]int64{})}},
				{"UPDATE members SET paid = 0 WHERE id = ANY ($1::bigint[])", []any{"{10,NULL}"}},
				{"UPDATE members SET paid = 9 WHERE email = ANY ($1::text[]) OR id = $2", []any{"{d@x,A@X}", 10}},
				{"DELETE FROM members WHERE id = ANY ($1)", []any{list([]int64{20, 30})}},
			} {
				if got, want := change(routed, c.text, c.args...), change(whole, c.text, c.args...); got != want {
					t.Errorf("%s: %s, and one table says %s", c.text, got, want)
				}
			}
			// Whoever casts to a type that compares otherwise does not find all rows by a search.
			if _, err := routed.ExecContext(t.Context(), "UPDATE members SET paid = 1 WHERE email = ANY ($1::varchar(3)[])", "{a@x}"); !errors.Is(err, sharding.ErrMissingKey) {
				t.Error(err)
			}
		})
	}
}

// A transaction holds a connection to its database, and its searches need one to the other database. The page on transactions says
// how many connections suffice.
func TestTransactionsThatSearchEachOthersDatabasesDoNotWaitForEver(t *testing.T) {
	for name, open := range onThreeAndTexts(t) {
		t.Run(name, func(t *testing.T) {
			dbs := sharding.DBs{"a": open(t, "searched_a"), "b": open(t, "searched_b")}
			m, err := sharding.Spread([]string{"a", "b"}, 4, "members_%d")
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range m.Targets() {
				database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+changes.MemberColumns)
			}
			router, err := sharding.New(dbs, sharding.Table{Name: "members", Key: "user_id", Rule: sharding.Mod(4), Map: m})
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
			t.Cleanup(func() { _ = routed.Close() })
			const connections, writers, turns = 2, 8, 20
			for id := range writers {
				database.Exec(t, routed, fmt.Sprintf("INSERT INTO members (id, user_id, paid) VALUES (%d, %[1]d, 0)", id))
			}
			for _, db := range []*sql.DB{routed, dbs["a"], dbs["b"]} {
				db.SetMaxOpenConns(connections)
			}
			database.AtOnce(t, writers, func(id int) error {
				for range turns {
					tx, err := routed.BeginTx(t.Context(), nil)
					if err != nil {
						return err
					}
					for _, text := range []string{"UPDATE members SET paid = paid + 1 WHERE user_id = %d", "UPDATE members SET paid = paid + 1 WHERE id = %d", "UPDATE members SET paid = 0 WHERE id = 1%d0"} {
						if _, err := tx.Exec(fmt.Sprintf(text, id)); err != nil {
							return errors.Join(err, tx.Rollback())
						}
					}
					if err := tx.Commit(); err != nil {
						return err
					}
				}
				return nil
			})
			if n := database.MustNumber(t, routed, "SELECT SUM(paid) FROM members"); n != 2*writers*turns {
				t.Error(n)
			}
		})
	}
}
