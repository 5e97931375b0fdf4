// SPDX-License-Identifier: Apache-2.0

package twophase_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/twophase"
)

func TestATransactionOverTwoDatabasesIsCommittedOrRolledBackOnBoth(t *testing.T) {
	serversOf(t, func(t *testing.T, a, z database.Server) {
		b := openBank(t, a, z)
		if err := b.transfer(t.Context(), 1, 0, 1); !errors.Is(err, sharding.ErrCrossDatabase) || !strings.Contains(err.Error(), "create it on every database with Create") {
			t.Errorf("without the table: %v", err)
		}
		must(t, twophase.Create(t.Context(), b.router, nil))
		must(t, twophase.Create(t.Context(), b.router, nil)) // again
		for id := range int64(10) {
			must(t, b.transfer(t.Context(), id+1, int(id)%users, int(id+1)%users))
		}
		if all := b.audit(t); len(all) != 10 || b.prepared(t) != 0 {
			t.Errorf("%v, %d prepared", all, b.prepared(t))
		}
		var decisions int
		must(t, b.east.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+twophase.Table+" WHERE state <> 'identity'").Scan(&decisions))
		if decisions != 0 {
			t.Errorf("%d decisions are left", decisions)
		}

		// A statement that fails on the second database, and the program that gives up.
		if err := b.transfer(t.Context(), 10, 0, 1); err == nil {
			t.Error("an id that is there")
		}
		tx, err := b.routed.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		must(t, err)
		for _, text := range []string{
			"UPDATE accounts SET balance = balance + 1 WHERE user_id = 0", "SAVEPOINT s", "UPDATE accounts SET balance = balance - 1 WHERE user_id = 1",
			"UPDATE accounts SET balance = balance + 9 WHERE user_id = 2", "ROLLBACK TO SAVEPOINT s", "UPDATE accounts SET balance = balance - 1 WHERE user_id = 3",
		} {
			if _, err := tx.ExecContext(t.Context(), text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		must(t, tx.Commit())
		tx, err = b.routed.BeginTx(t.Context(), nil)
		must(t, err)
		for _, user := range []string{"1", "0"} {
			_, err := tx.ExecContext(t.Context(), "UPDATE accounts SET balance = 99 WHERE user_id = "+user)
			must(t, err)
		}
		must(t, tx.Rollback())
		if all := b.audit(t); len(all) != 10 || b.prepared(t) != 0 {
			t.Errorf("%v, %d prepared", all, b.prepared(t))
		}
		if balance := b.balanceOf3(t); balance != -1+b.expected(3) {
			t.Errorf("user 3 has %d", balance)
		}

		// One statement for both is a transaction, too.
		if _, err := b.routed.ExecContext(t.Context(), "INSERT INTO journal (id, user_id) VALUES (77, 0), (77, 1)"); err != nil {
			t.Error(err)
		}
		if all := b.audit(t); all[77] != 3 {
			t.Errorf("%v", all)
		}
	})
}

func (b *bank) balanceOf3(t *testing.T) (n int) {
	t.Helper()
	must(t, b.west.QueryRowContext(t.Context(), "SELECT balance FROM accounts_1 WHERE user_id = 3").Scan(&n))
	return n
}

// expected is what ten transfers from n to n+1 have left to a user.
func (b *bank) expected(user int) (n int) {
	for id := range 10 {
		if id%users == user {
			n--
		}
		if (id+1)%users == user {
			n++
		}
	}
	return n
}

// Such a text goes to the home database.
func TestNoTextEndsATransactionOnOneOfItsDatabases(t *testing.T) {
	serversOf(t, func(t *testing.T, a, z database.Server) {
		b := openBank(t, a, z)
		must(t, twophase.Create(t.Context(), b.router, nil))
		texts := []string{"COMMIT", "rollback work", "/* now */ COMMIT AND CHAIN"}
		if b.server.Name() == "mysql" {
			texts = append(texts, "START TRANSACTION", "CREATE OR REPLACE VIEW v AS SELECT 1", "TRUNCATE TABLE notes")
		}
		database.Exec(t, b.east, "CREATE TABLE notes (id INT)")
		for id, text := range texts {
			for _, second := range []string{"0", "1"} {
				tx, err := b.routed.BeginTx(t.Context(), nil)
				must(t, err)
				database.Exec(t, tx, fmt.Sprintf("INSERT INTO journal (id, user_id) VALUES (%d, %d)", id, 1-second[0]+'0'))
				database.Exec(t, tx, fmt.Sprintf("INSERT INTO journal (id, user_id) VALUES (%d, %s)", id, second))
				if _, err := tx.ExecContext(t.Context(), text); !errors.Is(err, sharding.ErrCrossDatabase) {
					t.Errorf("%s: %v", text, err)
				}
				must(t, tx.Rollback())
			}
			tx, err := b.routed.BeginTx(t.Context(), nil)
			must(t, err)
			database.Exec(t, tx, "INSERT INTO notes VALUES (1)")
			database.Exec(t, tx, text)
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO journal (id, user_id) VALUES (1, 1)"); !errors.Is(err, sharding.ErrCrossDatabase) && !errors.Is(err, sharding.ErrSettings) {
				t.Errorf("another database after %s: %v", text, err)
			}
			must(t, tx.Rollback())
		}
		if b.server.Name() == "mysql" {
			tx, err := b.routed.BeginTx(t.Context(), nil)
			must(t, err)
			for _, text := range []string{"CREATE TEMPORARY TABLE chosen (id INT)", "INSERT INTO journal (id, user_id) VALUES (9, 0), (9, 1)", "ANALYZE SELECT 1"} {
				if _, err := tx.ExecContext(t.Context(), text); err != nil && !strings.HasPrefix(text, "ANALYZE") {
					t.Errorf("%s: %v", text, err)
				}
			}
			must(t, tx.Rollback())
		}
		if all := b.audit(t); len(all) != 0 || b.prepared(t) != 0 {
			t.Errorf("%v, %d prepared", all, b.prepared(t))
		}
	})
}

