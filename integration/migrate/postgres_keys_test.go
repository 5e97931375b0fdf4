// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// ledger is invoices by customer, and lines that lie where their invoices do.
type ledger struct {
	source *sql.DB
	shards sharding.DBs
	cfg    migrate.Config
}

func newLedger(t *testing.T, more ...string) *ledger {
	t.Helper()
	return newLedgerOn(t, server.SharePostgres(t), more...)
}

func newLedgerOn(t *testing.T, p database.DSNOpener, more ...string) *ledger {
	t.Helper()
	l := &ledger{source: p.Open(t, "ledger"), shards: sharding.DBs{"a": p.Open(t, "ledger_a"), "b": p.Open(t, "ledger_b")}}
	for _, statement := range append([]string{
		"CREATE TABLE customers (id int PRIMARY KEY)",
		"CREATE TABLE invoices (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer int NOT NULL, note text NOT NULL DEFAULT '', CONSTRAINT of_customer FOREIGN KEY (customer) REFERENCES customers (id) ON UPDATE CASCADE ON DELETE CASCADE)",
		"CREATE TABLE lines (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, invoice int NOT NULL, CONSTRAINT of_invoice FOREIGN KEY (invoice) REFERENCES invoices (id) ON DELETE CASCADE ON UPDATE CASCADE DEFERRABLE)",
		"INSERT INTO customers SELECT generate_series(1, 40)", "INSERT INTO invoices (customer) SELECT generate_series(1, 40)", "INSERT INTO lines (invoice) SELECT 1 + n % 40 FROM generate_series(0, 119) n",
	}, more...) {
		database.Exec(t, l.source, statement)
	}
	l.cfg = migrate.Config{Name: "ledger", Source: l.source, Shards: l.shards, ChunkRows: 7}
	for _, table := range []migrate.Table{{Table: sharding.Table{Name: "invoices"}}, {Table: sharding.Table{Name: "lines"}, Via: "invoice"}} {
		m, err := sharding.Spread([]string{"a", "b"}, 4, table.Name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		table.Key, table.Rule, table.Map = "customer", sharding.Low(2), m
		l.cfg.Tables = append(l.cfg.Tables, table)
	}
	return l
}

func (l *ledger) job(t *testing.T, change ...func(*migrate.Config)) *migrate.Job {
	t.Helper()
	cfg := l.cfg
	for _, c := range change {
		c(&cfg)
	}
	j, err := migrate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (l *ledger) run(t *testing.T) {
	t.Helper()
	if err := l.job(t).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// compare fails unless each invoice and its lines are on the shard of the customer, and
// nothing else is on any.
func (l *ledger) compare(t *testing.T, when, suffix, sealed string) {
	t.Helper()
	for table, route := range map[string]string{
		"invoices": "SELECT customer & 3, id, customer, note FROM invoices%[1]s",
		"lines":    "SELECT i.customer & 3, l.id, l.invoice FROM lines%[1]s l JOIN invoices%[1]s i ON i.id = l.invoice",
	} {
		want := database.Texts(t, l.source, "SELECT x::text FROM ("+fmt.Sprintf(route, suffix)+") x")
		var got []string
		for slot := range 4 {
			columns := map[string]string{"invoices": "id, customer, note", "lines": "id, invoice"}[table]
			got = append(got, database.Texts(t, l.shards[[]string{"a", "b"}[slot%2]], fmt.Sprintf("SELECT x::text FROM (SELECT %[1]d, %[2]s FROM %[3]s_%[1]d%[4]s) x", slot, columns, table, sealed))...)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) || len(want) == 0 {
			t.Errorf("%s: %s: the source has %d rows, the shards %d", when, table, len(want), len(got))
			reportMissing(t, "only on the source", want, got)
			reportMissing(t, "only on a shard", got, want)
		}
	}
}

// A trigger of the transaction that moves an invoice sees neither a line that is not
// committed yet nor, in REPEATABLE READ, one that came later than it began.
func TestLinesFollowTheirInvoiceInEveryIsolation(t *testing.T) {
	l := newLedger(t)
	l.run(t)
	for i, isolation := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		moving, err := l.source.BeginTx(t.Context(), &sql.TxOptions{Isolation: isolation})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := moving.ExecContext(t.Context(), "SELECT 1 FROM invoices LIMIT 1"); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, l.source, fmt.Sprintf("INSERT INTO lines (invoice) VALUES (%d)", 1+i))
		adding, err := l.source.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := adding.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO lines (invoice) VALUES (%d)", 1+i)); err != nil {
			t.Fatal(err)
		}
		if _, err := moving.ExecContext(t.Context(), fmt.Sprintf("UPDATE invoices SET customer = customer + 1 WHERE id = %d", 1+i)); err != nil {
			t.Fatal(err)
		}
		if err := adding.Commit(); err != nil {
			t.Fatal(err)
		}
		l.run(t) // which brings the lines to where the invoice is still
		if err := moving.Commit(); err != nil {
			t.Fatal(err)
		}
		l.run(t)
		l.compare(t, fmt.Sprint(isolation), "", "")
	}
	database.Exec(t, l.source, "UPDATE invoices SET id = DEFAULT, customer = 11 WHERE id = 10; UPDATE invoices SET customer = 33 WHERE customer = 20; DELETE FROM customers WHERE id = 21; UPDATE customers SET id = 71 WHERE id = 22")
	database.Exec(t, l.source, "ALTER TABLE lines DROP CONSTRAINT of_invoice, ADD CONSTRAINT of_invoice FOREIGN KEY (invoice) REFERENCES invoices (id) DEFERRABLE INITIALLY DEFERRED")
	database.Exec(t, l.source, "BEGIN; DELETE FROM invoices WHERE id = 9; INSERT INTO invoices (id, customer) OVERRIDING SYSTEM VALUE VALUES (9, 10); COMMIT")
	l.run(t)
	l.compare(t, "after changes at the end of a transaction", "", "")
	if v, err := l.job(t).Verify(t.Context()); err != nil || !v.Clean() {
		t.Errorf("%+v, %v", v, err)
	}
}

