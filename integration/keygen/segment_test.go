// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema"
)

func TestSegmentsKeepTheContract(t *testing.T) {
	database.OnEachServer(t, func(t *testing.T, open database.Opener) {
		t.Run("source", func(t *testing.T) {
			keygentest.Source(t, func(t *testing.T) keygen.Source {
				_, store := open.Store(t)
				return store.Tag("orders")
			})
		})
		t.Run("generator", func(t *testing.T) {
			_, store := open.Store(t)
			keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] { return openSegment(t, store, 5000) })
		})
	})
}

func TestASegmentOnMariaDBCostsOneRoundTrip(t *testing.T) {
	db, store := database.MariaDB(server.RunMariaDB(t)).Store(t)
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
	return database.MustNumber(t, db, `SELECT SUM(VARIABLE_VALUE) FROM information_schema.SESSION_STATUS
		WHERE VARIABLE_NAME IN ('QUESTIONS', 'COM_STMT_PREPARE', 'COM_STMT_CLOSE')`)
}

func TestASegmentOnPostgreSQLIsOneTransaction(t *testing.T) {
	db, store := database.Postgres(server.RunPostgres(t)).Store(t)
	db.SetMaxOpenConns(1)
	reserve := func() {
		if _, err := store.Tag("orders").Reserve(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
	}
	// Each transaction that writes has a number; asking for it takes one too.
	const next = "SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint)"
	before := database.MustNumber(t, db, next)
	reserve()
	reserve()
	if used := database.MustNumber(t, db, next) - before - 1; used != 2 {
		t.Errorf("2 segments took %d transactions", used)
	}
}

func TestTagsThatNeedEscapingWork(t *testing.T) {
	database.OnEachServer(t, func(t *testing.T, open database.Opener) {
		db, store := open.Store(t)
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
	db := database.MariaDBWith(t, m, map[string]string{"autocommit": "0"})
	return db, database.StoreOn(t, db)
}

func TestAConnectionWithoutAutocommitReservesNothing(t *testing.T) {
	m := server.RunMariaDB(t)
	other, _ := database.MariaDB(m).Store(t)
	_, store := withoutAutocommit(t, m)
	if span, err := store.Tag("orders").Reserve(t.Context(), 10); err == nil || !strings.Contains(err.Error(), "autocommit") {
		t.Errorf("%+v, %v", span, err)
	}
	// A worker id is inserted in a transaction that commits by itself.
	lease, err := store.WorkerNode("h", "p").Acquire(t.Context(), keygen.Twitter())
	if err != nil {
		t.Fatal(err)
	}
	if rows := database.MustNumber(t, other, "SELECT COUNT(*) FROM WORKER_NODE WHERE ID = ?", lease.ID()); rows != 1 {
		t.Errorf("worker id %d has %d committed rows", lease.ID(), rows)
	}
}

// What is wrong in the database until somebody changes it is said at once.
func TestSegmentsThatCannotBeReservedFailAtOnceAndSayWhatToDo(t *testing.T) {
	database.OnEachServer(t, func(t *testing.T, open database.Opener) {
		db, store := open.Store(t)
		for _, c := range []struct{ wrong, says string }{
			{"UPDATE leaf_alloc SET step = 0", "1 or more"},
			{"ALTER TABLE leaf_alloc DROP COLUMN max_id", "add the column"},
			{"DROP TABLE leaf_alloc", "schema.Apply"},
		} {
			database.Exec(t, db, "UPDATE leaf_alloc SET step = 10")
			database.Exec(t, db, c.wrong)
			mustFailAtOnce(t, store, c.says)
		}
	})
	t.Run("no rights on MariaDB", func(t *testing.T) {
		m := server.RunMariaDB(t)
		admin, _ := database.MariaDB(m).Store(t)
		database.Exec(t, admin, "CREATE USER reader")
		database.Exec(t, admin, "GRANT SELECT ON app.leaf_alloc TO reader")
		mustFailAtOnce(t, database.StoreOn(t, mariaDBAs(t, m, "reader")), "rights")
		database.Exec(t, admin, "CREATE USER stranger")
		_, err := sqlstore.New(t.Context(), mariaDBAs(t, m, "stranger"))
		mustSay(t, err, "rights") // to use the database at all
		_, err = sqlstore.New(t.Context(), mariaDBAs(t, m, "nobody"))
		mustSay(t, err, "user and password")
	})
	t.Run("no rights on PostgreSQL", func(t *testing.T) {
		p := server.RunPostgres(t)
		database.Postgres(p).Store(t)
		mustFailAtOnce(t, database.StoreOn(t, database.PostgresAs(t, p, "app", "reader", "GRANT SELECT ON leaf_alloc TO reader")), "rights")
	})
	t.Run("no database", func(t *testing.T) {
		m := server.RunMariaDB(t)
		db, store := database.MariaDB(m).Store(t)
		db.SetMaxIdleConns(0)
		database.Exec(t, db, "DROP DATABASE app")
		mustFailAtOnce(t, store, "which database")
	})
}

func TestAColumnThatIsTooNarrowForTheCounterIsExhausted(t *testing.T) {
	database.OnEachServer(t, func(t *testing.T, open database.Opener) {
		db, _ := open.Store(t)
		database.Exec(t, db, "DROP TABLE leaf_alloc")
		database.Exec(t, db, "CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id int, step int, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP)")
		database.Exec(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 2147483000, 1000)")
		if tries, err := openFailing(t, database.StoreOn(t, open(t))); !errors.Is(err, keygen.ErrExhausted) || tries != 1 {
			t.Errorf("asked %d times: %v", tries, err)
		}
	})
}

// openFailing opens a generator of segments and returns its error and how often
// the database was asked.
func openFailing(t *testing.T, store *sqlstore.Store) (tries int, err error) {
	t.Helper()
	g, err := segment.New(t.Context(), segment.Config{Source: store.Tag("orders"), Observer: segment.Observer{
		Refill: func(keygen.Span, time.Duration, error) { tries++ },
	}})
	if err == nil {
		t.Fatal("it was opened", g.Close())
	}
	return tries, err
}

func mustFailAtOnce(t *testing.T, store *sqlstore.Store, words ...string) {
	t.Helper()
	tries, err := openFailing(t, store)
	mustSay(t, err, words...)
	if tries != 1 {
		t.Errorf("the database was asked %d times", tries)
	}
}

func mustSay(t *testing.T, err error, words ...string) {
	t.Helper()
	var setup *keygen.SetupError
	if !errors.As(err, &setup) || errors.Is(err, keygen.ErrStarved) {
		t.Errorf("not an error that says what to do: %v", err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}
