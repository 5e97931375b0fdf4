// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/ticket"
)

// narrowTickets makes a table of tickets whose counter is shortly before the end of
// its column, and returns it as two processes have it.
func narrowTickets(t *testing.T, db *sql.DB, dsn, column string, next int64) (a, b keygen.Source) {
	t.Helper()
	database.Exec(t, db, "DROP TABLE IF EXISTS Tickets64")
	database.Exec(t, db, strings.Replace(tickets64, "BIGINT UNSIGNED", column, 1))
	database.Exec(t, db, fmt.Sprintf("ALTER TABLE Tickets64 AUTO_INCREMENT = %d", next))
	return appTickets(t, laxPool(t, dsn, false)), appTickets(t, laxPool(t, dsn, false))
}

func TestTicketsOfANarrowColumnEndWithItAndNeverComeTwice(t *testing.T) {
	onMySQLAndMariaDB(t, func(t *testing.T, db *sql.DB, dsn string) {
		for column, end := range map[string]int64{"SMALLINT": 1<<15 - 1, "INT": 1<<31 - 1, "INT UNSIGNED": 1<<32 - 1} {
			for _, step := range []int64{1, 100} {
				t.Run(fmt.Sprintf("%s, %d at a time", column, step), func(t *testing.T) {
					a, b := narrowTickets(t, db, dsn, column, end-1050)
					given, twice, err := repeated(t, a, b, step)
					if given < 1000 || given > 1050 || twice != 0 || !errors.Is(err, keygen.ErrExhausted) {
						t.Errorf("%d ids given, %d of them twice, then %v", given, twice, err)
					}
				})
			}
		}
	})
}

// DOUBLE skips numbers beyond 53 bits. MyISAM may lose confirmed writes.
func TestATableThatCannotCountTicketsIsRefusedAtStart(t *testing.T) {
	onMySQLAndMariaDB(t, func(t *testing.T, db *sql.DB, dsn string) {
		for change, words := range map[string][]string{"MODIFY id DOUBLE NOT NULL": {"id", "bigint"}, "ENGINE = MyISAM": {"MyISAM", "InnoDB"}} {
			narrowTickets(t, db, dsn, "BIGINT", 1)
			database.Exec(t, db, "ALTER TABLE Tickets64 "+change)
			_, err := ticket.New(t.Context(), ticket.Config{Servers: []ticket.Server{appTickets(t, laxPool(t, dsn, false))}})
			mustBeSetup(t, err, words...)
		}
	})
}

// A ceiling that is cut leaves a worker id to the next process at once.
func TestLeaseTablesThatWouldCutNumbersAreRefusedAtStart(t *testing.T) {
	for table, columns := range map[string][]string{
		"worker_lease":     {"worker_id", "era", "generation", "ceiling"},
		"worker_namespace": {"epoch_us", "unit_ns", "longest_us", "safe_from_us"},
	} {
		onMySQLAndMariaDB(t, func(t *testing.T, db *sql.DB, dsn string) {
			store := func() keygen.Assigner { return shortLeases(t, database.StoreOn(t, laxPool(t, dsn, true))) }
			database.Exec(t, db, "DELETE FROM worker_namespace") // what a number of schema.Apply's would not fit in
			for _, column := range columns {
				database.Exec(t, db, fmt.Sprintf("ALTER TABLE %s MODIFY %s INT NOT NULL", table, column))
				mustRefuseLeases(t, store, table+"."+column, "bigint")
				database.Exec(t, db, fmt.Sprintf("ALTER TABLE %s MODIFY %s BIGINT NOT NULL", table, column))
			}
			database.Exec(t, db, "ALTER TABLE "+table+" ENGINE = MyISAM")
			mustRefuseLeases(t, store, table, "InnoDB")
		})
	}
	t.Run("PostgreSQL", func(t *testing.T) {
		open := database.Postgres(server.RunPostgres(t))
		db, _ := open.Store(t)
		database.Exec(t, db, "ALTER TABLE worker_lease ALTER ceiling TYPE integer")
		mustRefuseLeases(t, func() keygen.Assigner { return shortLeases(t, database.StoreOn(t, open(t))) }, "worker_lease.ceiling", "bigint")
	})
}

func TestAWorkerNodeTableThatForgetsIsRefused(t *testing.T) {
	onMySQLAndMariaDB(t, func(t *testing.T, db *sql.DB, _ string) {
		database.Exec(t, db, "ALTER TABLE WORKER_NODE ENGINE = MyISAM")
		_, err := database.StoreOn(t, db).WorkerNode("host", "1").Acquire(t.Context(), keygen.Disposable())
		mustBeSetup(t, err, "WORKER_NODE", "InnoDB")
	})
}

// mustRefuseLeases requires that two processes are refused, which would get the same worker
// id otherwise.
func mustRefuseLeases(t *testing.T, open func() keygen.Assigner, words ...string) {
	t.Helper()
	for range 2 {
		lease, err := open().Acquire(t.Context(), keygen.Twitter())
		if err == nil {
			t.Errorf("worker id %d was leased from %d", lease.ID(), lease.NotBefore())
		}
		mustBeSetup(t, err, words...)
	}
}

// mustBeSetup requires a SetupError that contains words.
func mustBeSetup(t *testing.T, err error, words ...string) {
	t.Helper()
	if !errors.As(err, new(*keygen.SetupError)) {
		t.Errorf("%v", err)
		return
	}
	for _, word := range words {
		if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(word)) {
			t.Errorf("%v does not say %q", err, word)
		}
	}
}