// Without the look below, this finds the lines on the invoice's former shard for settled.
func TestVerifyWaitsForLinesWhoseInvoiceHasMoved(t *testing.T) {
	l := newLedger(t)
	l.run(t)
	database.Exec(t, l.source, "UPDATE invoices SET customer = customer + 1 WHERE id <= 5")
	v, err := l.job(t).Verify(t.Context()) // and no runner
	if err != nil || v.Requeued > 0 || v.Unsettled != 20 {
		t.Errorf("%+v, %v", v, err)
	}
	l.run(t)
	l.compare(t, "after a run", "", "")
}

func TestWhatKeysCarryInFromTablesThatStayIsFollowedAndThenRefused(t *testing.T) {
	l := newLedger(t)
	found, err := l.job(t).Inspect(t.Context())
	if err != nil || migrate.Blocked(found) || !slices.ContainsFunc(found, func(f migrate.Finding) bool {
		return f.Code == migrate.Cascades && f.Severity == migrate.Warn && strings.Contains(f.Message, "(customer) refers to the table customers")
	}) {
		t.Errorf("%+v, %v", found, err)
	}
	l.run(t)
	database.Exec(t, l.source, "DELETE FROM customers WHERE id = 7")
	database.Exec(t, l.source, "UPDATE customers SET id = 77 WHERE id = 8")
	l.run(t)
	l.compare(t, "before the switch", "", "")

	// This one waits for the tables until the switch is over: it goes by their numbers.
	late := make(chan error, 1)
	_, err = l.job(t, func(c *migrate.Config) {
		c.Ready = func(context.Context, map[string]int64) error {
			go func() {
				_, err := l.source.ExecContext(t.Context(), "DELETE FROM customers WHERE id = 9")
				late <- err
			}()
			testwait.Until(t, "the statement waits for the lock", func() bool {
				return database.MustNumber(t, l.source, "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query = 'DELETE FROM customers WHERE id = 9'") > 0
			})
			return nil
		}
	}).Cutover(t.Context(), longPause)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{<-late, func() error {
		_, err := l.source.ExecContext(t.Context(), "UPDATE customers SET id = 90 WHERE id = 10")
		return err
	}()} {
		if err == nil || !strings.Contains(err.Error(), "moved to shards") {
			t.Errorf("after the switch: %v", err)
		}
	}
	l.compare(t, "after the switch", "_old", "")
	database.Exec(t, l.shards["b"], "DELETE FROM lines_1 WHERE invoice IN (SELECT id FROM invoices_1 WHERE customer = 9); DELETE FROM invoices_1 WHERE customer = 9")
	l.run(t)
	database.Exec(t, l.source, "DELETE FROM customers WHERE id = 9") // as no retired row refers to it any more
	if _, err := l.job(t).Rollback(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	database.Exec(t, l.source, "DELETE FROM customers WHERE id = 12")
	l.run(t)
	l.compare(t, "after the way back", "", "_sealed")
}

func TestKeysOfPostgresFromOutsideAreDroppedAndMadeAgain(t *testing.T) {
	l := newLedger(t, `CREATE SCHEMA "Other Place"`, `CREATE TABLE "Other Place".reminders (id int PRIMARY KEY, inv int, CONSTRAINT "the invoice" FOREIGN KEY (inv) REFERENCES invoices (id) ON DELETE SET NULL (inv) DEFERRABLE INITIALLY DEFERRED)`,
		"CREATE TABLE shipped (day date, line int REFERENCES lines MATCH FULL) PARTITION BY RANGE (day)", "CREATE TABLE shipped_2026 PARTITION OF shipped FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')")
	definitions := func() []string {
		return database.Texts(t, l.source, "SELECT conrelid::regclass || conname || pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f' ORDER BY 1")
	}
	before := definitions()
	plan, err := l.job(t).Plan(t.Context())
	if err != nil || len(plan.Before) != 2 || len(plan.AfterAbort) != 2 {
		t.Fatalf("%+v, %v", plan, err)
	}
	if err := l.job(t).Run(t.Context()); !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "reminders has a foreign key to invoices") {
		t.Errorf("with the keys: %v", err)
	}
	found, err := l.job(t).Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range plan.Before {
		if !slices.ContainsFunc(found, func(f migrate.Finding) bool {
			return f.Severity == migrate.Block && strings.Contains(f.Fix, statement.SQL)
		}) {
			t.Errorf("Inspect lacks %s", statement.SQL)
		}
		database.Exec(t, l.source, statement.SQL)
	}
	l.run(t)
	l.compare(t, "without the keys", "", "")
	if err := l.job(t).Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, statement := range plan.AfterAbort {
		database.Exec(t, l.source, statement.SQL)
	}
	if after := definitions(); !slices.Equal(before, after) {
		t.Errorf("before %q, after %q", before, after)
	}
}

