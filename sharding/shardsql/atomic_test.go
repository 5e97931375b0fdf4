// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

func TestSeveralFilesOfSQLiteAreNoAtomicTransaction(t *testing.T) {
	dir, dbs := t.TempDir(), sharding.DBs{}
	for n, name := range []string{"east", "west"} {
		db, err := sql.Open("sqlite", filepath.Join(dir, name)+"?_pragma=busy_timeout(5000)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE accounts_"+string(rune('0'+n))+" (user_id INTEGER PRIMARY KEY, balance INTEGER)"); err != nil {
			t.Fatal(err)
		}
		dbs[name] = db
	}
	m, err := sharding.Spread([]string{"east", "west"}, 2, "accounts_%d")
	if err != nil {
		t.Fatal(err)
	}
	r, err := sharding.New(dbs, sharding.Table{Name: "accounts", Key: "user_id", Rule: sharding.Mod(2), Map: m}, sharding.Transactions(sharding.Atomic))
	if err != nil {
		t.Fatal(err)
	}
	db := shardsql.OpenDB(shardsql.Config{Router: r, Home: dbs["east"]})
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO accounts (user_id, balance) VALUES (0, 1)"); err != nil {
		t.Fatal(err)
	}
	_, err = tx.ExecContext(t.Context(), "INSERT INTO accounts (user_id, balance) VALUES (1, 1)")
	if !errors.Is(err, sharding.ErrCrossDatabase) || !strings.Contains(err.Error(), "SQLite commits several files separately") {
		t.Errorf("the second file: %v", err)
	}
	if err := tx.Commit(); err != nil { // the refused statement did nothing
		t.Error(err)
	}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO accounts (user_id, balance) VALUES (2, 1), (3, 1)"); !errors.Is(err, sharding.ErrCrossDatabase) {
		t.Errorf("one statement for both: %v", err)
	}
	var rows int
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM accounts").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows, %v", rows, err)
	}
}
