// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/sqlstore"
)

// unflushed are settings with which a server that is killed loses what it acknowledged in the
// last seconds.
var unflushed = []string{"synchronous_commit=off", "wal_writer_delay=10s", "wal_writer_flush_after=1GB", "bgwriter_lru_maxpages=0"}

// killedAfter kills a PostgreSQL that loses commits, after something was reserved on it, and
// starts it again.
func killedAfter(t *testing.T, reserve func(db *sql.DB, store *sqlstore.Store)) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	p := server.RunPostgres(t, unflushed...)
	db, store := database.Postgres(p).Store(t)
	database.Exec(t, db, "CHECKPOINT") // the tables are not what is to be lost
	reserve(db, store)
	p.Kill()
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := p.Open(t, "app")
	return again, database.StoreOn(t, again)
}

func TestAPostgreSQLThatAcknowledgesCommitsBeforeItHasThemGivesNothingTwiceWhenKilled(t *testing.T) {
	t.Run("segments", func(t *testing.T) {
		for name, tag := range map[string]func(*sqlstore.Store) keygen.Source{
			"plain":   func(s *sqlstore.Store) keygen.Source { return s.Tag("orders") },
			"guarded": func(s *sqlstore.Store) keygen.Source { return s.GuardedTag("orders") },
		} {
			var lost keygen.Span
			reserve := func(s *sqlstore.Store) (span keygen.Span) {
				span, err := tag(s).Reserve(t.Context(), 10)
				if err != nil {
					t.Fatal(err)
				}
				return span
			}
			_, store := killedAfter(t, func(_ *sql.DB, s *sqlstore.Store) { lost = reserve(s) })
			if again := reserve(store); again.First <= lost.Last() {
				t.Errorf("%s: %+v after %+v", name, again, lost)
			}
		}
	})
	t.Run("leases", func(t *testing.T) {
		var lost keygen.Window
		_, store := killedAfter(t, func(_ *sql.DB, s *sqlstore.Store) { lost = acquire(t, s, "shop") })
		if next := acquire(t, store, "shop"); next.ID() == lost.ID() && next.NotBefore() < lost.Ceiling() {
			t.Errorf("worker id %d from %d, which was leased until %d", next.ID(), next.NotBefore(), lost.Ceiling())
		}
	})
	t.Run("WORKER_NODE", func(t *testing.T) {
		start := func(s *sqlstore.Store) int64 {
			lease, err := s.WorkerNode("host", "1").Acquire(t.Context(), uidLayout())
			if err != nil {
				t.Fatal(err)
			}
			return lease.ID()
		}
		var lost int64
		_, store := killedAfter(t, func(_ *sql.DB, s *sqlstore.Store) { lost = start(s) })
		if again := start(store); again <= lost {
			t.Errorf("%d after %d", again, lost)
		}
	})
}

// A machine that loses its power would lose commits that are not on disk.
func TestACommitOnSQLiteIsOnDiskWhateverTheConnectionIsSetTo(t *testing.T) {
	for _, setting := range []string{"off", "normal", "full", "extra"} {
		dsn := "file:" + t.TempDir() + "/app.db?_pragma=journal_mode(wal)&_pragma=synchronous(" + setting + ")"
		plain, err := sql.Open("sqlite", dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = plain.Close() })
		database.Prepare(t, plain)
		var during []int64
		db := sql.OpenDB(&hooked{of: plain.Driver(), dsn: dsn, before: func(string) {}, beforeExec: func(ctx context.Context, on driver.ExecerContext, statement string) {
			if statement == "COMMIT" {
				during = append(during, synchronous(ctx, t, on))
			}
		}})
		t.Cleanup(func() { _ = db.Close() })
		acquire(t, database.StoreOn(t, db), "shop")
		if len(during) == 0 || slices.Min(during) < 2 {
			t.Errorf("%s: COMMIT with synchronous=%v", setting, during)
		}
	}
}

// synchronous reads the setting of a connection to SQLite.
func synchronous(ctx context.Context, t *testing.T, on driver.ExecerContext) int64 {
	t.Helper()
	rows, err := on.(driver.QueryerContext).QueryContext(ctx, "PRAGMA synchronous", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	value := make([]driver.Value, 1)
	if err := rows.Next(value); err != nil {
		t.Fatal(err)
	}
	return value[0].(int64)
}

// The opposite: a session that does not wait loses its commit.
func TestAKilledPostgreSQLLosesACommitThatDidNotWait(t *testing.T) {
	for ctx := testwait.Context(t); ctx.Err() == nil; { // the server may have written its log by chance
		db, _ := killedAfter(t, func(db *sql.DB, _ *sqlstore.Store) {
			database.Exec(t, db, "UPDATE leaf_alloc SET max_id = 12345")
		})
		if database.MustNumber(t, db, "SELECT COUNT(*) FROM leaf_alloc WHERE max_id = 12345") == 0 {
			return
		}
	}
	t.Error("no commit was lost: kills do not show what they should")
}
