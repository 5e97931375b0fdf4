// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"database/sql"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// rated is a broadcast table rates in a home database and in two others.
func rated(t testing.TB, mode sharding.TxMode) (routed *sql.DB, copies []*sql.DB) {
	t.Helper()
	s := newShop(t)
	copies = []*sql.DB{s.home, s.dbs["a"], s.dbs["b"]}
	for _, db := range copies {
		exec(t, db, "CREATE TABLE rates (id INTEGER PRIMARY KEY, name TEXT UNIQUE, at DATETIME DEFAULT CURRENT_TIMESTAMP)")
	}
	m, err := sharding.Spread([]string{"a", "b"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(s.dbs, sharding.Transactions(mode), sharding.Broadcast("rates"),
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: s.home})
	t.Cleanup(func() { _ = routed.Close() })
	return routed, copies
}

// sameRates expects copies with these names.
func sameRates(t *testing.T, copies []*sql.DB, want string) {
	t.Helper()
	for i, db := range copies {
		if got := one[string](t, db, "SELECT COALESCE(GROUP_CONCAT(id || name), '') FROM (SELECT * FROM rates ORDER BY id)"); got != want {
			t.Errorf("copy %d has %q, want %q", i, got, want)
		}
	}
}

func TestABroadcastTableIsWrittenInEveryDatabase(t *testing.T) {
	routed, copies := rated(t, sharding.BestEffort)
	r := exec(t, routed, "INSERT INTO rates (id, name, at) VALUES (?, ?, 0), (2, 'b', 0)", 1, "a")
	if n, err := r.RowsAffected(); n != 2 || err != nil {
		t.Error(n, err)
	}
	exec(t, routed, "UPDATE rates SET name = name || id WHERE id = ?", 2)
	sameRates(t, copies, "1a,2b2")
	got, err := answer(t.Context(), routed, "DELETE FROM rates WHERE id = 2 RETURNING name")
	if err != nil || !reflect.DeepEqual(got, []string{"name", "b2|"}) {
		t.Errorf("%q, %v", got, err)
	}
	sameRates(t, copies, "1a")
	tx, err := routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO orders (id, user_id) VALUES (1, 1)")
	exec(t, tx, "INSERT INTO rates (id, name, at) VALUES (3, 'c', 0)")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	sameRates(t, copies, "1a")
}

func TestACopyThatFailsLeavesAllCopiesAsTheyWere(t *testing.T) {
	routed, copies := rated(t, sharding.BestEffort)
	exec(t, copies[2], "CREATE TRIGGER full BEFORE INSERT ON rates WHEN new.id > 9 BEGIN SELECT RAISE(ABORT, 'full'); END")
	exec(t, routed, "INSERT INTO rates (id, name, at) VALUES (1, 'a', 0)")
	if _, err := routed.Exec("INSERT INTO rates (id, name, at) VALUES (10, 'b', 0)"); err == nil || !strings.Contains(err.Error(), "b/rates") {
		t.Error(err)
	}
	sameRates(t, copies, "1a")
	tx, err := routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO rates (id, name, at) VALUES (2, 'c', 0)")
	if _, err := tx.Exec("INSERT INTO rates (id, name, at) VALUES (10, 'b', 0)"); err == nil {
		t.Error("no error")
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	sameRates(t, copies, "1a,2c")
}

func TestValuesThatEachDatabaseWouldComputeItselfAreRefused(t *testing.T) {
	routed, copies := rated(t, sharding.BestEffort)
	for _, text := range []string{
		"INSERT INTO rates (name, at) VALUES ('a', 0)",
		"INSERT INTO rates (id, name, at) VALUES (NULL, 'a', 0)",
		"INSERT INTO rates (id, name) VALUES (1, 'a')",
		"INSERT INTO rates VALUES (1, 'a', 0)",
		"INSERT INTO rates (id, name, at) VALUES (1, hex(randomblob(4)), 0)",
		"INSERT INTO rates DEFAULT VALUES",
		"UPDATE rates SET name = random()",
	} {
		var refusal *sharding.RouteError
		if _, err := routed.Exec(text); !errors.Is(err, sharding.ErrCopies) || !errors.As(err, &refusal) || refusal.Table != "rates" {
			t.Errorf("%s: %v", text, err)
		}
	}
	sameRates(t, copies, "")
}

// A write of all copies is allowed in every mode outside of a transaction. In a caller's
// transaction it would make that span databases.
func TestCopiesAreWrittenOutsideOfATransactionInEveryMode(t *testing.T) {
	routed, copies := rated(t, sharding.SingleShard)
	exec(t, routed, "INSERT INTO rates (id, name, at) VALUES (1, 'a', 0)")
	tx, err := routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO orders (id, user_id) VALUES (1, 1)")
	_, err = tx.Exec("INSERT INTO rates (id, name, at) VALUES (2, 'b', 0)")
	if !errors.Is(err, sharding.ErrCrossDatabase) || !strings.Contains(err.Error(), "outside of the transaction") {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	sameRates(t, copies, "1a")
}

// A transaction that a library has begun for one statement is not the caller's.
func TestCopiesAreWrittenInATransactionOfTheirOwn(t *testing.T) {
	routed, copies := rated(t, sharding.SingleShard)
	ctx := writehint.With(t.Context(), writehint.Hint{Table: "rates", Single: true})
	for _, end := range []func(*sql.Tx) error{(*sql.Tx).Rollback, (*sql.Tx).Commit} {
		tx, err := routed.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO rates (id, name, at) VALUES (1, 'a', 0)"); err != nil {
			t.Error(err)
		}
		if err := end(tx); err != nil {
			t.Error(err)
		}
	}
	sameRates(t, copies, "1a")
}

func TestACopyThatCannotCommitIsNamed(t *testing.T) {
	routed, copies := rated(t, sharding.SingleShard)
	exec(t, copies[2], "CREATE TABLE parents (id INTEGER PRIMARY KEY)")
	exec(t, copies[2], "CREATE TABLE children (id INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED)")
	exec(t, copies[2], "CREATE TRIGGER later AFTER INSERT ON rates BEGIN INSERT INTO children VALUES (new.id); END")
	_, err := routed.Exec("INSERT INTO rates (id, name, at) VALUES (1, 'a', 0)")
	var partial *sharding.PartialCommitError
	if !errors.As(err, &partial) || !reflect.DeepEqual(partial.Committed, []string{"home", "a"}) || partial.Failed["b"] == nil {
		t.Error(err)
	}
}

// With one database nothing spans databases.
func TestWithOneDatabaseBroadcastAndShardedTablesShareATransaction(t *testing.T) {
	_, copies := rated(t, sharding.SingleShard)
	db := copies[1]
	m, err := sharding.Spread([]string{"a"}, 2, "users_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range m.Targets() {
		exec(t, db, "CREATE TABLE "+at.Table+" (id INTEGER PRIMARY KEY)")
	}
	router, err := sharding.New(sharding.DBs{"a": db}, sharding.Broadcast("rates"), sharding.Table{Name: "users", Key: "id", Rule: sharding.Mod(2), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: db})
	defer func() { _ = routed.Close() }()
	tx, err := routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, "INSERT INTO users (id) VALUES (1), (2)")
	exec(t, tx, "INSERT INTO rates (name) VALUES ('a')") // which the only database may number
	exec(t, tx, "UPDATE users SET id = 3 WHERE id = (SELECT MAX(id) FROM rates) AND id = 1")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	sameRates(t, []*sql.DB{db}, "1a")
}

// Copies may store their rows in different orders, so a LIMIT alone may choose different rows.
func TestALimitOfACopyLeavesTheSameRowsForEveryShardOrIsRefused(t *testing.T) {
	routed, copies := rated(t, sharding.BestEffort)
	for i, db := range copies {
		for _, id := range [][]int{{1, 2}, {2, 1}, {1, 2}}[i] {
			exec(t, db, "INSERT INTO rates (id, name) VALUES (?, ?)", id, string(rune('a'+id)))
		}
	}
	for user := range 8 {
		exec(t, routed, "INSERT INTO orders (id, user_id) VALUES (?, ?)", user+1, user)
	}
	if n := one[int](t, routed, "SELECT COUNT(*) FROM orders WHERE (SELECT id FROM rates WHERE name > 'a' ORDER BY name DESC, id LIMIT 1) = 2"); n != 8 {
		t.Errorf("%d rows beside the last rate, want 8", n)
	}
	// A number of one copy is read first, and compared on all shards.
	all := one[int](t, routed, "SELECT COUNT(*) FROM orders WHERE (SELECT id FROM rates ORDER BY at LIMIT 1) = 2")
	if none := one[int](t, routed, "SELECT COUNT(*) FROM orders WHERE (SELECT id FROM rates ORDER BY at LIMIT 1) = 1"); all+none != 8 {
		t.Errorf("%d and %d rows beside one of two rates, want 8 in all", all, none)
	}
	for _, query := range []string{"SELECT orders.id FROM orders JOIN (SELECT id FROM rates LIMIT 1) AS r ON r.id = orders.id"} {
		if _, err := routed.Query(query); !errors.Is(err, sharding.ErrUnmergeable) { //nolint:rowserrcheck,sqlclosecheck // there are none
			t.Errorf("%s: %v", query, err)
		}
	}
	if _, err := routed.Exec("INSERT INTO rates (id, name, at) VALUES (3, 'c', DATETIME(?))", "now"); !errors.Is(err, sharding.ErrCopies) {
		t.Errorf("each copy would have a time of its own: %v", err)
	}
	if _, err := routed.Query("SELECT id FROM orders WHERE DATE(?) > '2026-01-01'", "now"); !errors.Is(err, sharding.ErrUnmergeable) { //nolint:rowserrcheck,sqlclosecheck // there are none
		t.Errorf("each shard would read its own clock: %v", err)
	}
}
