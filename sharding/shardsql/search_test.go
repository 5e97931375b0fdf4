// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/internal/testkit/changes"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
)

// membered is members in four shards in two databases, with one connection each, and one
// table beside it.
func membered(t testing.TB, options ...sharding.Option) *twin {
	t.Helper()
	return memberedBy(t, 4, options...)
}

func memberedBy(t testing.TB, slots int, options ...sharding.Option) *twin {
	t.Helper()
	w := twinOf(t, sharding.Table{Name: "members", Key: "user_id", Rule: sharding.Mod(slots), Map: spread(t, 4, "members_%d"), OnMissing: sharding.FanOutReads},
		changes.MemberColumns, options...)
	for _, db := range w.dbs {
		db.SetMaxOpenConns(1)
	}
	return w
}

// within ends a test that waits for a connection which it holds itself.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func isRefusal(err error) bool {
	return errors.Is(err, sharding.ErrKeyChange) || errors.Is(err, sharding.ErrCrossShard)
}

// Statements that depend on a row with the same id or email leave the rows of one table, or are
// refused because a row of another slot has the key, on another shard or its own.
func TestRandomUpsertsFindTheRowsOfAllShards(t *testing.T) {
	programs := effort.Cases(200, 12_500)
	for _, slots := range []int{4, 8} {
		t.Run(fmt.Sprint(slots, " slots"), func(t *testing.T) {
			w := memberedBy(t, slots, sharding.Transactions(sharding.BestEffort))
			done := 0
			m := &changes.Members{Maker: &changes.Maker{SQLite: true}, IsRefusal: isRefusal, Slots: int64(slots)}
			for seed := range uint64(programs) {
				m.Rand = rand.New(rand.NewPCG(seed, 7))
				n, err := m.Program(t.Context(), w.routed, w.one)
				if done += n; err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if seed%8 == 0 {
					for _, db := range []*sql.DB{w.routed, w.one} {
						exec(t, db, "DELETE FROM members WHERE user_id IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)")
					}
				}
			}
			if t.Logf("%d statements, and %d refused with reason", done, m.Refused); done < 3*programs || m.Refused < programs/4 {
				t.Error("too few of each")
			}
		})
	}
}

func TestAnUpsertOfARowThatAnotherShardHasIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"ON CONFLICT": "INSERT INTO members (id, user_id, paid) VALUES (8, 1, 0), (7, 2, 0) ON CONFLICT (id) DO UPDATE SET paid = 9",
		"DO NOTHING":  "INSERT INTO members (id, user_id, paid) VALUES (7, 2, 0) ON CONFLICT DO NOTHING",
		"OR IGNORE":   "INSERT OR IGNORE INTO members (id, user_id, paid) VALUES (7, 2, 0)",
		"OR REPLACE":  "INSERT OR REPLACE INTO members (id, user_id, paid) VALUES (7, 2, 0)",
		"REPLACE":     "REPLACE INTO members (id, user_id, paid) VALUES (7, 2, 0)",
		"by email":    "INSERT INTO members (id, user_id, paid, email) VALUES (9, 2, 0, 'a@b') ON CONFLICT (email) DO UPDATE SET paid = 9",
		"returning":   "INSERT INTO members (id, user_id, paid) VALUES (7, 2, 0) ON CONFLICT DO NOTHING RETURNING id",
	} {
		w := membered(t, sharding.Transactions(sharding.BestEffort))
		exec(t, w.routed, "INSERT INTO members (id, user_id, paid, email) VALUES (7, 1, 0, 'a@b')")
		_, err := answer(within(t), w.routed, text)
		var refusal *sharding.RouteError
		if !errors.Is(err, sharding.ErrKeyChange) || !errors.As(err, &refusal) || refusal.Table != "members" || !strings.Contains(err.Error(), "b/members_1") {
			t.Errorf("%s: %v", name, err)
		}
		if skips := strings.Contains(text, "IGNORE") || strings.Contains(text, "NOTHING"); skips != strings.Contains(refusal.Hint, "leave the INSERT out") {
			t.Errorf("%s: %v", name, err)
		}
		if n := one[int64](t, w.routed, "SELECT COUNT(*) FROM members WHERE paid = 0"); n != 1 {
			t.Errorf("%s: %d rows", name, n)
		}
		exec(t, w.routed, strings.ReplaceAll(text, "2, 0", "1, 0")) // of the same key it is the row that is meant
	}
}

