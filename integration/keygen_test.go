package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema"
)

// openStore opens a pool of its own on the server's database app, which has
// shardid's tables and the tag orders.
func openStore(t *testing.T, m *server.MariaDB) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	db := m.Open(t, "app")
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

func openSegment(t *testing.T, store *sqlstore.Store, step int64) *segment.Generator {
	t.Helper()
	g, err := segment.New(t.Context(), segment.Config{Source: store.Tag("orders"), Step: step})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

func TestSegmentsOnMariaDBKeepTheContract(t *testing.T) {
	m := server.RunMariaDB(t)
	t.Run("source", func(t *testing.T) {
		keygentest.Source(t, func(t *testing.T) keygen.Source {
			_, store := openStore(t, m)
			return store.Tag("orders")
		})
	})
	t.Run("generator", func(t *testing.T) {
		_, store := openStore(t, m)
		keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] { return openSegment(t, store, 5000) })
	})
}

func TestASegmentOnMariaDBCostsOneRoundTrip(t *testing.T) {
	m := server.RunMariaDB(t)
	db, store := openStore(t, m)
	db.SetMaxOpenConns(1) // so that the session's own counters see every statement
	tag := store.Tag("orders")
	if _, err := tag.Reserve(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	before := questions(t, db)
	for range 5 {
		if _, err := tag.Reserve(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
	}
	if sent := questions(t, db) - before - 1; sent != 5 { // 1 is the asking
		t.Errorf("5 segments cost %d statements", sent)
	}
}

// questions is how many commands the session sent, preparing included.
func questions(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	const query = `SELECT SUM(VARIABLE_VALUE) FROM information_schema.SESSION_STATUS
		WHERE VARIABLE_NAME IN ('QUESTIONS', 'COM_STMT_PREPARE', 'COM_STMT_CLOSE')`
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTagsThatNeedEscapingWorkOnMariaDB(t *testing.T) {
	m := server.RunMariaDB(t)
	db, store := openStore(t, m)
	for _, tag := range []string{"order's", `back\slash`, "订单", "a b;--"} {
		if _, err := schema.Seed(t.Context(), db, tag, 77, 10); err != nil {
			t.Fatalf("%s: %v", tag, err)
		}
		if span, err := store.Tag(tag).Reserve(t.Context(), 3); err != nil || span.First != 77 {
			t.Errorf("%s: %+v, %v", tag, span, err)
		}
	}
}

func TestAConnectionWithoutAutocommitReservesNothing(t *testing.T) {
	m := server.RunMariaDB(t)
	openStore(t, m)
	cfg, err := mysql.ParseDSN(m.DSN("app"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Params = map[string]string{"autocommit": "0"}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	store, err := sqlstore.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if span, err := store.Tag("orders").Reserve(t.Context(), 10); err == nil || !strings.Contains(err.Error(), "autocommit") {
		t.Errorf("%+v, %v", span, err)
	}
	// A worker id is inserted in a transaction that commits by itself.
	lease, err := store.WorkerNode("h", "p").Acquire(t.Context(), keygen.Twitter())
	if err != nil {
		t.Fatal(err)
	}
	other, _ := openStore(t, m)
	var rows int
	if err := other.QueryRow("SELECT COUNT(*) FROM WORKER_NODE WHERE ID = ?", lease.ID()).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("worker id %d has %d committed rows, %v", lease.ID(), rows, err)
	}
}

func TestEachStartGetsAWorkerIDOfItsOwnOnMariaDB(t *testing.T) {
	m := server.RunMariaDB(t)
	_, store := openStore(t, m)
	layout := keygen.Baidu()
	layout.Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			g, err := snowflake.New(t.Context(), snowflake.Config{Layout: layout, Worker: store.WorkerNode("host", "1")})
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = g.Close() }()
			mu.Lock()
			defer mu.Unlock()
			seen[g.Stats().Worker] = true
		})
	}
	wg.Wait()
	if len(seen) != 10 {
		t.Errorf("10 starts got %d worker ids", len(seen))
	}
}

func TestNoIDComesTwiceWhenMariaDBIsKilledAgainAndAgain(t *testing.T) {
	m := server.RunMariaDB(t, "--innodb-flush-log-at-trx-commit=1")
	const writers, kills = 4, 5
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results := make([][]int64, writers)
	var wg sync.WaitGroup
	for i := range writers {
		_, store := openStore(t, m)
		g := openSegment(t, store, 20) // small, so that a kill falls into reservations
		wg.Go(func() {
			for ctx.Err() == nil {
				if id, err := g.Next(ctx); err == nil {
					results[i] = append(results[i], id)
				} else if !errors.Is(err, keygen.ErrStarved) {
					t.Error(err)
					return
				}
			}
		})
	}
	db := m.Open(t, "app")
	for range kills {
		waitForProgress(t, db)
		m.Kill()
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	waitForProgress(t, db)
	cancel()
	wg.Wait()
	var ids []int64
	for _, r := range results {
		ids = append(ids, r...)
	}
	t.Logf("%d ids over %d kills", len(ids), kills)
	if id, twice := keygentest.Duplicate(ids); twice || len(ids) == 0 {
		t.Errorf("%d came twice, of %d ids", id, len(ids))
	}
}

// waitForProgress returns once ids were reserved after the call.
func waitForProgress(t *testing.T, db *sql.DB) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	first := int64(-1)
	for time.Now().Before(deadline) {
		var maxID int64
		if err := db.QueryRowContext(t.Context(), "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders'").Scan(&maxID); err == nil {
			if first >= 0 && maxID > first+2000 {
				return
			}
			if first < 0 {
				first = maxID
			}
		}
	}
	t.Fatal("no ids were reserved within 30 s of a restart")
}
