// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// altering calls a test with people in shards and in one table, and a function that executes a text on
// each table, whose name replaces %. The time of the test is simulated.
func altering(t *testing.T, columns string, test func(t *testing.T, w *twin, alter func(text string))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := spread(t, 4, "people_%d")
		w := twinOf(t, sharding.Table{Name: "people", Key: "user_id", Rule: sharding.Mod(4), Map: m}, columns, sharding.Transactions(sharding.BestEffort))
		test(t, w, func(text string) {
			t.Helper()
			for _, at := range m.Targets() {
				exec(t, w.dbs[at.DB], strings.ReplaceAll(text, "%", at.Table))
			}
			exec(t, w.one, strings.ReplaceAll(text, "%", "people"))
		})
	})
}

func TestAUniqueKeyThatIsAddedLaterIsSearchedFor(t *testing.T) {
	altering(t, " (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, email TEXT)", func(t *testing.T, w *twin, alter func(string)) {
		const upsert = "INSERT INTO people (id, user_id, email) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
		exec(t, w.routed, upsert, 1, 1, "a@example.org")
		alter("CREATE UNIQUE INDEX %_email ON % (email)")
		time.Sleep(time.Minute)
		if _, err := w.routed.Exec(upsert, 2, 2, "a@example.org"); !errors.Is(err, sharding.ErrKeyChange) {
			t.Errorf("two shards have a row of this email: %v", err)
		}
	})
}

func TestAColumnThatIsChangedIsSortedAndGroupedAsItIsNow(t *testing.T) {
	altering(t, " (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, word TEXT)", func(t *testing.T, w *twin, alter func(string)) {
		both := func(text string) {
			t.Helper()
			for _, db := range []*sql.DB{w.routed, w.one} {
				exec(t, db, text)
			}
		}
		const words = "(1, 1, 'b'), (2, 2, 'B'), (3, 3, 'a'), (4, 4, 'C')"
		both("INSERT INTO people (id, user_id, word) VALUES " + words)
		const query = "SELECT COUNT(*) FROM people GROUP BY word ORDER BY word"
		w.same(t, query)
		alter("DELETE FROM %")
		alter("ALTER TABLE % DROP COLUMN word")
		alter("ALTER TABLE % ADD COLUMN word TEXT COLLATE NOCASE")
		both("INSERT INTO people (id, user_id, word) VALUES " + words)
		time.Sleep(time.Minute)
		w.same(t, query)
	})
}

// A statement is not refused for a column that was added a moment ago.
func TestAColumnThatIsAddedLaterIsSorted(t *testing.T) {
	altering(t, " (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)", func(t *testing.T, w *twin, alter func(string)) {
		const query = "SELECT id, age FROM people ORDER BY age, id"
		if _, err := answer(t.Context(), w.routed, query); !isRouteError(err) {
			t.Errorf("sorted by a column that does not exist: %v", err)
		}
		alter("ALTER TABLE % ADD COLUMN age INTEGER NOT NULL DEFAULT 7")
		time.Sleep(10 * time.Second)
		for _, db := range []*sql.DB{w.routed, w.one} {
			exec(t, db, "INSERT INTO people (id, user_id, age) VALUES (1, 1, 9), (2, 2, 8), (3, 3, 10)")
		}
		w.same(t, query)
	})
}

func isRouteError(err error) bool {
	var refused *sharding.RouteError
	return errors.As(err, &refused)
}

func TestADefaultOfABroadcastTableThatIsAddedLaterIsNotCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		routed, copies := rated(t, sharding.SingleShard)
		exec(t, routed, "INSERT INTO rates (id, name, at) VALUES (1, 'A', 0)")
		for _, db := range copies {
			exec(t, db, "ALTER TABLE rates RENAME TO old")
			exec(t, db, "CREATE TABLE rates (id INTEGER PRIMARY KEY, name TEXT UNIQUE, at DATETIME, token TEXT DEFAULT (HEX(RANDOMBLOB(8))))")
		}
		time.Sleep(time.Minute)
		if _, err := routed.Exec("INSERT INTO rates (id, name, at) VALUES (2, 'B', 0)"); !errors.Is(err, sharding.ErrCopies) {
			t.Errorf("the copies have different tokens: %v", err)
		}
	})
}

// A transaction may hold the connections that others need: it reads no columns again.
func TestATransactionThatLastsLongerThanADescriptionGoesOn(t *testing.T) {
	altering(t, " (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)", func(t *testing.T, w *twin, _ func(string)) {
		for _, db := range w.dbs {
			db.SetMaxOpenConns(1)
		}
		other, err := w.dbs["a"].Conn(t.Context()) // has the first physical table
		if err != nil {
			t.Fatal(err)
		}
		tx, err := w.routed.BeginTx(t.Context(), nil)
		if err == nil {
			defer func() { _ = tx.Rollback() }()
		}
		_ = other.Close()
		const insert = "INSERT INTO people (id, user_id) VALUES (?, ?)"
		exec(t, w.routed, insert, 1, 1)
		exec(t, tx, insert, 5, 5)
		if other, err = w.dbs["a"].Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := tx.ExecContext(ctx, insert, 9, 9); err != nil {
			t.Error(err)
		}
		if err := errors.Join(other.Close(), tx.Commit()); err != nil {
			t.Error(err)
		}
	})
}

