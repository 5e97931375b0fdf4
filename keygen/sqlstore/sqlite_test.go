// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema"
)

// database opens a new SQLite file with shardid's tables and the tag orders.
func database(t testing.TB) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	file := "file:" + filepath.Join(t.TempDir(), "app.db") + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_txlock=immediate"
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Seed(t.Context(), db, "orders", 1, 1000); err != nil {
		t.Fatal(err)
	}
	store, err := sqlstore.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return db, store
}

func exec(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

func TestSourceConformanceOnSQLite(t *testing.T) {
	_, store := database(t)
	keygentest.Source(t, func(*testing.T) keygen.Source { return store.Tag("orders") })
}

func TestGeneratorConformanceOnSQLite(t *testing.T) {
	_, store := database(t)
	keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] {
		g, err := segment.New(t.Context(), segment.Config{Source: store.Tag("orders"), Step: 5000})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close() })
		return g
	})
}

func TestRangesAreLeafs(t *testing.T) {
	db, store := database(t)
	exec(t, db, "UPDATE leaf_alloc SET max_id = 5000 WHERE biz_tag = 'orders'")
	span, err := store.Tag("orders").Reserve(t.Context(), 250)
	if err != nil || span != (keygen.Span{First: 5000, Count: 250, Step: 1}) {
		t.Errorf("%+v, %v", span, err)
	}
	var maxID int64
	if err := db.QueryRow("SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'").Scan(&maxID); err != nil || maxID != 5250 {
		t.Errorf("max_id is %d, %v", maxID, err)
	}
}

func TestTheID0IsNeverIssued(t *testing.T) {
	for n, want := range map[int64]keygen.Span{1: {First: 1, Count: 1, Step: 1}, 10: {First: 1, Count: 9, Step: 1}} {
		db, store := database(t)
		exec(t, db, "UPDATE leaf_alloc SET max_id = 0")
		if span, err := store.Tag("orders").Reserve(t.Context(), n); err != nil || span != want {
			t.Errorf("%d: %+v, %v", n, span, err)
		}
	}
}

func TestACounterThatCannotServeIsRefusedAndSaysWhy(t *testing.T) {
	db, store := database(t)
	exec(t, db, "UPDATE leaf_alloc SET max_id = -500")
	if span, err := store.Tag("orders").Reserve(t.Context(), 10); !errors.Is(err, keygen.ErrRegressed) {
		t.Errorf("negative: %+v, %v", span, err)
	}
	exec(t, db, "UPDATE leaf_alloc SET max_id = ?", int64(math.MaxInt64-5))
	if span, err := store.Tag("orders").Reserve(t.Context(), 10); !errors.Is(err, keygen.ErrExhausted) || errors.Is(err, keygen.ErrRegressed) {
		t.Errorf("at the end: %+v, %v", span, err)
	}
	var kind string
	if err := db.QueryRow("SELECT typeof(max_id) FROM leaf_alloc").Scan(&kind); err != nil || kind != "integer" {
		t.Errorf("max_id became %s, %v", kind, err)
	}
}

func TestAnUnknownTagNamesItselfAndTheCure(t *testing.T) {
	_, store := database(t)
	_, err := store.Tag("order's").Reserve(t.Context(), 10)
	if !errors.Is(err, keygen.ErrUnknownTag) || !strings.Contains(err.Error(), `"order's"`) || !strings.Contains(err.Error(), "schema.Seed") {
		t.Errorf("%v", err)
	}
	if _, err := store.Tag("nope").(keygen.Stepper).Step(t.Context()); !errors.Is(err, keygen.ErrUnknownTag) {
		t.Errorf("%v", err)
	}
}

func TestTagsAreIsolated(t *testing.T) {
	db, store := database(t)
	if _, err := schema.Seed(t.Context(), db, "items", 70_000, 10); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"orders", "items"} {
		if _, err := store.Tag(tag).Reserve(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
	}
	got := fmt.Sprint(maxID(t, db, "orders"), maxID(t, db, "items"))
	if got != "8 70007" {
		t.Errorf("max_ids are %s", got)
	}
}

func maxID(t *testing.T, db *sql.DB, tag string) (n int64) {
	t.Helper()
	if err := db.QueryRow("SELECT max_id FROM leaf_alloc WHERE biz_tag = ?", tag).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAPoolOfOneInsideATransactionGetsAnErrorNotADeadlock(t *testing.T) {
	db, store := database(t)
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := store.Tag("orders").Reserve(ctx, 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestEachStartGetsAWorkerIDOfItsOwn(t *testing.T) {
	db, store := database(t)
	layout := keygen.Baidu()
	layout.Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for want := int64(1); want <= 3; want++ {
		g, err := snowflake.New(t.Context(), snowflake.Config{Layout: layout, Worker: store.WorkerNode("host-a", "8080")})
		if err != nil {
			t.Fatal(err)
		}
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p, err := layout.Parse(id); err != nil || p.Worker != want {
			t.Errorf("start %d: %+v, %v", want, p, err)
		}
		_ = g.Close()
	}
	var host, port, created string
	var kind int
	if err := db.QueryRow("SELECT HOST_NAME, PORT, TYPE, CREATED FROM WORKER_NODE WHERE ID = 3").Scan(&host, &port, &kind, &created); err != nil {
		t.Fatal(err)
	}
	if host != "host-a" || port != "8080" || kind != 2 || created == "" {
		t.Errorf("%s %s %d %s", host, port, kind, created)
	}
}

func TestWhenTheLayoutHasNoRoomForMoreStartsThatIsSaid(t *testing.T) {
	db, store := database(t)
	exec(t, db, "INSERT INTO WORKER_NODE (ID, HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) VALUES (1023, '', '', 1, '2026-01-01', '', '')")
	if lease, err := store.WorkerNode("h", "p").Acquire(t.Context(), keygen.Twitter()); !errors.Is(err, keygen.ErrNoWorker) {
		t.Errorf("%v, %v", lease, err)
	}
}

func TestADeletedRowsWorkerIDIsNotGivenAgain(t *testing.T) {
	db, store := database(t)
	for want := int64(1); want <= 3; want++ {
		lease, err := store.WorkerNode("h", "p").Acquire(t.Context(), keygen.Twitter())
		if err != nil || lease.ID() != want {
			t.Fatalf("%v, %v", lease, err)
		}
		exec(t, db, "DELETE FROM WORKER_NODE")
	}
}

func TestADatabaseThatIsNotThereIsAnError(t *testing.T) {
	if _, err := sqlstore.New(t.Context(), nil); err == nil {
		t.Error("nil was accepted")
	}
	db, err := sql.Open("sqlite", "file:/nonexistent/dir/app.db")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := sqlstore.New(t.Context(), db); err == nil {
		t.Error("a database that cannot be opened was accepted")
	}
}

func TestALongTagIsNotRepeatedInFull(t *testing.T) {
	_, store := database(t)
	_, err := store.Tag(strings.Repeat("x", 100_000)).Reserve(t.Context(), 10)
	if !errors.Is(err, keygen.ErrUnknownTag) || len(err.Error()) > 500 {
		t.Errorf("%d bytes: %.200v", len(err.Error()), err)
	}
}