// An upsert in a transaction sees the transaction's changes: on its own database on its connection,
// and on others on one of theirs.
func TestAnUpsertInATransactionFindsItsOwnRows(t *testing.T) {
	w := membered(t)
	tx, err := w.routed.BeginTx(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	const upsert = "INSERT INTO members (id, user_id, paid) VALUES (?, ?, 0) ON CONFLICT (id) DO UPDATE SET paid = paid + 1"
	exec(t, tx, upsert, 7, 2)
	exec(t, tx, upsert, 7, 6)
	if _, err := tx.Exec(upsert, 7, 4); !errors.Is(err, sharding.ErrKeyChange) {
		t.Errorf("a row of the transaction in another shard of its database: %v", err)
	}
	exec(t, tx, "DELETE FROM members WHERE user_id = 2")
	exec(t, tx, upsert, 7, 4)
	exec(t, tx, upsert, 7, 4)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if paid := one[int64](t, w.routed, "SELECT paid FROM members WHERE user_id = 4"); paid != 1 {
		t.Error(paid)
	}
	if _, err := w.routed.ExecContext(within(t), upsert, 7, 3); !errors.Is(err, sharding.ErrKeyChange) {
		t.Errorf("after it: %v", err)
	}
}

func TestRowsWithNewIDsAreNotSearchedFor(t *testing.T) {
	w := membered(t, sharding.FanOut(3, 1), sharding.Transactions(sharding.BestEffort))
	const upsert = "INSERT INTO members (id, user_id, paid) VALUES (7, 1, 0), (8, 2, 0) ON CONFLICT (id) DO UPDATE SET paid = 9"
	for name, h := range map[string]writehint.Hint{
		"none":             {},
		"one of both":      {Table: "members", Fresh: []int{1}},
		"of another table": {Table: "orders", Fresh: []int{0, 1}},
		"of another key":   {Table: "members", Fresh: []int{0, 1}, Column: "email"},
	} {
		if _, err := w.routed.ExecContext(writehint.With(within(t), h), upsert); !errors.Is(err, sharding.ErrTooManyShards) || !strings.Contains(err.Error(), "sharding.FanOut") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx := writehint.With(within(t), writehint.Hint{Table: "Members", Fresh: []int{0, 1}})
	if _, err := w.routed.ExecContext(ctx, upsert); err != nil {
		t.Error(err)
	}
	named := writehint.With(within(t), writehint.Hint{Table: "members", Fresh: []int{0, 1}, Column: "ID"})
	if _, err := w.routed.ExecContext(named, upsert); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]error{
		"INSERT INTO members (id, user_id, paid, email) VALUES (9, 1, 0, 'a') ON CONFLICT (email) DO UPDATE SET paid = 9":           sharding.ErrTooManyShards,
		"INSERT INTO members (id, user_id, paid, email) VALUES (9, 1, 0, 'a') ON CONFLICT DO UPDATE SET user_id = excluded.user_id": sharding.ErrTooManyShards,
		"INSERT INTO members (id, user_id, paid, email) VALUES (10, 1, 0, 'b') ON CONFLICT DO UPDATE SET paid = 9":                  nil,
	} {
		if _, err := w.routed.ExecContext(ctx, text); !errors.Is(err, want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAUniqueKeyIsSetOnlyToAValueThatNoOtherShardHas(t *testing.T) {
	w := membered(t)
	exec(t, w.routed, "INSERT INTO members (id, user_id, paid, email) VALUES (1, 1, 0, 'a')")
	exec(t, w.routed, "INSERT INTO members (id, user_id, paid, email) VALUES (2, 2, 0, 'b')")
	for _, text := range []string{
		"UPDATE members SET email = 'a' WHERE user_id = 2 AND id = 2",
		"UPDATE members SET id = 1 WHERE user_id = 2 AND id = 2",
		"UPDATE members SET id = id + 5 WHERE user_id = 2",
	} {
		if _, err := w.routed.ExecContext(within(t), text); !errors.Is(err, sharding.ErrCrossShard) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for name, h := range map[string]writehint.Hint{"keyed": {Table: "members", Keyed: true}, "a model": {Table: "members", Model: true}} {
		if _, err := w.routed.ExecContext(writehint.With(within(t), h), "UPDATE members SET email = 'a' WHERE user_id = 2 AND id = 2"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.routed.ExecContext(keyed(t), "UPDATE members SET id = 1 WHERE user_id = 2 AND id = 2"); !errors.Is(err, sharding.ErrCrossShard) {
		t.Errorf("the id of a model: %v", err)
	}
	exec(t, w.routed, "UPDATE members SET email = ?, id = 3 WHERE user_id = 2 AND id = 2", "c")
	exec(t, w.routed, "UPDATE members SET email = ?, id = id WHERE user_id = 2", "c") // as it is
	if id := one[int64](t, w.routed, "SELECT id FROM members WHERE email = 'c'"); id != 3 {
		t.Error(id)
	}
}

// A key by which rows cannot be searched for refuses statements that depend on it, but not new
// rows.
func TestAUniqueKeyOfAnExpressionAllowsNewRows(t *testing.T) {
	w := membered(t)
	for name, db := range w.dbs {
		for _, shard := range map[string][]int{"a": {0, 2}, "b": {1, 3}}[name] {
			exec(t, db, fmt.Sprintf("CREATE UNIQUE INDEX lower_%d ON members_%d (lower(email))", shard, shard))
		}
	}
	const ignore = "INSERT OR IGNORE INTO members (id, user_id, paid, email) VALUES (7, 2, 0, 'a')"
	if _, err := w.routed.ExecContext(within(t), ignore); !errors.Is(err, sharding.ErrCrossShard) || !strings.Contains(err.Error(), "expression") {
		t.Error(err)
	}
	if _, err := w.routed.ExecContext(writehint.With(within(t), writehint.Hint{Table: "members", Fresh: []int{0}}), ignore); err != nil {
		t.Error(err)
	}
	exec(t, w.routed, "INSERT INTO members (id, user_id, paid, email) VALUES (8, 2, 0, 'b') ON CONFLICT (id) DO NOTHING")
}

// A copy that the move of a slot has left on its old shard is not a row.
func TestACopyThatAMoveHasLeftBehindIsIgnored(t *testing.T) {
	w := membered(t)
	exec(t, w.dbs["b"], "INSERT INTO members_3 (id, user_id, paid) VALUES (7, 2, 5)")
	exec(t, w.routed, "INSERT INTO members (id, user_id, paid) VALUES (7, 2, 0) ON CONFLICT (id) DO UPDATE SET paid = 9")
	exec(t, w.routed, "INSERT INTO members (id, user_id, paid) VALUES (7, 6, 0) ON CONFLICT (id) DO UPDATE SET paid = 9")
	if paid := one[int64](t, w.dbs["a"], "SELECT paid FROM members_2 WHERE id = 7"); paid != 9 {
		t.Error(paid)
	}
}

// There are more rows than one query can search for.
func TestManyRowsAreSearchedForWithSeveralQueries(t *testing.T) {
	w := membered(t, sharding.Transactions(sharding.BestEffort))
	exec(t, w.routed, "INSERT INTO members (id, user_id, paid) VALUES (900, 1, 0)")
	var rows []string
	for id := range 1000 {
		rows = append(rows, fmt.Sprintf("(%d, 2, 0)", id))
	}
	const upsert = "INSERT INTO members (id, user_id, paid) VALUES %s ON CONFLICT (id) DO NOTHING"
	if _, err := w.routed.ExecContext(within(t), fmt.Sprintf(upsert, strings.Join(rows, ", "))); !errors.Is(err, sharding.ErrKeyChange) {
		t.Error(err)
	}
	exec(t, w.routed, fmt.Sprintf(upsert, strings.Join(rows[:900], ", ")))
	if n := one[int64](t, w.routed, "SELECT COUNT(*) FROM members"); n != 901 {
		t.Error(n)
	}
}

// keyed is the context of statements to which the sharding key of a model was added.
func keyed(t testing.TB) context.Context {
	t.Helper()
	return writehint.With(within(t), writehint.Hint{Table: "members", Keyed: true})
}

// A model whose sharding key is out of date names a row that another shard has, or that its own
// shard has under another key.
func TestAStaleKeyOfAModelIsReported(t *testing.T) {
	for name, text := range map[string]string{
		"update, on another shard":   "UPDATE members SET paid = 9 WHERE id = 7 AND user_id = 2",
		"update, on the same shard":  "UPDATE members SET paid = 9 WHERE members.id = 7 AND user_id = 5",
		"delete":                     "DELETE FROM members WHERE user_id = 2 AND id = 7",
		"one of several, of a shard": "UPDATE members SET paid = 9 WHERE id IN (7, 8) AND user_id = 2",
		"one of several":             "DELETE FROM members WHERE id IN (7, 8) AND user_id IN (2, 3)",
		"in pairs":                   "DELETE FROM members WHERE (user_id, id) IN ((2, 8), (2, 7))",
		"exchanged":                  "UPDATE members SET paid = 9 WHERE (id, user_id) IN ((7, 2), (8, 1))",
		"returning":                  "UPDATE members SET paid = 9 WHERE id = 7 AND user_id = 2 RETURNING id",
		"several returning":          "DELETE FROM members WHERE id IN (7, 8) AND user_id IN (2, 3) RETURNING id",
	} {
		w := membered(t, sharding.Transactions(sharding.BestEffort))
		exec(t, w.routed, "INSERT INTO members (id, user_id, paid) VALUES (7, 1, 0), (8, 2, 0)")
		for _, in := range []string{"a transaction", "none"} {
			tx, err := w.routed.BeginTx(within(t), nil)
			if err != nil {
				t.Fatal(err)
			}
			var on changes.Queries = w.routed
			if in == "a transaction" {
				on = tx
			}
			run := func() error { _, err := on.ExecContext(keyed(t), text); return err }
			if strings.Contains(text, "RETURNING") {
				run = func() error { _, err := answer(keyed(t), on, text); return err }
			}
			if err := run(); !errors.Is(err, sharding.ErrKeyChange) || !strings.Contains(err.Error(), "b/members_1") && name != "exchanged" {
				t.Errorf("%s in %s: %v", name, in, err)
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
		}
		if n := one[int64](t, w.routed, "SELECT COUNT(*) FROM members WHERE paid = 0"); n != 2 {
			t.Errorf("%s: %d rows are as they were", name, n)
		}
		exec(t, w.routed, text) // as it is written it concerns the rows with this key alone
	}
}

// An id that carries the slot leads to its row, and no other shard is queried.
func TestAStaleKeyWithAnIDThatLeadsToTheShardIsReported(t *testing.T) {
	w := written(t, sharding.SingleShard)
	exec(t, w.routed, "INSERT INTO orders (id, user_id, paid) VALUES (6, 2, 0)")
	for _, table := range []string{"orders_1", "orders_3"} {
		exec(t, w.dbs["b"], "DROP TABLE "+table)
	}
	ctx := writehint.With(within(t), writehint.Hint{Table: "orders", Keyed: true})
	for user, stale := range map[int]bool{0: true, 6: true, 2: false} {
		_, err := w.routed.ExecContext(ctx, "UPDATE orders SET paid = 1 WHERE id = 6 AND user_id = ?", user)
		if errors.Is(err, sharding.ErrKeyChange) != stale || !stale && err != nil {
			t.Errorf("of user %d: %v", user, err)
		}
	}
	r, err := w.routed.ExecContext(ctx, "DELETE FROM orders WHERE id = 10 AND user_id = 2")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.RowsAffected(); n != 0 || err != nil {
		t.Error(n, err)
	}
}

func TestARowOfAModelThatExistsOnItsShardOrNowhereIsNoStaleKey(t *testing.T) {
	w := membered(t)
	exec(t, w.routed, "INSERT INTO members (id, user_id, paid) VALUES (7, 2, 0)")
	for text, want := range map[string]int64{
		"UPDATE members SET paid = 9 WHERE id = 7 AND user_id = 2 AND paid = 5": 0,
		"UPDATE members SET paid = 9 WHERE id = 8 AND user_id = 2":              0,
		"DELETE FROM members WHERE id IN (7, 8) AND user_id = 2":                1,
	} {
		r, err := w.routed.ExecContext(keyed(t), text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if n, err := r.RowsAffected(); err != nil || n != want {
			t.Errorf("%s: %d rows, %v", text, n, err)
		}
		exec(t, w.routed, "REPLACE INTO members (id, user_id, paid) VALUES (7, 2, 0)")
	}
}

// A session at home holds its connection, and so does a transaction. It may be the only one of its
// pool when a statement names a table for the first time.
func TestASessionQueriesTheSchemaOnTheConnectionThatItHolds(t *testing.T) {
	const upsert = "INSERT INTO members (id, user_id, paid) VALUES (7, ?, 0) ON CONFLICT (id) DO UPDATE SET paid = 9"
	for name, begin := range map[string]func(*sql.DB) (execer, func() error, error){
		"a session": func(db *sql.DB) (execer, func() error, error) {
			c, err := db.Conn(within(t))
			return c, c.Close, err
		},
		"a transaction": func(db *sql.DB) (execer, func() error, error) {
			tx, err := db.BeginTx(within(t), nil)
			return tx, tx.Commit, err
		},
	} {
		w := membered(t)
		on, end, err := begin(w.routed)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, on, "CREATE TABLE mine (id INTEGER)")
		for _, user := range []int{2, 6, 2} {
			if _, err := on.ExecContext(within(t), upsert, user); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := on.ExecContext(within(t), upsert, 4); !errors.Is(err, sharding.ErrKeyChange) {
			t.Errorf("%s: %v", name, err)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}

func TestATransactionGoesOnWhileAnotherStatementWaitsForItsConnectionToReadColumns(t *testing.T) {
	w := membered(t)
	pool := w.dbs["a"]
	tx, err := w.routed.BeginTx(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "CREATE TABLE mine (id INTEGER)")
	read := func(on querier, query string) error {
		var n int
		return on.QueryRowContext(within(t), query).Scan(&n)
	}
	waiting := make(chan error)
	go func() { waiting <- read(w.routed, "SELECT COUNT(*) FROM members WHERE user_id = 2") }()
	for pool.Stats().WaitCount == 0 {
		runtime.Gosched()
	}
	if err := read(tx, "SELECT COUNT(id) FROM members WHERE user_id = 2"); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
}

// Searches hold no connection while they wait for another one.
func TestConcurrentUpsertsNeedOneConnectionOfEachPool(t *testing.T) {
	w := membered(t)
	const upsert = "INSERT INTO members (id, user_id, paid) VALUES (?, ?, 0) ON CONFLICT (id) DO UPDATE SET paid = paid + 1"
	ctx := within(t)
	errs := make(chan error)
	for user := range 8 {
		go func() {
			var err error
			for i := range 20 {
				_, one := w.routed.ExecContext(ctx, upsert, 8*(i/2)+user, user)
				err = errors.Join(err, one)
			}
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := one[int64](t, w.routed, "SELECT COUNT(*) FROM members WHERE paid = 1"); got != 80 {
		t.Error(got)
	}
}
