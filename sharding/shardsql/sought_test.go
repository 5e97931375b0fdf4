// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// sought is membered, with a row of each user from 1 to 4, on one shard each. The ids and emails of the rows
// lead to no shard.
func sought(t testing.TB, options ...sharding.Option) *twin {
	t.Helper()
	w := membered(t, options...)
	for user, email := range []string{"", "a@x", "b@x", "c@x", "d@x"} {
		if user > 0 {
			exec(t, w.routed, "INSERT INTO members (id, user_id, paid, email) VALUES (?, ?, 0, ?)", 10*user, user, email)
		}
	}
	return w
}

// paid returns the ids of the rows that were changed, in order.
func paid(t testing.TB, on *sql.DB) string {
	t.Helper()
	rows, err := on.QueryContext(t.Context(), "SELECT id, paid FROM members WHERE paid <> 0 ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var id, paid int64
		if err := rows.Scan(&id, &paid); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%d=%d", id, paid))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, ",")
}

func TestAWriteByAUniqueValueGoesToTheShardThatHasItsRow(t *testing.T) {
	for text, c := range map[string]struct {
		rows int64
		args []any
	}{
		"UPDATE members SET paid = 5 WHERE id = ?":                                  {1, []any{20}},
		"UPDATE members SET paid = 5 WHERE id = 20 AND paid < 3":                    {1, nil},
		"UPDATE members SET paid = 5 WHERE id = 20 AND paid > 3":                    {0, nil},
		"UPDATE members AS m SET paid = 5 WHERE m.email = ?":                        {1, []any{"b@x"}},
		"UPDATE members SET paid = 5 WHERE id IN (?, ?, NULL)":                      {1, []any{20, 77}},
		"UPDATE members SET paid = 5 WHERE id = 77":                                 {0, nil},
		"UPDATE members SET paid = 5 WHERE id = NULL":                               {0, nil},
		"UPDATE members SET paid = 5, user_id = 2 WHERE id = 20":                    {1, nil},
		"UPDATE members SET paid = 5, user_id = 6 WHERE id = 20":                    {1, nil}, // of the same slot
		"UPDATE members SET paid = 5, user_id = 3 WHERE id = 77":                    {0, nil},
		"DELETE FROM members WHERE id = 20":                                         {1, nil},
		"DELETE FROM members WHERE email = 'b@x' AND id IN (20, 30)":                {1, nil},
		"UPDATE members SET paid = 5 WHERE (id = 20 OR email = 'b@x') AND paid = 0": {1, nil},
	} {
		w := sought(t)
		result, err := w.routed.ExecContext(within(t), text, c.args...)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		n, err := result.RowsAffected()
		if err != nil || n != c.rows {
			t.Errorf("%s: %d rows, %v, want %d", text, n, err, c.rows)
		}
		want := ""
		if strings.HasPrefix(text, "UPDATE") && c.rows == 1 {
			want = "20=5"
		}
		left := one[int64](t, w.routed, "SELECT COUNT(*) FROM members")
		if got := paid(t, w.routed); got != want || strings.HasPrefix(text, "DELETE") != (left == 3) {
			t.Errorf("%s: %q of %d rows, want %q", text, got, left, want)
		}
	}
	w := sought(t)
	if id := one[int64](t, w.routed, "UPDATE members SET paid = 5 WHERE email = 'c@x' RETURNING id"); id != 30 {
		t.Errorf("RETURNING: %d", id)
	}
}

// No error of a database would notice that the wrong row of two was written.
func TestAWriteByAValueThatTwoShardsHaveIsRefused(t *testing.T) {
	w := sought(t, sharding.Transactions(sharding.BestEffort))
	exec(t, w.dbs["b"], "INSERT INTO members_1 (id, user_id, paid) VALUES (20, 1, 0)")
	for _, text := range []string{"UPDATE members SET paid = 5 WHERE id = 20", "DELETE FROM members WHERE id IN (20, 30)"} {
		_, err := w.routed.ExecContext(within(t), text)
		if !errors.Is(err, sharding.ErrCrossShard) || !strings.Contains(err.Error(), "add a condition on user_id") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if n := one[int64](t, w.routed, "SELECT COUNT(*) FROM members WHERE paid = 0"); n != 5 {
		t.Errorf("%d rows are as they were", n)
	}
	exec(t, w.routed, "UPDATE members SET paid = 5 WHERE id = 20 AND user_id = 2")
	// A move has left this row behind: user 3 is not on this shard.
	exec(t, w.dbs["a"], "INSERT INTO members_0 (id, user_id, paid) VALUES (30, 3, 0)")
	exec(t, w.routed, "UPDATE members SET paid = 6 WHERE id = 30")
	if n := one[int64](t, w.dbs["a"], "SELECT paid FROM members_0 WHERE id = 30"); n != 0 {
		t.Error("the copy that a move has left behind was written")
	}
}

// The index allows a value once among the rows that it covers. Other rows with the value may be on other shards.
func TestAWriteByAValueOfAPartialUniqueIndexGoesToAllShardsThatHaveIt(t *testing.T) {
	table := sharding.Table{Name: "pages", Key: "user_id", Rule: sharding.Mod(4), Map: spread(t, 4, "pages_%d")}
	w := twinOf(t, table, " (id BIGINT PRIMARY KEY NOT NULL, user_id BIGINT NOT NULL, slug TEXT NOT NULL, gone INT, note TEXT)", sharding.Transactions(sharding.BestEffort))
	exec(t, w.one, "CREATE UNIQUE INDEX pages_slug ON pages (slug) WHERE gone IS NULL")
	for _, at := range table.Map.Targets() {
		exec(t, w.dbs[at.DB], fmt.Sprintf("CREATE UNIQUE INDEX %[1]s_slug ON %[1]s (slug) WHERE gone IS NULL", at.Table))
	}
	for _, text := range []string{
		"INSERT INTO pages (id, user_id, slug, gone, note) VALUES (10, 1, 'a', 1, NULL), (11, 1, 'a', 2, NULL), (20, 2, 'a', NULL, NULL), (30, 3, 'b', NULL, NULL), (40, 4, 'c', NULL, NULL)",
		"UPDATE pages SET note = 'x' WHERE slug = 'a' AND gone IS NULL",
		"UPDATE pages SET note = 'y' WHERE slug = 'a' AND gone = 2",
		"UPDATE pages SET note = 'z' WHERE slug IN ('a', 'b') AND note IS NULL",
		"DELETE FROM pages WHERE slug = 'a' AND gone > 1",
		"DELETE FROM pages WHERE slug = 'a'",
	} {
		if got, want := affected(t, w.routed, text), affected(t, w.one, text); got != want {
			t.Errorf("%s: %d rows, one table has %d", text, got, want)
		}
		w.same(t, "SELECT * FROM pages ORDER BY id")
	}
}

func affected(t testing.TB, on *sql.DB, text string) int64 {
	t.Helper()
	result, err := on.ExecContext(t.Context(), text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAWriteByIDsOfTwoDatabasesNeedsATransactionOverThem(t *testing.T) {
	const text = "UPDATE members SET paid = 5 WHERE id IN (10, 20)"
	single, both := sought(t), sought(t, sharding.Transactions(sharding.BestEffort))
	if _, err := single.routed.ExecContext(within(t), text); !errors.Is(err, sharding.ErrCrossDatabase) || paid(t, single.routed) != "" {
		t.Errorf("%v, and %s", err, paid(t, single.routed))
	}
	exec(t, single.routed, "UPDATE members SET paid = 5 WHERE id IN (20, 40)") // two shards of one database
	if exec(t, both.routed, text); paid(t, both.routed) != "10=5,20=5" || paid(t, single.routed) != "20=5,40=5" {
		t.Errorf("%s and %s", paid(t, both.routed), paid(t, single.routed))
	}
	ctx := sharding.AllShards(within(t)) // each shard is written, whether it has the row or not
	if _, err := single.routed.ExecContext(ctx, "UPDATE members SET paid = 7 WHERE id = 20"); !errors.Is(err, sharding.ErrCrossDatabase) {
		t.Error(err)
	}
}

func TestAWriteByAnIDInATransactionFindsItsOwnRows(t *testing.T) {
	w := sought(t)
	tx, err := w.routed.BeginTx(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO members (id, user_id, paid) VALUES (60, 6, 0)")
	exec(t, tx, "UPDATE members SET paid = paid + 1 WHERE id = 60")
	exec(t, tx, "UPDATE members SET paid = paid + 1 WHERE id = 40") // another shard of its database
	exec(t, tx, "UPDATE members SET paid = paid + 1 WHERE id = 77") // no row
	if _, err := tx.Exec("UPDATE members SET paid = paid + 1 WHERE id = 10"); !errors.Is(err, sharding.ErrCrossDatabase) {
		t.Errorf("a row of another database: %v", err)
	}
	if n := one[int64](t, tx, "SELECT paid FROM members WHERE id = 60"); n != 1 {
		t.Errorf("a read by its id: %d", n)
	}
	var n int64
	if err := tx.QueryRow("SELECT paid FROM members WHERE email = 'a@x'").Scan(&n); !errors.Is(err, sharding.ErrCrossDatabase) {
		t.Errorf("a read of another database: %v", err)
	}
	if err := tx.QueryRow("SELECT paid FROM members WHERE id = 77").Scan(&n); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("a read of no row: %v", err)
	}
	exec(t, tx, "DELETE FROM members WHERE id = 20")
	exec(t, tx, "UPDATE members SET paid = 9 WHERE id = 20")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := paid(t, w.routed); got != "40=1,60=1" {
		t.Error(got)
	}
}

func TestNoShardIsSearchedIfTheTableRefusesStatementsWithoutKeyOrTheLimitIsLower(t *testing.T) {
	const text = "UPDATE members SET paid = 5 WHERE id = 20"
	limited := sought(t, sharding.FanOut(3, 1))
	if _, err := limited.routed.ExecContext(within(t), text); !errors.Is(err, sharding.ErrTooManyShards) || !strings.Contains(err.Error(), "add a condition on user_id") {
		t.Error(err)
	}
	refusing := twinOf(t, sharding.Table{Name: "members", Key: "user_id", Rule: sharding.Mod(4), Map: spread(t, 4, "members_%d"), OnMissing: sharding.Refuse},
		" (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, paid INT)")
	if _, err := refusing.routed.ExecContext(within(t), text); !errors.Is(err, sharding.ErrMissingKey) {
		t.Error(err)
	}
}

// Where the row is decides whether the statement is executed.
func TestExplainSaysOfAWriteByAnIDThatSetsTheKeyWhatRefusesIt(t *testing.T) {
	w := sought(t)
	for text, c := range map[string]struct {
		kind shardsql.Kind
		err  error
	}{
		"UPDATE members SET paid = 5 WHERE id = 20":                 {shardsql.Lookup, nil},
		"UPDATE members SET paid = 5, user_id = 4 WHERE id = 20":    {shardsql.Lookup, sharding.ErrKeyChange}, // the first slot
		"UPDATE members SET paid = 5, user_id = 6 WHERE id = 20":    {shardsql.Lookup, sharding.ErrKeyChange}, // it is executed
		"UPDATE members SET paid = 5, user_id = NULL WHERE id = 20": {shardsql.Refused, sharding.ErrKeyChange},
	} {
		e, err := shardsql.Explain(t.Context(), w.routed, text)
		if err != nil || e.Kind != c.kind || !errors.Is(e.Err, c.err) || (e.Kind == shardsql.Lookup) != (len(e.Lookups) == 2) {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
	}
	exec(t, w.routed, "UPDATE members SET paid = 5, user_id = 6 WHERE id = 20")
	if _, err := w.routed.ExecContext(within(t), "UPDATE members SET paid = 5, user_id = 4 WHERE id = 20"); !errors.Is(err, sharding.ErrKeyChange) {
		t.Error(err)
	}
	router, err := sharding.New(w.dbs, sharding.Table{Name: "members", Key: "user_id", Rule: sharding.Mod(4), Map: spread(t, 4, "members_%d")})
	if err != nil {
		t.Fatal(err)
	}
	for text, dialect := range map[string]string{
		"UPDATE members SET paid = 5, user_id = 6 WHERE id = 20":                                      "sqlite",
		"INSERT OR REPLACE INTO members (id, user_id) VALUES (1, 5)":                                  "sqlite",
		"INSERT INTO members (id, user_id) VALUES (1, 5) ON CONFLICT DO NOTHING":                      "postgres",
		"INSERT INTO members (id, user_id) VALUES (1, 5) ON DUPLICATE KEY UPDATE paid = VALUES(paid)": "mysql",
	} {
		if offline, err := shardsql.Plan(router, dialect, text); err != nil || offline.Kind != shardsql.Undecided {
			t.Errorf("%s: %+v, %v", text, offline, err)
		}
	}
	if offline, err := shardsql.Plan(router, "mysql", "INSERT INTO members (id) VALUES (1) ON DUPLICATE KEY UPDATE paid = 5"); err != nil || offline.Kind != shardsql.Refused {
		t.Errorf("without the key: %+v, %v", offline, err)
	}
}

func TestExplainRefusesWhatNeedsMoreShardsThanTheLimit(t *testing.T) {
	limited := sought(t, sharding.FanOut(3, 1))
	for _, text := range []string{"UPDATE members SET paid = 5 WHERE id = 20", "SELECT id FROM members ORDER BY id", "DELETE FROM members WHERE user_id IN (0, 1, 2, 3)"} {
		_, sent := limited.routed.ExecContext(within(t), text)
		e, err := shardsql.Explain(t.Context(), limited.routed, text)
		if err != nil || e.Kind != shardsql.Refused || !errors.Is(sent, sharding.ErrTooManyShards) || e.Err == nil || e.Err.Error() != sent.Error() {
			t.Errorf("%s: %+v, %v; it is sent: %v", text, e, err, sent)
		}
	}
}

// A case-insensitive column of one table could not have both rows, and the statement may mean either.
func TestAWriteIsRefusedIfTwoShardsHaveRowsWithValuesThatTheColumnTreatsAsEqual(t *testing.T) {
	w := twinOf(t, sharding.Table{Name: "users", Key: "id", Rule: sharding.Mod(4), Map: spread(t, 4, "users_%d")},
		" (id BIGINT PRIMARY KEY, email TEXT COLLATE NOCASE UNIQUE, code TEXT UNIQUE, paid INT DEFAULT 0)", sharding.Transactions(sharding.BestEffort))
	for id, email := range []string{"a@x", "b@x", "c@x", "A@X"} {
		exec(t, w.routed, "INSERT INTO users (id, email, code) VALUES (?, ?, ?)", id, email, email)
	}
	for _, text := range []string{"UPDATE users SET paid = 5 WHERE email = 'a@x'", "DELETE FROM users WHERE email IN ('B@X', 'A@x', 'z')", "DELETE FROM users WHERE email IN ('a@x', 'c@x')"} {
		if _, err := w.routed.ExecContext(within(t), text); !errors.Is(err, sharding.ErrCrossShard) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if n := one[int64](t, w.routed, "SELECT COUNT(*) FROM users WHERE paid = 0"); n != 4 {
		t.Errorf("%d rows are as they were", n)
	}
	for text, want := range map[string]int64{
		"UPDATE users SET paid = 1 WHERE email IN ('B@X', 'C@X')": 2,
		"UPDATE users SET paid = 1 WHERE email IN ('a@x', 'A@X')": 2, // it names both
		"UPDATE users SET paid = 1 WHERE code = 'a@x'":            1, // the case counts
		"UPDATE users SET paid = 1 WHERE code IN ('a@x', 'A@X')":  2,
	} {
		result, err := w.routed.ExecContext(within(t), text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if n, err := result.RowsAffected(); n != want || err != nil {
			t.Errorf("%s: %d rows, %v", text, n, err)
		}
	}
}

// Nothing is ambiguous for a query: it returns all rows, as it does outside of a transaction.
func TestAQueryInATransactionReturnsTheRowsOfBothShardsThatHaveAValue(t *testing.T) {
	m, err := sharding.Spread([]string{"a"}, 4, "members_%d")
	if err != nil {
		t.Fatal(err)
	}
	w := twinOf(t, sharding.Table{Name: "members", Key: "user_id", Rule: sharding.Mod(4), Map: m}, " (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)")
	exec(t, w.routed, "INSERT INTO members (id, user_id) VALUES (7, 1)")
	exec(t, w.routed, "INSERT INTO members (id, user_id) VALUES (7, 2)")
	tx, err := w.routed.BeginTx(within(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if n := one[int64](t, tx, "SELECT COUNT(*) FROM members WHERE id = 7"); n != 2 {
		t.Errorf("%d rows", n)
	}
}

// While the last rows of a slot are copied, both shards have them, and the caller is told to try again.
func TestAStatementByTheIDOfARowWhoseSlotIsHeldIsRefusedBecauseTheSlotMoves(t *testing.T) {
	open, m := files(t), spread(t, 4, "members_%d")
	dbs := sharding.DBs{"a": open("a.db"), "b": open("b.db")}
	for _, at := range m.Targets() {
		exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, paid INT)")
		exec(t, dbs[at.DB], "INSERT INTO "+at.Table+" VALUES (7, 1, 0)")
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "members", Key: "user_id", Rule: sharding.Mod(4), Map: m.Holding(1)})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	defer func() { _ = routed.Close() }()
	_, err = routed.ExecContext(within(t), "UPDATE members SET paid = 1 WHERE id = 7")
	if !errors.Is(err, sharding.ErrSlotMoving) || strings.Count(err.Error(), "moving") != 1 {
		t.Error(err)
	}
}

// The driver may return a key in another form than the rule accepts, such as a time without parseTime.
func TestAWriteByTheIDOfARowWhoseKeyLeadsToNoSlotIsRefusedWithItsKey(t *testing.T) {
	w := sought(t)
	exec(t, w.dbs["b"], "INSERT INTO members_1 (id, user_id, paid) VALUES (70, 'seven', 0)")
	_, err := w.routed.ExecContext(within(t), "UPDATE members SET paid = 5 WHERE id = 70")
	if !errors.Is(err, sharding.ErrKeyType) || !strings.Contains(err.Error(), "seven") || !strings.Contains(err.Error(), "add a condition on user_id") {
		t.Error(err)
	}
}