// ledgerVerbs are the steps of the runbook, with their exit codes.
var ledgerVerbs = []struct {
	verb string
	code int
}{
	{"inspect", 0}, {"plan", 0}, {"install", 0}, {"seed --margin 1000", 0}, {"run --once", 0}, {"verify", 0}, {"status", 0}, {"cutover --max-pause 1m", 0},
	{"verify", 0}, {"run --once", 0}, {"rollback --max-pause 1m", 0}, {"run --once", 0}, {"verify", 0}, {"seed --margin 2000", 0}, {"cutover --max-pause 1m", 0},
	{"rollback --max-pause 1m", 0}, {"seed --margin 1", 0}, {"run --once", 0}, {"cutover --max-pause 1m", 0}, {"finalize --yes", 0}, {"abort --yes", 6},
}

func TestTheStepsOfTheRunbookRunOnPostgres(t *testing.T) {
	p := server.RunPostgres(t)
	l := newLedgerOn(t, p)
	dir := t.TempDir()
	program := server.Command(t)
	layout := `{"databases": {"a": {"env": "LEDGER_A"}, "b": {"env": "LEDGER_B"}}, "tables": [
		{"name": "invoices", "key": "customer", "rule": "low(2)", "group": "ledger", "spread": {"databases": ["a", "b"], "tables": 4, "pattern": "invoices_%d"}},
		{"name": "lines", "key": "customer", "via": "invoice", "rule": "low(2)", "group": "ledger", "spread": {"databases": ["a", "b"], "tables": 4, "pattern": "lines_%d"}}]}`
	if err := os.WriteFile(filepath.Join(dir, "shards.json"), []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range ledgerVerbs {
		args := strings.Fields(step.verb)
		args = append([]string{"migrate", args[0], "--config", "shards.json", "--tables", "invoices,lines"}, args[1:]...)
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "SHARDID_SOURCE="+p.DSN("ledger")+"?sslmode=disable", "LEDGER_A="+p.DSN("ledger_a")+"?sslmode=disable", "LEDGER_B="+p.DSN("ledger_b")+"?sslmode=disable")
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != step.code {
			t.Fatalf("%s: %v\n%s", step.verb, err, out)
		}
	}
	l.compare(t, "at the end", "_old", "")
}