// So does a program that reads rows over the only connection to the first physical table.
func TestAStatementBesideOpenRowsGoesOnWithoutNewColumns(t *testing.T) {
	altering(t, " (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)", func(t *testing.T, w *twin, _ func(string)) {
		for _, db := range w.dbs {
			db.SetMaxOpenConns(1)
		}
		exec(t, w.routed, "INSERT INTO people (id, user_id) VALUES (4, 4)")
		rows, err := w.routed.QueryContext(t.Context(), "SELECT id FROM people WHERE user_id = 4")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		time.Sleep(time.Minute)
		begin := time.Now()
		exec(t, w.routed, "INSERT INTO people (id, user_id) VALUES (1, 1)")
		if took := time.Since(begin); took > time.Second {
			t.Errorf("it took %v", took)
		}
		if err := rows.Err(); err != nil {
			t.Error(err)
		}
	})
}

// One statement in a minute reads the columns of a table, and one that cannot does without.
func TestColumnsAreReadOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		var cut atomic.Bool
		db := sql.OpenDB(asking{filepath.Join(t.TempDir(), "a.db"), func(_ context.Context, query string) error {
			if !strings.HasSuffix(query, " WHERE 1 = 0") {
				return nil
			}
			if reads.Add(1); cut.Load() {
				return errCable
			}
			return nil
		}})
		t.Cleanup(func() { _ = db.Close() })
		m, err := sharding.Spread([]string{"a"}, 2, "people_%d")
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range m.Targets() {
			exec(t, db, "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)")
		}
		router, err := sharding.New(sharding.DBs{"a": db}, sharding.Table{Name: "people", Key: "user_id", Rule: sharding.Mod(2), Map: m})
		if err != nil {
			t.Fatal(err)
		}
		routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: db})
		t.Cleanup(func() { _ = routed.Close() })
		for minute := range int64(4) {
			cut.Store(minute == 2)
			for user := range 5 {
				for _, query := range []string{"SELECT COUNT(*) FROM people WHERE user_id = ?", "SELECT COUNT(id) FROM people WHERE user_id = ?"} {
					one[int64](t, routed, query, user)
				}
			}
			if got := reads.Load(); got != minute+1 {
				t.Errorf("the columns were read %d times after %d minutes", got, minute)
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestALookupTableThatNoLongerMatchesItsColumnIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDirectory(t, "", false, sharding.Transactions(sharding.BestEffort))
		d.add(t, d.routed, 1, "A@example.org", "Oslo")
		const query = "SELECT id FROM users WHERE email = 'a@example.org'"
		if id := one[int64](t, d.routed, query); id != 1 {
			t.Errorf("user %d has the address", id)
		}
		users, _ := d.router.Table("users")
		for _, at := range users.Map.Targets() {
			exec(t, d.dbs[at.DB], "DROP TABLE "+at.Table)
			exec(t, d.dbs[at.DB], "CREATE TABLE "+at.Table+strings.ReplaceAll(userColumns, "COLLATE NOCASE", ""))
		}
		time.Sleep(time.Minute)
		if err := d.routed.QueryRow(query).Err(); !errors.Is(err, sharding.ErrLookup) {
			t.Errorf("the lookup table folds letters, and the column does not: %v", err)
		}
	})
}

// A description of the columns does not have the unique keys of a table of the home database.
func TestALookupTableThatLosesItsUniqueKeyIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDirectory(t, "", false, sharding.Transactions(sharding.BestEffort))
		d.add(t, d.routed, 1, "a@example.org", "Oslo")
		exec(t, d.home, "ALTER TABLE users_by_email RENAME TO kept")
		exec(t, d.home, "CREATE TABLE users_by_email (email VARCHAR(100) COLLATE NOCASE, id INTEGER NOT NULL, claim BIGINT NOT NULL)")
		exec(t, d.home, "INSERT INTO users_by_email (email, id, claim) SELECT email, id, claim FROM kept")
		time.Sleep(time.Minute)
		for range 2 {
			if _, err := d.routed.Exec("INSERT INTO users (id, email, city) VALUES (2, 'b@example.org', 'Oslo')"); !errors.Is(err, sharding.ErrLookup) {
				t.Errorf("two rows may have one address: %v", err)
			}
		}
	})
}

// The program runs when the first move begins. While a shard does not answer, what it has said before holds.
func TestAMapThatIsNotFollowedIsFoundWithinAMinute(t *testing.T) {
	altering(t, " (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL)", func(t *testing.T, w *twin, _ func(string)) {
		const query = "SELECT COUNT(*) FROM people WHERE user_id = 1"
		one[int64](t, w.routed, query)
		for _, text := range []string{"CREATE TABLE shard_fence_table (table_name VARCHAR(64) PRIMARY KEY, name VARCHAR(64))", "INSERT INTO shard_fence_table VALUES ('people_0', 'shop')"} {
			exec(t, w.dbs["a"], text)
		}
		one[int64](t, w.routed, query)
		unreadable := []string{"ALTER TABLE shard_fence_table DROP COLUMN name", "ALTER TABLE shard_fence_table ADD COLUMN name TEXT AS (json(table_name)) VIRTUAL"}
		for _, changes := range [][]string{nil, unreadable} {
			for _, text := range changes {
				exec(t, w.dbs["a"], text)
			}
			time.Sleep(time.Minute)
			if err := w.routed.QueryRow(query).Scan(new(int64)); !errors.Is(err, sharding.ErrStaleMap) {
				t.Errorf("after %q: %v", changes, err)
			}
		}
	})
}
