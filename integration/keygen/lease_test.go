// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
)

func TestLeasesKeepTheContract(t *testing.T) {
	database.OnEachServer(t, func(t *testing.T, open database.Opener) {
		keygentest.Ledger(t, func(t *testing.T) workerid.Ledger {
			_, store := open.Store(t)
			return store.Leases()
		})
	})
}

func TestLeasesKeepTheContractWhateverTheSessionIsSetTo(t *testing.T) {
	t.Run("MariaDB", func(t *testing.T) {
		m := server.RunMariaDB(t)
		database.MariaDB(m).Store(t)
		session := map[string]string{"tx_isolation": "'SERIALIZABLE'", "autocommit": "0", "sql_mode": "'ANSI_QUOTES'", "time_zone": "'+13:00'"}
		keygentest.Ledger(t, func(t *testing.T) workerid.Ledger {
			return database.StoreOn(t, database.MariaDBWith(t, m, session)).Leases()
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		open := database.Postgres(server.RunPostgres(t, "default_transaction_isolation=serializable", "timezone=Pacific/Auckland"))
		keygentest.Ledger(t, func(t *testing.T) workerid.Ledger {
			_, store := open.Store(t)
			return store.Leases()
		})
	})
}

// claim asks for a worker id of a small namespace.
func claim(owner string) workerid.Claim {
	return workerid.Claim{
		Namespace: "shop", Owner: owner, Holder: "host/" + owner, Most: 15, Term: time.Minute,
		Layout: keygen.Twitter(),
	}
}

func take(t *testing.T, store *sqlstore.Store, owner string) workerid.Entry {
	t.Helper()
	e, err := store.Leases().Take(t.Context(), claim(owner))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLeasesAreOnTheDatabasesClock(t *testing.T) {
	database.OnEach(t, func(t *testing.T, open database.Opener) {
		_, store := open.Store(t)
		before := keygen.Twitter().Tick(time.Now())
		e := take(t, store, "a")
		after := keygen.Twitter().Tick(time.Now())
		if e.NotBefore < before-1 || e.NotBefore > after+1 || e.Ceiling != e.NotBefore+time.Minute.Milliseconds() {
			t.Errorf("taken between %d and %d: %+v", before, after, e)
		}
	})
}

func TestASessionWhoseTimeWasSetByHandLeasesNothing(t *testing.T) {
	m := server.RunMariaDB(t)
	database.MariaDB(m).Store(t)
	store := database.StoreOn(t, database.MariaDBWith(t, m, map[string]string{"timestamp": "1500000000"}))
	if e, err := store.Leases().Take(t.Context(), claim("a")); err == nil || !strings.Contains(err.Error(), "timestamp") {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestALeaseTakenWithoutAutocommitIsCommitted(t *testing.T) {
	m := server.RunMariaDB(t)
	other, _ := database.MariaDB(m).Store(t)
	_, store := withoutAutocommit(t, m)
	e := take(t, store, "a")
	const ceiling = "SELECT ceiling FROM worker_lease WHERE owner = 'a'"
	if got := database.MustNumber(t, other, ceiling); got != e.Ceiling {
		t.Errorf("another session sees the ceiling %d, not %d", got, e.Ceiling)
	}
	renewed, err := store.Leases().Renew(t.Context(), claim("a"), e)
	if err != nil {
		t.Fatal(err)
	}
	if got := database.MustNumber(t, other, ceiling); got != renewed {
		t.Errorf("another session sees the ceiling %d, not %d", got, renewed)
	}
	if err := store.Leases().Return(t.Context(), claim("a"), e, e.NotBefore+1); err != nil {
		t.Fatal(err)
	}
	if held := database.MustNumber(t, other, "SELECT COUNT(*) FROM worker_lease WHERE owner IS NOT NULL"); held != 0 {
		t.Errorf("another session sees %d leases after the return", held)
	}
}

// hang begins to take a lease and stops: the free worker id
// 0 stays locked.
func hang(t *testing.T, db *sql.DB, store *sqlstore.Store) {
	t.Helper()
	e := take(t, store, "was here")
	if err := store.Leases().Return(t.Context(), claim("was here"), e, e.NotBefore); err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	if _, err := tx.Exec("UPDATE worker_lease SET generation = generation + 1 WHERE namespace = 'shop' AND worker_id = 0"); err != nil {
		t.Fatal(err)
	}
}

func TestManyStartsAtOnceDoNotQueueBehindAHungOne(t *testing.T) {
	database.OnEachServer(t, func(t *testing.T, open database.Opener) {
		db, store := open.Store(t)
		hang(t, db, store)
		ctx := testwait.Context(t) // who queues waits until it ends
		var mu sync.Mutex
		seen := map[int64]bool{}
		var wg sync.WaitGroup
		for i := range 15 {
			wg.Go(func() {
				e, err := store.Leases().Take(ctx, claim("owner"+strconv.Itoa(i)))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				seen[e.Worker] = true
			})
		}
		wg.Wait()
		if len(seen) != 15 || seen[0] {
			t.Errorf("15 starts got %v", seen)
		}
		// The 16th waits, and does not say that all are held.
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if e, err := store.Leases().Take(ctx, claim("late")); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, keygen.ErrNoWorker) {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

func TestNotBeforeIsNeverReadFromAnOldSnapshot(t *testing.T) {
	m := server.RunMariaDB(t)
	other, store := database.MariaDB(m).Store(t)
	e := take(t, store, "a")
	if err := store.Leases().Return(t.Context(), claim("a"), e, e.NotBefore); err != nil {
		t.Fatal(err)
	}
	// The one session of this pool has begun to look at the data of now.
	db, store := withoutAutocommit(t, m)
	db.SetMaxOpenConns(1)
	database.Exec(t, db, "SET SESSION tx_isolation = 'REPEATABLE-READ'")
	const query = "SELECT ceiling FROM worker_lease WHERE worker_id = 0"
	database.MustNumber(t, db, query)
	database.Exec(t, other, "UPDATE worker_lease SET ceiling = ceiling + 1, generation = 100 WHERE worker_id = 0")
	if old := database.MustNumber(t, db, query); old != e.NotBefore {
		t.Fatalf("the snapshot has the ceiling %d: this test proves nothing", old)
	}
	if next := take(t, store, "b"); next.Worker != 0 || next.Generation != 101 || next.NotBefore <= e.NotBefore {
		t.Errorf("%+v", next)
	}
}

func TestAUserWithTheDocumentedGrantsLeases(t *testing.T) {
	t.Run("MariaDB", func(t *testing.T) {
		m := server.RunMariaDB(t)
		admin, _ := database.MariaDB(m).Store(t)
		database.Exec(t, admin, "CREATE USER lessee")
		database.Exec(t, admin, "GRANT SELECT, INSERT, UPDATE ON app.worker_lease TO lessee")
		database.Exec(t, admin, "GRANT SELECT, INSERT, UPDATE ON app.worker_namespace TO lessee")
		leases(t, mariaDBAs(t, m, "lessee"))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		p := server.RunPostgres(t)
		database.Postgres(p).Store(t)
		leases(t, database.PostgresAs(t, p, "app", "lessee",
			"GRANT SELECT, INSERT, UPDATE ON worker_lease TO lessee",
			"GRANT SELECT, INSERT, UPDATE ON worker_namespace TO lessee"))
	})
}

// leases calls all methods of a ledger.
func leases(t *testing.T, db *sql.DB) {
	t.Helper()
	ledger := database.StoreOn(t, db).Leases()
	e, err := ledger.Take(t.Context(), claim("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Renew(t.Context(), claim("a"), e); err != nil {
		t.Error(err)
	}
	if err := ledger.Return(t.Context(), claim("a"), e, e.NotBefore); err != nil {
		t.Error(err)
	}
}

func mariaDBAs(t *testing.T, m *server.MariaDB, user string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", strings.Replace(m.DSN("app"), "root@", user+"@", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
