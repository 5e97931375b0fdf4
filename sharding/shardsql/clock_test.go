// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// Milliseconds would differ from database to database.
const milliseconds = "strftime('%Y-%m-%d %H:%M:%f', 'now')"

func TestARowOfEachShardGetsTheSameTime(t *testing.T) {
	w := twinOf(t, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: fourTables(t)},
		" (id INTEGER PRIMARY KEY, user_id BIGINT NOT NULL, note TEXT, code TEXT)", sharding.Transactions(sharding.BestEffort))
	rows := strings.Repeat(", (?, ?, "+milliseconds+", CURRENT_TIMESTAMP)", 40)[2:]
	var args []any
	for id := range int64(40) {
		args = append(args, id, id)
	}
	exec(t, w.routed, "INSERT INTO orders (id, user_id, note, code) VALUES "+rows, args...)
	for _, text := range []string{
		"SELECT COUNT(DISTINCT note) FROM orders", "SELECT COUNT(DISTINCT code) FROM orders",
		"SELECT COUNT(DISTINCT s) FROM (SELECT user_id, CURRENT_TIMESTAMP AS s FROM orders) AS d",
	} {
		if n := one[int](t, w.routed, text); n != 1 {
			t.Errorf("%s: %d", text, n)
		}
	}
	exec(t, w.routed, "UPDATE orders SET note = "+milliseconds+" WHERE user_id IN (1, 2, 3, 4)")
	if n := one[int](t, w.routed, "SELECT COUNT(DISTINCT note) FROM orders WHERE user_id IN (1, 2, 3, 4)"); n != 1 {
		t.Errorf("%d times after an UPDATE", n)
	}
	if n := one[int](t, w.routed, "SELECT COUNT(*) FROM orders WHERE note <= "+milliseconds+" AND date(code) >= date('now', '-1 day')"); n != 40 {
		t.Errorf("%d rows are not of the future", n)
	}
}

func TestAllCopiesGetTheSameTime(t *testing.T) {
	routed, copies := rated(t, sharding.BestEffort)
	exec(t, routed, "INSERT INTO rates (id, name, at) VALUES (1, 'a' || "+milliseconds+", 0), (2, 'b' || "+milliseconds+", 0)")
	exec(t, routed, "UPDATE rates SET name = "+milliseconds+" || name WHERE id = 2")
	sameRates(t, copies, one[string](t, copies[0], "SELECT GROUP_CONCAT(id || name) FROM (SELECT * FROM rates ORDER BY id)"))
}

func TestEqualRowsGetTheSameTime(t *testing.T) {
	w := twinOf(t, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: fourTables(t)},
		" (user_id BIGINT NOT NULL, note TEXT)", sharding.Transactions(sharding.BestEffort))
	exec(t, w.routed, "INSERT INTO orders (user_id, note) VALUES (1, "+milliseconds+"), (1, "+milliseconds+"), (2, "+milliseconds+"), (2, "+milliseconds+")")
	if rows, times := one[int](t, w.routed, "SELECT COUNT(*) FROM orders"), one[int](t, w.routed, "SELECT COUNT(DISTINCT note) FROM orders"); rows != 4 || times != 1 {
		t.Errorf("%d rows, %d times", rows, times)
	}
}

func TestATimeOfSQLiteIsInUTC(t *testing.T) {
	t.Setenv("TZ", "America/New_York")
	w := newTwin(t, 20)
	for _, condition := range []string{"datetime('now', 'utc') = datetime('now')", "datetime('now', 'localtime') = datetime('now')", "timediff('now', 'now') = '+0000-00-00 00:00:00.000'"} {
		w.same(t, "SELECT COUNT(*) FROM orders WHERE "+condition)
	}
	for _, text := range []string{"SELECT id, timediff('now', at) FROM orders", "SELECT id FROM orders WHERE unixepoch('subsec') > paid", "SELECT id FROM orders WHERE strftime('%f', 'subsecond') > paid"} {
		if _, err := answer(t.Context(), w.routed, text); !errors.Is(err, sharding.ErrUnmergeable) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The text of an unnamed column is its name, which would change with the time.
func TestATimeThatNamesAColumnIsRefused(t *testing.T) {
	w := newTwin(t, 0)
	var at sql.NullString
	if err := w.routed.QueryRow("SELECT id, CURRENT_TIMESTAMP FROM orders").Scan(new(any), &at); !errors.Is(err, sharding.ErrUnmergeable) || !strings.Contains(err.Error(), "name the column") {
		t.Error(err)
	}
	if err := w.routed.QueryRow("SELECT COUNT(*), CURRENT_TIMESTAMP AS at FROM orders").Scan(new(any), &at); err != nil {
		t.Error(err)
	}
}

func TestExplainShowsASampleTime(t *testing.T) {
	w := newTwin(t, 0)
	e, err := shardsql.Explain(t.Context(), w.routed, "SELECT id FROM orders WHERE at < CURRENT_TIMESTAMP")
	if err != nil || e.Kind != shardsql.Scatter || !strings.Contains(e.Shards[0].Text, "at < '2000-01-01 00:00:00'") || !strings.Contains(e.Fingerprint, "CURRENT_TIMESTAMP") {
		t.Errorf("%+v, %v", e, err)
	}
	m := fourTables(t)
	router, err := sharding.New(w.dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	e, err = shardsql.Plan(router, "mysql", "SELECT id FROM orders WHERE at < NOW() ORDER BY note")
	if err != nil || e.Kind != shardsql.Undecided {
		t.Errorf("%+v, %v", e, err)
	}
}