func TestABranchThatItsProgramHasLeftIsEndedAsWasDecided(t *testing.T) {
	serversOf(t, func(t *testing.T, a, z database.Server) {
		b := openBank(t, a, z)
		must(t, twophase.Create(t.Context(), b.router, nil))
		foreign := map[string][]string{
			"mysql":    {"XA START 'theirs'", "INSERT INTO journal_1 VALUES (5, 5)", "XA END 'theirs'", "XA PREPARE 'theirs'"},
			"postgres": {"BEGIN", "INSERT INTO journal_1 VALUES (5, 5)", "PREPARE TRANSACTION 'theirs'"},
		}[b.server.Name()]
		conn, err := b.west.Conn(t.Context())
		must(t, err)
		for _, text := range foreign {
			if _, err := conn.ExecContext(t.Context(), text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // which closes it

		// The first database does not take the decision: its table is locked away.
		database.Exec(t, b.east, "ALTER TABLE "+twophase.Table+" RENAME TO hidden")
		if err := b.transfer(t.Context(), 1, 0, 1); err == nil || errors.Is(err, sharding.ErrInDoubt) {
			t.Errorf("without a table for the decision: %v", err)
		}
		database.Exec(t, b.east, "ALTER TABLE hidden RENAME TO "+twophase.Table)
		report, err := b.resolver(t, time.Millisecond).Resolve(t.Context())
		if err != nil || report.Committed+report.InDoubt != 0 || b.prepared(t) != 1 {
			t.Errorf("%+v, %v, %d prepared", report, err, b.prepared(t))
		}
		if all := b.audit(t); len(all) != 0 {
			t.Errorf("%v", all)
		}
		end := map[string]string{"mysql": "XA ROLLBACK 'theirs'", "postgres": "ROLLBACK PREPARED 'theirs'"}[b.server.Name()]
		database.Exec(t, b.west, end)
	})
}

// A program whose COMMIT was not answered asks about the decision, however late: it may have been
// stopped, or have waited for the answer on a connection that nobody serves any more.
func TestTheDecisionIsKeptForAProgramThatMayAskAboutIt(t *testing.T) {
	serversOf(t, func(t *testing.T, a, z database.Server) {
		b := openBank(t, a, z)
		must(t, twophase.Create(t.Context(), b.router, nil))
		decisions := func() (n int) {
			must(t, b.east.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+twophase.Table+" WHERE state = 'committed'").Scan(&n))
			return n
		}
		for step := int64(1); decisions() == 0; step++ {
			b.settle(t)
			if !killedAt(t, a, z, 2*step, step, true) {
				t.Fatal("no step decides")
			}
		}
		database.Exec(t, b.east, "UPDATE "+twophase.Table+" SET decided = decided - 3600 WHERE state = 'committed'") // it was an hour ago
		if total := b.settle(t); total.Committed != 1 || total.Forgotten != 0 || decisions() != 1 {
			t.Errorf("%+v, and %d decisions", total, decisions())
		}
		database.Exec(t, b.east, "UPDATE "+twophase.Table+" SET decided = 1 WHERE state = 'committed'")
		if total := b.settle(t); total.Forgotten != 1 || decisions() != 0 {
			t.Errorf("when no program asks any more: %+v, and %d decisions", total, decisions())
		}
	})
}

// The program is killed when the second database has prepared, and the first one goes away.
func TestABranchWhoseDecidingDatabaseIsAwayIsInDoubtInTheMetrics(t *testing.T) {
	serversOf(t, func(t *testing.T, a, z database.Server) {
		b := openBank(t, a, z)
		must(t, twophase.Create(t.Context(), b.router, nil))
		r := b.resolver(t, time.Millisecond)
		service, err := observe.New(observe.Config{Transactions: r})
		must(t, err)
		shows := func(lines ...string) {
			t.Helper()
			var text strings.Builder
			must(t, observe.WriteText(&text, service.Gather()))
			for _, line := range lines {
				if !strings.Contains(text.String(), "\nshardid_transactions_"+line+"\n") {
					t.Errorf("no %s in\n%s", line, text.String())
				}
			}
		}
		_, err = r.Resolve(t.Context())
		must(t, err)
		shows("in_doubt 0", "resolver_up 1")
		for step := int64(1); b.prepared(t) == 0; step++ {
			killedAt(t, a, z, 2*step, step, true)
		}
		a.Kill()
		if _, err := r.Resolve(t.Context()); err == nil {
			t.Error("a database is away, and nothing is said")
		}
		shows("in_doubt 1", "resolver_up 0", `resolved_total{outcome="rolled_back"} 0`)
		must(t, a.Start(t.Context()))
		testwait.Until(t, "a look at all databases", func() bool { _, err := r.Resolve(t.Context()); return err == nil })
		shows("in_doubt 0", "resolver_up 1", `resolved_total{outcome="rolled_back"} 1`)
	})
}

// A server that is stopped, or whose network drops all packets, does not close connections. The branches of other servers hold locks
// there meanwhile.
func TestAServerThatDoesNotAnswerDoesNotKeepTheResolverFromTheOthers(t *testing.T) {
	serversOf(t, func(t *testing.T, a, z database.Server) {
		b := openBank(t, a, z)
		var stopped interface {
			database.Server
			Signal(tb testing.TB, s os.Signal)
		} = server.RunMariaDB(t)
		if b.server.Name() == "postgres" {
			stopped = server.RunPostgres(t, "max_prepared_transactions=100")
		}
		home := stopped.Open(t, "home")
		must(t, twophase.Create(t.Context(), b.router, home))
		r, err := twophase.New(twophase.Config{Router: b.router, Home: home, After: time.Millisecond})
		must(t, err)
		for step := int64(1); b.prepared(t) == 0; step++ {
			killedAt(t, a, z, 2*step, step, true)
		}
		home.SetMaxIdleConns(0) // a process of PostgreSQL that has a connection would answer
		stopped.Signal(t, syscall.SIGSTOP)
		t.Cleanup(func() { stopped.Signal(t, syscall.SIGCONT) })
		ctx, done := context.WithTimeout(t.Context(), time.Minute)
		defer done()
		if did, err := r.Resolve(ctx); err == nil || did.RolledBack != 1 || ctx.Err() != nil || b.prepared(t) != 0 {
			t.Errorf("%+v, %v, %d branches are left", did, err, b.prepared(t))
		}
	})
}

func TestServersThatCannotPrepareAreRefusedWithTheReason(t *testing.T) {
	p := server.RunPostgres(t, "max_prepared_transactions=0")
	b := openBank(t, p, p)
	if err := twophase.Create(t.Context(), b.router, nil); err == nil || !strings.Contains(err.Error(), "max_prepared_transactions is 0") {
		t.Error(err)
	}
	err := b.transfer(context.Background(), 1, 0, 1)
	if !errors.Is(err, sharding.ErrCrossDatabase) || !strings.Contains(err.Error(), "max_prepared_transactions is 0") {
		t.Error(err)
	}
	if all := b.journal(t); len(all) != 0 {
		t.Errorf("%v", all)
	}
}

func TestTheResolverNeedsNoRightsButThoseOfThePage(t *testing.T) {
	m := server.RunMySQL(t)
	b := openBank(t, m, m)
	must(t, twophase.Create(t.Context(), b.router, nil))
	page, err := os.ReadFile("../../docs/transactions.md")
	must(t, err)
	grant := regexp.MustCompile(`(?m)^GRANT .* TO resolver`).Find(page)
	if grant == nil {
		t.Fatal("the page names no right")
	}
	for _, text := range []string{"CREATE USER resolver", "GRANT SELECT, INSERT, DELETE ON bank_east.* TO resolver", "GRANT SELECT, INSERT, DELETE ON bank_west.* TO resolver"} {
		database.Exec(t, b.east, text)
	}
	limited, err := newBank(t.Context(), database.OpenAs(t, keepsData{m}, "resolver", "bank_east"), database.OpenAs(t, keepsData{m}, "resolver", "bank_west"))
	must(t, err)
	t.Cleanup(func() { must(t, limited.routed.Close()) })
	if _, err := limited.resolver(t, time.Millisecond).Resolve(t.Context()); err == nil || !strings.Contains(err.Error(), "list prepared transactions") {
		t.Errorf("without the right: %v", err)
	}
	database.Exec(t, b.east, string(grant))
	if _, err := limited.resolver(t, time.Millisecond).Resolve(t.Context()); err != nil {
		t.Error(err)
	}
}

// keepsData is a server whose databases are not made anew when they are opened.
type keepsData struct{ database.Server }

func (k keepsData) Open(testing.TB, string) *sql.DB { return nil }
