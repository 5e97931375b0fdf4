// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// delaying is a database that a statement reaches some time after it was sent.
type delaying struct {
	asking

	late func(text string)
}

func (d delaying) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := d.asking.Connect(ctx)
	return delayedConn{c.(askingConn), d.late}, err
}

type delayedConn struct {
	askingConn

	late func(text string)
}

func (c delayedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.late(query)
	return c.askingConn.ExecContext(ctx, query, args)
}

func (c delayedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.late(query)
	return c.askingConn.QueryContext(ctx, query, args)
}

func (c delayedConn) Prepare(query string) (driver.Stmt, error) {
	st, err := c.askingConn.Prepare(query)
	return delayedStmt{st, query, c.late}, err
}

type delayedStmt struct {
	driver.Stmt

	text string
	late func(text string)
}

func (s delayedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.late(s.text)
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s delayedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.late(s.text)
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

// The network, or a pause of the process, delays it after the map was compared. The old shard has no row then that it could refuse.
func TestAStatementOfAKeyBeginsAgainIfItReachesItsShardAfterItsRowsHaveLeft(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // how many rows it returns or affects, and the ids of the items afterwards
	}{
		{"SELECT id FROM items WHERE user_id = 0", "2: 1 2 3"},
		{"SELECT id FROM items WHERE user_id = 0 AND id = 2", "1: 1 2 3"},
		{"DELETE FROM items WHERE user_id = 0 AND id = 2", "1: 1 3"},
		{"DELETE FROM items WHERE user_id = 0 RETURNING id", "2: 3"},
		{"UPDATE items SET id = 9 WHERE user_id = 0 AND id = 2", "1: 1 3 9"},
		{"DELETE FROM items WHERE id > 1 AND user_id IN (0, 1)", "2: 1"},
	} {
		for _, how := range []string{"text", "prepared", "in a transaction", "prepared in a transaction"} {
			t.Run(how+"/"+c.text, func(t *testing.T) {
				m := newSlotMoving(t, 2)
				on, end := preparer(m.routed), func() error { return nil }
				if strings.HasSuffix(how, "in a transaction") {
					tx, err := m.routed.BeginTx(within(t), nil)
					if err != nil {
						t.Fatal(err)
					}
					on, end = tx, tx.Commit
				}
				begins := strings.Split(c.text, "items")[0] + "items_0"
				m.late = func(text string) {
					if strings.HasPrefix(strings.ReplaceAll(text, `"`, ""), begins) {
						m.late = func(string) {}
						m.finish(t)
					}
				}
				n, err := m.count(t, on, c.text, strings.HasPrefix(how, "prepared"))
				if err := errors.Join(err, end()); err != nil {
					t.Fatal(err)
				}
				ids := one[sql.NullString](t, m.rows, "SELECT GROUP_CONCAT(id, ' ') FROM (SELECT id FROM items_1 ORDER BY id)")
				if got := fmt.Sprintf("%d: %s", n, ids.String); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			})
		}
	}
}

