// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
)

// begins returns a transaction that has changed a row, and is rolled back when the test ends.
func begins(t *testing.T, on *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := on.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	if _, err := tx.ExecContext(t.Context(), "UPDATE orders SET note = 'open' WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	return tx
}

// A server says when a transaction began in the time zone of its machine.
func TestATransactionHasTheSameAgeInAllTimeZones(t *testing.T) {
	t.Setenv(server.ZoneVar, "UTC-8")
	for name, start := range map[string]func() database.Server{
		"MariaDB": func() database.Server { return server.RunMariaDB(t) },
		"MySQL":   func() database.Server { return server.RunMySQL(t) },
	} {
		s := newMigrationShop(t, start(), server.RunMariaDB(t))
		s.fill(t, 5)
		begins(t, s.source)
		var st migrate.Status
		for st.Oldest == nil { // MariaDB's view may be a tenth of a second old
			var err error
			if st, err = s.job(t, "id").Status(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if st.Oldest.Seconds < 0 || st.Oldest.Seconds > 60 {
			t.Errorf("%s: a new transaction has been open for %d seconds", name, st.Oldest.Seconds)
		}
	}
}

// MySQL does not list transactions while one of their statements has bytes that are not UTF-8, such as an encrypted value
// that a driver has written into the text.
func TestAStatementWithBytesHidesTransactionsAndStopsNoCommand(t *testing.T) {
	s := newMigrationShop(t, server.RunMySQL(t), server.RunMariaDB(t))
	s.fill(t, 5)
	tx := begins(t, s.source)
	ended := make(chan error, 1)
	go func() {
		_, err := tx.ExecContext(t.Context(), "DO SLEEP(5), '\xff\xfe and a text of some length'")
		ended <- err
	}()
	job := s.job(t, "id")
	for {
		st, err := job.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if st.OldestUnknown != "" {
			if !strings.Contains(st.OldestUnknown, "again") {
				t.Errorf("%q does not say what to do", st.OldestUnknown)
			}
			break
		}
		select {
		case err := <-ended:
			t.Fatal("no status says that transactions are unknown; the statement ended with", err)
		default:
		}
	}
	found, err := job.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wants := false
	for _, f := range found {
		wants = wants || f.Code == migrate.LongTransactions && f.Severity == migrate.Warn
	}
	if !wants {
		t.Errorf("no finding says that transactions are unknown: %v", found)
	}
}
