// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/schema/migrate"
)

// isolations are those under which transactions of applications run.
var isolations = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

// openEntries writes to every hundredth row in a transaction that stays open, and to
// the rows between them outside of it, in turns, so that entries that nobody has
// committed lie among and behind those that are to be deleted. It returns what ends the
// transaction.
func (s *migrationShop) openEntries(t *testing.T, db *sql.DB, table string, level sql.IsolationLevel, rows int) (commit func()) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
	if err != nil {
		t.Fatal(err)
	}
	write := func(from int, exec func(context.Context, string, ...any) (sql.Result, error)) {
		t.Helper()
		for _, statement := range []string{"UPDATE %s SET note = CONCAT(note, '+') WHERE id = %d", "DELETE FROM %s WHERE id = %d + 4", s.speaks.again} {
			if _, err := exec(t.Context(), fmt.Sprintf(statement, table, from)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for id := 4; id < rows; id += 100 {
		write(id, tx.ExecContext)
		write(id+40, db.ExecContext)
	}
	write(rows+4, tx.ExecContext)
	return func() {
		t.Helper()
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

// longestWait is the longest that any statement has waited for another one's row.
func longestWait(t *testing.T, db *sql.DB) time.Duration {
	t.Helper()
	var name string
	var ms int64
	if err := db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_time_max'").Scan(&name, &ms); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ms) * time.Millisecond
}

// beside fails unless a call ends while transactions are open. A runner
// gives up waiting for a row after 10 seconds, and retries.
func (s *migrationShop) beside(t *testing.T, what string, call func(context.Context) error) {
	t.Helper()
	if err := call(t.Context()); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if s.speaks == postgresShop { // which counts no waits; a runner's lock_timeout ends one with an error
		return
	}
	if longest := longestWait(t, s.source); longest > 9*time.Second {
		t.Errorf("%s: something has waited %s for a row", what, longest)
	}
}

// touch changes rows one by one, as a statement about many may look at others, too.
func touch(t *testing.T, db *sql.DB, table string, ids ...int) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if _, err := tx.ExecContext(t.Context(), fmt.Sprintf("UPDATE %s SET total = total + 1 WHERE id = %d", table, id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// between are so many ids, none of which openEntries writes to.
func between(n int) (ids []int) {
	for id := 1; len(ids) < n; id++ {
		if id%4 == 2 {
			ids = append(ids, id)
		}
	}
	return ids
}

// mustGiveUp fails unless the switch, for which the transaction keeps the tables, was
// given up.
func mustGiveUp(t *testing.T, what string, err error) {
	t.Helper()
	if pause := (*migrate.PauseError)(nil); !errors.As(err, &pause) {
		t.Errorf("%s: %v", what, err)
	}
}

func TestNoRunWaitsForAnUncommittedRow(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		for _, level := range isolations {
			database.Exec(t, s.source, "DELETE FROM orders")
			s.fill(t, 1000)
			stored, goOn := make(chan struct{}), make(chan struct{})
			var once sync.Once
			j := s.job(t, "id", func(c *migrate.Config) {
				c.Observe = func(at migrate.Step) {
					if at.Name == migrate.StepStored {
						once.Do(func() { close(stored) })
						<-goOn // the rest is copied beside the transaction
					}
				}
			})
			copied := make(chan error, 1)
			go func() { copied <- j.Run(t.Context()) }()
			<-stored
			commit := s.openEntries(t, s.source, "orders", level, 1000)
			close(goOn)
			s.beside(t, level.String()+", copy", func(context.Context) error { return <-copied })
			for _, rows := range []int{3, 200} { // a log of few entries, and one of many
				touch(t, s.source, "orders", between(rows)...)
				s.beside(t, level.String()+", follow", j.Run)
			}
			_, err := j.Cutover(t.Context(), 200*time.Millisecond)
			mustGiveUp(t, level.String(), err)
			commit()
			s.beside(t, level.String()+", after the transaction", j.Run)
			if _, err := j.Cutover(t.Context(), longPause); err != nil {
				t.Fatal(err)
			}
			commit = s.openEntries(t, s.shards["a"], "orders_00", level, 1000)
			touch(t, s.shards["a"], "orders_02", between(200)...)
			s.beside(t, level.String()+", follow back", j.Run)
			_, err = j.Rollback(t.Context(), 200*time.Millisecond)
			mustGiveUp(t, level.String(), err)
			commit()
			if _, err := j.Rollback(t.Context(), longPause); err != nil {
				t.Fatal(err)
			}
			s.compare(t, "id", "orders", "_sealed")
			if err := j.Abort(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// deletions are the statements by which logs were emptied, as the server got them.
func deletions(t *testing.T, db *sql.DB, log string, do func()) []string {
	t.Helper()
	for _, statement := range []string{"SET GLOBAL log_output = 'TABLE'", "TRUNCATE TABLE mysql.general_log", "SET GLOBAL general_log = ON"} {
		database.Exec(t, db, statement)
	}
	do()
	database.Exec(t, db, "SET GLOBAL general_log = OFF")
	return database.Texts(t, db, "SELECT DISTINCT CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE argument LIKE 'DELETE%"+log+"%'")
}

// accessTo returns the access type and the key with which a statement reads a table.
func accessTo(t *testing.T, db *sql.DB, table, statement string) string {
	t.Helper()
	explain := "EXPLAIN FORMAT=TRADITIONAL "
	if isMariaDB(t, db) {
		explain = "EXPLAIN "
	}
	rows, err := db.QueryContext(t.Context(), explain+statement)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	found := ""
	for rows.Next() {
		values, to := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		column := func(name string) string { return values[slices.Index(columns, name)].String }
		if column("table") == table {
			found = column("type") + " " + column("key")
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEntriesAreDeletedByTheirNumbersWhateverElseTheLogHas(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 4000)
		j := s.job(t, "id")
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, rows := range []int{1, 3, 100, 1000} {
			commit := s.openEntries(t, s.source, "orders", sql.LevelRepeatableRead, 112)
			statements := deletions(t, s.source, "shardid_log_orders", func() {
				touch(t, s.source, "orders", between(rows)...)
				s.beside(t, strconv.Itoa(rows), j.Run)
			})
			if len(statements) == 0 {
				t.Fatal("no entry was deleted")
			}
			for _, statement := range statements {
				if access := accessTo(t, s.source, "shardid_log_orders", statement); access != "eq_ref PRIMARY" && access != "const PRIMARY" {
					t.Errorf("%d rows: the log is read by %q in %.100s", rows, access, statement)
				}
			}
			commit()
			if err := j.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// transactionLengths are how long a transaction stays open. A runner gives up waiting
// for a row after 10 seconds, and ends after a minute; but it must not wait at all,
// which a moment shows, too.
func transactionLengths() []time.Duration {
	if effort.Soak() {
		return []time.Duration{30 * time.Second, 5 * time.Minute}
	}
	return []time.Duration{time.Second}
}

// keepsFollowing fails unless a runner deletes entries again and again while a
// transaction is open, for so long.
func (s *migrationShop) keepsFollowing(t *testing.T, length time.Duration, change func()) {
	t.Helper()
	acked := make(chan struct{}, 1)
	j := s.job(t, "id", func(c *migrate.Config) {
		c.Observe = func(at migrate.Step) {
			if at.Name == migrate.StepAcked {
				select {
				case acked <- struct{}{}:
				default: // nobody has taken note of the one before
				}
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	followed := make(chan error, 1)
	go func() { followed <- j.Follow(ctx) }()
	for until := time.Now().Add(length); time.Now().Before(until); {
		change()
		select {
		case <-acked:
		case err := <-followed:
			t.Fatalf("the runner ended: %v", err)
		}
	}
	cancel()
	if err := <-followed; err != nil {
		t.Error(err)
	}
}

func TestARunnerFollowsForAsLongAsATransactionLasts(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 1000)
		j := s.job(t, "id")
		for _, length := range transactionLengths() {
			if err := j.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			commit := s.openEntries(t, s.source, "orders", sql.LevelRepeatableRead, 1000)
			s.keepsFollowing(t, length, func() { touch(t, s.source, "orders", between(20)...) })
			_, err := j.Cutover(t.Context(), 200*time.Millisecond)
			mustGiveUp(t, length.String(), err)
			commit()
			if _, err := j.Cutover(t.Context(), longPause); err != nil {
				t.Fatal(err)
			}
			commit = s.openEntries(t, s.shards["a"], "orders_00", sql.LevelRepeatableRead, 1000)
			s.keepsFollowing(t, length, func() { touch(t, s.shards["a"], "orders_02", between(20)...) })
			_, err = j.Rollback(t.Context(), 200*time.Millisecond)
			mustGiveUp(t, length.String(), err)
			commit()
			if _, err := j.Rollback(t.Context(), longPause); err != nil {
				t.Fatal(err)
			}
			s.compare(t, "id", "orders", "_sealed")
		}
	})
}

// While a statement waits to change a table's definition, no other statement can begin to use
// the table.
func TestAnAbortBesideALongTransactionBlocksNoWriterForLong(t *testing.T) {
	onShops(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 100)
		j := s.job(t, "id")
		if err := j.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		commit := s.openEntries(t, s.source, "orders", sql.LevelRepeatableRead, 100)
		aborted := make(chan error, 1)
		go func() { aborted <- j.Abort(t.Context()) }()
		for len(database.Texts(t, s.source, s.speaks.dropping)) == 0 {
			continue
		}
		began := time.Now()
		touch(t, s.source, "orders", 2)
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("a writer has waited %s", took)
		}
		commit()
		if err := <-aborted; err != nil {
			t.Fatal(err)
		}
	})
}
