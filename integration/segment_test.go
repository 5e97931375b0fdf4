package integration_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema"
)

func TestSegmentsKeepTheContract(t *testing.T) {
	onEachServer(t, func(t *testing.T, open database) {
		t.Run("source", func(t *testing.T) {
			keygentest.Source(t, func(t *testing.T) keygen.Source {
				_, store := open.store(t)
				return store.Tag("orders")
			})
		})
		t.Run("generator", func(t *testing.T) {
			_, store := open.store(t)
			keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] { return openSegment(t, store, 5000) })
		})
	})
}

func TestASegmentOnMariaDBCostsOneRoundTrip(t *testing.T) {
	db, store := mariaDB(server.RunMariaDB(t)).store(t)
	db.SetMaxOpenConns(1) // so that the session's own counters see every statement
	for name, tag := range map[string]keygen.Source{"plain": store.Tag("orders"), "guarded": store.GuardedTag("orders")} {
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
			t.Errorf("%s: 5 segments cost %d statements", name, sent)
		}
	}
}

// questions is how many commands the session sent, preparing included.
func questions(t *testing.T, db *sql.DB) int64 {
	t.Helper()
	return mustNumber(t, db, `SELECT SUM(VARIABLE_VALUE) FROM information_schema.SESSION_STATUS
		WHERE VARIABLE_NAME IN ('QUESTIONS', 'COM_STMT_PREPARE', 'COM_STMT_CLOSE')`)
}

func TestASegmentOnPostgreSQLIsOneTransaction(t *testing.T) {
	db, store := postgres(server.RunPostgres(t)).store(t)
	db.SetMaxOpenConns(1)
	reserve := func() {
		if _, err := store.Tag("orders").Reserve(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
	}
	// Each transaction that writes has a number; asking for it takes one too.
	const next = "SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
	before := mustNumber(t, db, next)
	reserve()
	reserve()
	if used := mustNumber(t, db, next) - before - 1; used != 2 {
		t.Errorf("2 segments took %d transactions", used)
	}
}

func TestTagsThatNeedEscapingWork(t *testing.T) {
	onEachServer(t, func(t *testing.T, open database) {
		db, store := open.store(t)
		for _, tag := range []string{"order's", `back\slash`, "订单", "a b;--", `a"b?c`} {
			if _, err := schema.Seed(t.Context(), db, tag, 77, 10); err != nil {
				t.Fatalf("%s: %v", tag, err)
			}
			if span, err := store.Tag(tag).Reserve(t.Context(), 3); err != nil || span.First != 77 {
				t.Errorf("%s: %+v, %v", tag, span, err)
			}
		}
	})
}

// withoutAutocommit is a pool whose sessions commit nothing by themselves.
func withoutAutocommit(t *testing.T, m *server.MariaDB) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	db := mariaDBWith(t, m, map[string]string{"autocommit": "0"})
	return db, storeOn(t, db)
}

// mariaDBWith opens a pool whose sessions begin with variables set.
func mariaDBWith(t *testing.T, m *server.MariaDB, variables map[string]string) *sql.DB {
	t.Helper()
	cfg, err := mysql.ParseDSN(m.DSN("app"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Params = variables
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestAConnectionWithoutAutocommitReservesNothing(t *testing.T) {
	m := server.RunMariaDB(t)
	other, _ := mariaDB(m).store(t)
	_, store := withoutAutocommit(t, m)
	if span, err := store.Tag("orders").Reserve(t.Context(), 10); err == nil || !strings.Contains(err.Error(), "autocommit") {
		t.Errorf("%+v, %v", span, err)
	}
	// A worker id is inserted in a transaction that commits by itself.
	lease, err := store.WorkerNode("h", "p").Acquire(t.Context(), keygen.Twitter())
	if err != nil {
		t.Fatal(err)
	}
	if rows := mustNumber(t, other, "SELECT COUNT(*) FROM WORKER_NODE WHERE ID = ?", lease.ID()); rows != 1 {
		t.Errorf("worker id %d has %d committed rows", lease.ID(), rows)
	}
}
