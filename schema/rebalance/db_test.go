// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/schema/rebalance"
)

func openFile(tb testing.TB, dir, name string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, name+".db")+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(tb testing.TB, db *sql.DB, query string) {
	tb.Helper()
	if _, err := db.ExecContext(context.Background(), query); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
}

func count(tb testing.TB, db *sql.DB, query string, args ...any) (n int64) {
	tb.Helper()
	if err := db.QueryRowContext(context.Background(), query, args...).Scan(&n); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return n
}

// blockAt stops a mover at a step until goOn is called.
func blockAt(step string) (observe func(rebalance.Step), reached <-chan struct{}, goOn func()) {
	there, on := make(chan struct{}), make(chan struct{})
	var once sync.Once
	return func(at rebalance.Step) {
		if at.Name == step {
			once.Do(func() { close(there) })
			<-on
		}
	}, there, sync.OnceFunc(func() { close(on) })
}
