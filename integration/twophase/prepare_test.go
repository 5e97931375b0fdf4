// SPDX-License-Identifier: Apache-2.0

package twophase_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/twophase"
)

// PostgreSQL prepares no transaction that has done certain things.
func TestTheErrorOfAPartThatCannotBePreparedSaysWhatToDo(t *testing.T) {
	families(t, []sharding.TxMode{sharding.Atomic}, func(t *testing.T, f family) {
		for _, text := range []string{"NOTIFY births", "LISTEN births", "CREATE TEMP TABLE notes (id BIGINT)", "DECLARE c CURSOR WITH HOLD FOR SELECT 1"} {
			for first := range 2 { // 0 is at home, where the text is executed
				tx, err := f.routed.BeginTx(t.Context(), nil)
				must(t, err)
				database.Exec(t, tx, "INSERT INTO parents (user_id) VALUES ("+strconv.Itoa(first)+")")
				database.Exec(t, tx, text)
				database.Exec(t, tx, "INSERT INTO parents (user_id) VALUES ("+strconv.Itoa(1-first)+")")
				err = tx.Commit()
				if first == 0 {
					must(t, err)
				} else if !errors.Is(err, sharding.ErrCrossDatabase) || !strings.Contains(err.Error(), "begin the transaction on this database") {
					t.Errorf("%s: %v", text, err)
				}
				if n := f.rows(t, "parents"); n != []int64{2, 0}[first] {
					t.Errorf("%s: %d rows", text, n)
				}
				database.Exec(t, f.routed, "DELETE FROM parents WHERE user_id = 0")
				database.Exec(t, f.routed, "DELETE FROM parents WHERE user_id = 1")
				for _, text := range []string{"DISCARD TEMP", "CLOSE ALL", "UNLISTEN *"} {
					database.Exec(t, f.east, text)
				}
			}
		}
	})
}

// The text would prepare the part at home, where the program alone knows its name, and COMMIT would commit the others.
func TestATextDoesNotPrepareOnePartOfATransaction(t *testing.T) {
	families(t, []sharding.TxMode{sharding.BestEffort, sharding.Atomic}, func(t *testing.T, f family) {
		for first := range 2 {
			tx, err := f.routed.BeginTx(t.Context(), nil)
			must(t, err)
			database.Exec(t, tx, "INSERT INTO parents (user_id) VALUES ("+strconv.Itoa(first)+")")
			database.Exec(t, tx, "INSERT INTO parents (user_id) VALUES ("+strconv.Itoa(1-first)+")")
			_, err = tx.ExecContext(t.Context(), "/* mine */ prepare transaction 'mine'")
			_ = tx.Rollback() // that of lib/pq fails after the text
			if !errors.Is(err, sharding.ErrCrossDatabase) {
				t.Error(err)
				database.Exec(t, f.east, "ROLLBACK PREPARED 'mine'")
			}
			if n := f.rows(t, "parents") + database.MustNumber(t, f.east, "SELECT COUNT(*) FROM pg_prepared_xacts"); n != 0 {
				t.Errorf("%d rows and prepared transactions", n)
			}
		}
	})
}

// pgx begins a transaction of this level as REPEATABLE READ.
func TestAllPartsOfATransactionHaveItsIsolation(t *testing.T) {
	p := server.RunPostgres(t, "max_prepared_transactions=100")
	b := openBank(t, p, p)
	must(t, twophase.Create(t.Context(), b.router, nil))
	for _, level := range []sql.IsolationLevel{sql.LevelSnapshot, sql.LevelRepeatableRead, sql.LevelSerializable, sql.LevelReadUncommitted} {
		tx, err := b.routed.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
		must(t, err)
		var levels [2]string
		for user := range levels {
			if err := tx.QueryRowContext(t.Context(), "SELECT current_setting('transaction_isolation') FROM accounts WHERE user_id = $1", user).Scan(&levels[user]); err != nil {
				t.Errorf("%v: %v", level, err)
			}
		}
		if levels[0] != levels[1] {
			t.Errorf("%v is %v", level, levels)
		}
		must(t, tx.Commit())
	}
}

// A transaction that may not write can store no decision.
func TestTheErrorOfATransactionThatIsSetToReadOnlySaysWhatToDo(t *testing.T) {
	for _, mode := range []sharding.TxMode{sharding.BestEffort, sharding.Atomic} {
		families(t, []sharding.TxMode{mode}, func(t *testing.T, f family) {
			for user := range 2 {
				database.Exec(t, f.routed, "INSERT INTO parents (user_id) VALUES ("+strconv.Itoa(user)+")")
			}
			must(t, f.read(t, &sql.TxOptions{ReadOnly: true}))
			err := f.read(t, nil, "SET TRANSACTION READ ONLY")
			if mode == sharding.BestEffort {
				must(t, err)
			} else if !errors.Is(err, sharding.ErrCrossDatabase) || !strings.Contains(err.Error(), "ReadOnly: true") {
				t.Error(err)
			}
		})
	}
}

