package integration_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/sqlstore"
)

func TestAServerThatTakesNoChangesIsFoundAtTheStart(t *testing.T) {
	t.Run("MySQL", func(t *testing.T) {
		open := mySQL(server.RunMySQL(t))
		db, _ := open.store(t)
		store := storeOn(t, open(t))
		mustExec(t, db, "SET GLOBAL super_read_only = ON")
		mustFindReadOnly(t, store)
	})
	t.Run("MySQL, by transaction_read_only", func(t *testing.T) {
		m := server.RunMySQL(t)
		mySQL(m).store(t)
		db := laxPool(t, m.DSN("app"), false)
		db.SetMaxOpenConns(1)
		mustExec(t, db, "SET SESSION transaction_read_only = ON")
		mustFindReadOnly(t, storeOn(t, db))
	})
	t.Run("MariaDB", func(t *testing.T) {
		m := server.RunMariaDB(t)
		db, _ := mariaDB(m).store(t)
		mustExec(t, db, "CREATE USER reader")
		mustExec(t, db, "GRANT SELECT, INSERT, UPDATE ON app.* TO reader")
		mustExec(t, db, "SET GLOBAL read_only = ON")
		mustFindReadOnly(t, storeOn(t, mariaDBAs(t, m, "reader")))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		open := postgres(server.RunPostgres(t))
		db, _ := open.store(t)
		mustExec(t, db, "ALTER DATABASE app SET default_transaction_read_only = on")
		mustFindReadOnly(t, storeOn(t, open(t)))
	})
}

// mustFindReadOnly wants a start to fail at once, by each way to take something.
func mustFindReadOnly(t *testing.T, store *sqlstore.Store) {
	t.Helper()
	tries, err := openFailing(t, store)
	_, guarded := store.GuardedTag("orders").Reserve(t.Context(), 1)
	_, node := store.WorkerNode("host", "1").Acquire(t.Context(), keygen.Disposable())
	for name, err := range map[string]error{"segment": err, "guarded": guarded, "worker node": node} {
		var setup *keygen.SetupError
		if !errors.As(err, &setup) || !strings.Contains(err.Error(), "connect to the primary") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if tries != 1 {
		t.Errorf("it was asked %d times", tries)
	}
}

// In a fail-over the old primary is set read-only before the new one is reached.
func TestAServerThatTakesNoChangesForAWhileEndsNoGeneratorThatRuns(t *testing.T) {
	db, store := mySQL(server.RunMySQL(t)).store(t)
	failed := make(chan error, 100)
	g, err := segment.New(t.Context(), segment.Config{Source: store.Tag("orders"), Step: 1, Observer: segment.Observer{
		Refill: func(_ keygen.Span, _ time.Duration, err error) {
			if err != nil {
				failed <- err
			}
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	mustExec(t, db, "SET GLOBAL super_read_only = ON")
	if err := drain(t, g, db, failed); err != nil {
		t.Errorf("the generator that runs failed: %v", err)
	}
}

// drain takes ids until reservations have failed, lets the server take changes again,
// and takes another one.
func drain(t *testing.T, g *segment.Generator, db *sql.DB, failed <-chan error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		for range 4 { // two segments of one id are in memory
			if _, err := g.Next(t.Context()); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for range 2 {
		if err := <-failed; !strings.Contains(err.Error(), "read-only") {
			return err
		}
	}
	mustExec(t, db, "SET GLOBAL super_read_only = OFF")
	return <-done
}