// The shard still has rows of another slot, which it changes.
func TestAWriteOfSeveralSlotsOfAShardIsWholeIfItReachesItAfterOneOfThemHasLeft(t *testing.T) {
	for _, text := range []string{"DELETE FROM items WHERE user_id IN (0, 1) AND id > 1", "DELETE FROM items WHERE user_id IN (0, 1) AND id > 1 RETURNING id"} {
		for _, how := range []string{"", "prepared", "in a transaction"} {
			t.Run(how+"/"+text, func(t *testing.T) {
				m := newSlotMoving(t, 2)
				place := func(first string, version int64) {
					of, err := sharding.MapOf(sharding.Target{DB: "a", Table: first}, sharding.Target{DB: "a", Table: "items_0"})
					if err == nil {
						err = m.router.Swap(map[string]sharding.Map{"items": of.Patient(time.Minute).While(func() bool { return true }).At(version)})
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				place("items_0", 1)
				exec(t, m.rows, "DELETE FROM items_1")
				exec(t, m.rows, "INSERT INTO items_0 VALUES (3, 1)")
				m.late = func(sent string) {
					if strings.HasPrefix(strings.ReplaceAll(sent, `"`, ""), "DELETE FROM items_0") {
						m.late = func(string) {}
						exec(t, m.rows, "INSERT INTO items_1 SELECT * FROM items_0 WHERE user_id = 0")
						place("items_1", 2)
						exec(t, m.rows, "DELETE FROM items_0 WHERE user_id = 0")
					}
				}
				on, end := preparer(m.routed), func() error { return nil }
				if how == "in a transaction" {
					tx, err := m.routed.BeginTx(within(t), nil)
					if err != nil {
						t.Fatal(err)
					}
					on, end = tx, tx.Commit
				}
				n, err := m.count(t, on, text, how == "prepared")
				if err := errors.Join(err, end()); err != nil {
					t.Fatal(err)
				}
				if left := one[int](t, m.rows, "SELECT (SELECT COUNT(*) FROM items_0) + (SELECT COUNT(*) FROM items_1)"); n != 2 || left != 1 {
					t.Errorf("%d rows are deleted, %d are left", n, left)
				}
			})
		}
	}
}

// An answer without columns, and one of rows that a driver does not count, do not say that nothing was written.
func TestAWriteThatWasCommittedIsNotExecutedAgainIfItsSlotMovesBeforeTheAnswer(t *testing.T) {
	for _, text := range []string{"DELETE FROM items WHERE user_id = 0 AND id = 2", "DELETE FROM items WHERE user_id = 0 AND id = 2 RETURNING id"} {
		for _, byQuery := range []bool{false, true} {
			m := newSlotMoving(t, 2)
			m.late = func(sent string) {
				if m.version == 0 && strings.HasPrefix(strings.ReplaceAll(sent, `"`, ""), "DELETE FROM items_0") {
					exec(t, m.rows, "INSERT INTO items_1 SELECT * FROM items_0")
					m.switchTo(t, "items_1") // the map is new when the answer comes; the rows have not left
				}
			}
			var err error
			if byQuery {
				var rows *sql.Rows
				rows, err = m.routed.QueryContext(within(t), text)
				err = drained(rows, err)
			} else {
				_, err = m.routed.ExecContext(within(t), text)
			}
			if err != nil {
				t.Fatal(err)
			}
			if n := one[int](t, m.rows, "SELECT (SELECT COUNT(*) FROM items_0 WHERE id = 2) + (SELECT COUNT(*) FROM items_1 WHERE id = 2)"); n != 1 {
				t.Errorf("%s (a query: %v): %d of 2 rows are left", text, byQuery, n)
			}
		}
	}
}

func TestAWriteWithoutRowsThatIsSentAsAQueryBeginsAgainIfItReachesItsShardAfterItsRowsHaveLeft(t *testing.T) {
	m := newSlotMoving(t, 2)
	m.late = func(text string) {
		if strings.HasPrefix(strings.ReplaceAll(text, `"`, ""), "DELETE FROM items_0") {
			m.late = func(string) {}
			m.finish(t)
		}
	}
	if err := drained(m.routed.QueryContext(within(t), "DELETE FROM items WHERE user_id = 0 AND id = 2")); err != nil {
		t.Fatal(err)
	}
	if ids := one[string](t, m.rows, "SELECT GROUP_CONCAT(id, ' ') FROM (SELECT id FROM items_1 ORDER BY id)"); ids != "1 3" {
		t.Error(ids)
	}
}

// Its BEGIN would commit the transaction of the program, on servers that do not refuse it.
func TestAWriteThatNeedsATransactionIsRefusedAfterABeginInAText(t *testing.T) {
	m := newSlotMoving(t, 2)
	conn, err := m.routed.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	const both = "DELETE FROM items WHERE user_id IN (0, 1)"
	exec(t, conn, "BEGIN")
	exec(t, conn, "DELETE FROM items WHERE user_id = 0 AND id = 1")
	if _, err := conn.ExecContext(within(t), both); !errors.Is(err, sharding.ErrSettings) {
		t.Error(err)
	}
	exec(t, conn, "ROLLBACK")
	if n := one[int](t, m.routed, "SELECT COUNT(*) FROM items"); n != 3 {
		t.Errorf("%d items", n)
	}
	for _, text := range []string{"SAVEPOINT a", "SAVEPOINT b", "RELEASE b"} {
		exec(t, conn, text)
	}
	if _, err := conn.ExecContext(within(t), both); !errors.Is(err, sharding.ErrSettings) {
		t.Errorf("within a savepoint: %v", err)
	}
	exec(t, conn, "RELEASE a")
	exec(t, conn, both)
	if n := one[int](t, m.routed, "SELECT COUNT(*) FROM items"); n != 0 {
		t.Errorf("%d items after the end of the transaction", n)
	}
}

// preparer is a database or a transaction.
type preparer interface {
	execer
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// count sends a statement, and returns how many rows it returns or affects.
func (m *slotMoving) count(t *testing.T, on preparer, text string, isPrepared bool) (n int64, err error) {
	t.Helper()
	query := func() (*sql.Rows, error) { return on.QueryContext(within(t), text) }
	exec := func() (sql.Result, error) { return on.ExecContext(within(t), text) }
	if isPrepared {
		st, err := on.PrepareContext(within(t), text)
		if err != nil {
			return 0, err
		}
		defer func() { _ = st.Close() }()
		query = func() (*sql.Rows, error) { return st.QueryContext(within(t)) }
		exec = func() (sql.Result, error) { return st.ExecContext(within(t)) }
	}
	if !strings.HasPrefix(text, "SELECT") && !strings.HasSuffix(text, "RETURNING id") {
		r, err := exec()
		if err != nil {
			return 0, err
		}
		return r.RowsAffected()
	}
	rows, err := query()
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}

// The shard that gets the row has answered before, and the one that had it answers when the row has left.
func TestARowIsFoundThatMovesWhileItsShardsAreSearched(t *testing.T) {
	for _, text := range []string{"DELETE FROM items WHERE id = 1", "UPDATE items SET amount = 2 WHERE id = 1", "SELECT id FROM items WHERE id = 1"} {
		for _, inTx := range []bool{false, true} {
			open := files(t)
			dbs := sharding.DBs{"a": open("a.db"), "b": open("b.db"), "c": open("c.db")}
			for _, db := range dbs {
				exec(t, db, "CREATE TABLE items (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, amount BIGINT NOT NULL)")
			}
			exec(t, dbs["a"], "INSERT INTO items VALUES (1, 1, 1)")
			at := func(db string, version int64) sharding.Map {
				m, err := sharding.MapOf(sharding.Target{DB: "c", Table: "items"}, sharding.Target{DB: db, Table: "items"}, sharding.Target{DB: "b", Table: "items"})
				if err != nil {
					t.Fatal(err)
				}
				return m.Patient(time.Minute).While(func() bool { return true }).At(version)
			}
			router, err := sharding.New(dbs, sharding.Table{Name: "items", Key: "user_id", Rule: sharding.Mod(3), Map: at("a", 0)})
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["c"]})
			m := &slotMoving{routed: routed}
			if _, err := m.count(t, routed, "DELETE FROM items WHERE id = 7", false); err != nil { // reads the columns
				t.Fatal(err)
			}
			dbs["a"].SetMaxOpenConns(1)
			held, err := dbs["a"].Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			before, done := dbs["a"].Stats().WaitCount, make(chan error, 1)
			var n int64
			go func() {
				on, end := preparer(routed), func() error { return nil }
				if inTx {
					tx, err := routed.BeginTx(within(t), nil)
					if err != nil {
						done <- err
						return
					}
					on, end = tx, tx.Commit
				}
				n, err = m.count(t, on, text, false)
				done <- errors.Join(err, end())
			}()
			testwait.Until(t, "the search waits for a connection", func() bool { return dbs["a"].Stats().WaitCount > before })
			exec(t, dbs["b"], "INSERT INTO items VALUES (1, 1, 1)")
			if err := router.Swap(map[string]sharding.Map{"items": at("b", 1)}); err != nil {
				t.Fatal(err)
			}
			exec(t, held, "DELETE FROM items")
			if err := errors.Join(held.Close(), <-done, routed.Close()); err != nil || n != 1 {
				t.Errorf("%s, in a transaction: %v: %d rows, %v", text, inTx, n, err)
			}
		}
	}
}