// read reads a row of each database in one transaction.
func (f family) read(t *testing.T, options *sql.TxOptions, settings ...string) error {
	t.Helper()
	tx, err := f.routed.BeginTx(t.Context(), options)
	must(t, err)
	for _, text := range settings {
		database.Exec(t, tx, text)
	}
	for user := range 2 {
		must(t, tx.QueryRowContext(t.Context(), "SELECT user_id FROM parents WHERE user_id = "+strconv.Itoa(user)).Scan(&user))
	}
	return tx.Commit()
}

// The COMMIT of a transaction one of whose databases is gone is no statement that failed.
func TestTheCommitAfterALostConnectionSaysThatNothingIsCommitted(t *testing.T) {
	p := server.RunPostgres(t, "max_prepared_transactions=100")
	admin := p.Open(t, "family_admin")
	for _, mode := range []sharding.TxMode{sharding.BestEffort, sharding.Atomic} {
		for _, kind := range []string{"pgx", "postgres"} {
			f := openFamily(t, p, kind, mode)
			for _, lost := range []string{"0", "1"} {
				tx, err := f.routed.BeginTx(t.Context(), nil)
				must(t, err)
				database.Exec(t, tx, "INSERT INTO parents (user_id) VALUES (0)")
				database.Exec(t, tx, "INSERT INTO parents (user_id) VALUES (1)")
				var pid int
				must(t, tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid() AS pid FROM parents WHERE user_id = "+lost).Scan(&pid))
				database.Exec(t, admin, "SELECT pg_terminate_backend("+strconv.Itoa(pid)+", 5000)")
				if err := tx.Commit(); err == nil || !strings.Contains(err.Error(), "nothing is committed") || strings.Contains(err.Error(), "SAVEPOINT") {
					t.Errorf("%v, %s: %v", mode, kind, err)
				}
				if n := f.rows(t, "parents"); n != 0 {
					t.Errorf("%d rows", n)
				}
			}
		}
	}
}

// GORM's dialect of PostgreSQL does not return the errors of SAVEPOINT and ROLLBACK TO, so that of the next statement is all that its
// program learns. The one that it has undone is not the cause.
func TestTheStatementAfterALostConnectionFailsWithItsError(t *testing.T) {
	p := server.RunPostgres(t, "max_prepared_transactions=100")
	admin := p.Open(t, "family_admin")
	f := openFamily(t, p, "pgx", sharding.SingleShard)
	for text, isUndone := range map[string]bool{"SAVEPOINT here": false, "ROLLBACK TO SAVEPOINT before": true} {
		tx, err := f.routed.BeginTx(t.Context(), nil)
		must(t, err)
		database.Exec(t, tx, "INSERT INTO parents (user_id) VALUES (0)")
		var pid int
		must(t, tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid() AS pid FROM parents WHERE user_id = 0").Scan(&pid))
		database.Exec(t, tx, "SAVEPOINT before")
		if isUndone {
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO parents (user_id) VALUES (0)"); !dialect.IsDuplicate(err) {
				t.Error(err)
			}
		}
		database.Exec(t, admin, "SELECT pg_terminate_backend("+strconv.Itoa(pid)+", 5000)")
		if _, err := tx.ExecContext(t.Context(), text); err == nil {
			t.Errorf("%s succeeds on a lost connection", text)
		}
		wantCause(t, tx, "57P01")
	}
}

// wantCause checks that statements and the COMMIT of a transaction whose connection is known to be lost fail with the error of that, also
// after an attempt to continue at a savepoint.
func wantCause(t *testing.T, tx *sql.Tx, state string) {
	t.Helper()
	var lost *pgconn.PgError
	for range 2 {
		if _, err := tx.ExecContext(t.Context(), "UPDATE parents SET user_id = 0 WHERE user_id = 0"); !errors.As(err, &lost) || lost.Code != state {
			t.Error(err)
		}
		if _, err := tx.ExecContext(t.Context(), "ROLLBACK TO SAVEPOINT before"); err == nil {
			t.Error("a transaction continues on a lost connection")
		}
	}
	if err := tx.Commit(); !errors.As(err, &lost) || lost.Code != state || errors.Is(err, driver.ErrBadConn) {
		t.Error(err)
	}
}

func TestTheStatementAfterATransactionWasIdleForTooLongFailsWithItsError(t *testing.T) {
	p := server.RunPostgres(t, "max_prepared_transactions=100")
	f := openFamily(t, p, "pgx", sharding.SingleShard)
	tx, err := f.routed.BeginTx(t.Context(), nil)
	must(t, err)
	database.Exec(t, tx, "INSERT INTO parents (user_id) VALUES (0)")
	database.Exec(t, tx, "SAVEPOINT before")
	database.Exec(t, tx, "SET LOCAL idle_in_transaction_session_timeout = 1")
	for err == nil {
		time.Sleep(10 * time.Millisecond)
		_, err = tx.ExecContext(t.Context(), "SAVEPOINT here")
	}
	wantCause(t, tx, "25P03")
}
