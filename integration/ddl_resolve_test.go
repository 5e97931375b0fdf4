// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"regexp"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
)

// An up is killed while its statement waits in the server for a reader, and somebody alters the
// table before the next one: nobody can tell whether the statement was done. On PostgreSQL and SQLite
// it is in a transaction, which is undone.
func TestAnInterruptedStatementIsAnsweredAsTheDDLPageSays(t *testing.T) {
	for name, s := range map[string]database.DSNOpener{"MariaDB": server.RunMariaDB(t), "MySQL": server.RunMySQL(t)} {
		for _, answer := range []string{"--done", "--not-done"} {
			t.Run(name+" "+answer, func(t *testing.T) {
				suffix := strings.ReplaceAll(answer, "-", "_")
				east := s.Open(t, "page_east"+suffix)
				s.Open(t, "page_west"+suffix)
				p := newDDLPage(t, s.DSN("page_east"+suffix), s.DSN("page_west"+suffix))
				p.must(t, "shardid ddl up --config shards.json --dir migrations --to 1", "")
				interrupt(t, p, east)
				if answer == "--done" {
					database.Exec(t, east, "ALTER TABLE orders_0 ADD COLUMN note VARCHAR(200)")
				}
				database.Exec(t, east, "ALTER TABLE orders_0 ADD COLUMN other INT")
				const up = "shardid ddl up --config shards.json --dir migrations"
				out, err := p.command(t.Context(), up).CombinedOutput()
				if err == nil || !strings.Contains(string(out), "unclear") {
					t.Fatalf("%s: %v\n%s", up, err, out)
				}
				line := regexp.MustCompile(`(?m)^    (shardid ddl resolve .* ` + answer + `)$`).FindStringSubmatch(p.text)
				p.must(t, line[1], "")
				p.must(t, up, "")
				p.must(t, "shardid ddl status --config shards.json --dir migrations", "00002_note.sql  applied ")
				if n := database.MustNumber(t, east, "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND column_name = 'note'"); n != 2 {
					t.Errorf("%d of 2 tables have the column", n)
				}
			})
		}
	}
}

// must runs a line of the page, whose output must contain a text.
func (p *ddlPage) must(t *testing.T, line, answer string) {
	t.Helper()
	if out, err := p.command(t.Context(), line).CombinedOutput(); err != nil || !strings.Contains(string(out), answer) {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
}

// interrupt kills an up and its statement for orders_0.
func interrupt(t *testing.T, p *ddlPage, east *sql.DB) {
	t.Helper()
	reader, err := east.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback() }()
	if err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders_0").Scan(new(int)); err != nil {
		t.Fatal(err)
	}
	up := p.command(t.Context(), "exec shardid ddl up --config shards.json --dir migrations")
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	const waiting = "FROM information_schema.processlist WHERE state LIKE 'Waiting for table metadata lock' AND db = DATABASE()"
	testwait.Until(t, "the statement waits for the reader", func() bool { return database.MustNumber(t, east, "SELECT COUNT(*) "+waiting) > 0 })
	_ = up.Process.Kill()
	_ = up.Wait() // says "signal: killed"
	for _, id := range database.Texts(t, east, "SELECT id "+waiting) {
		database.Exec(t, east, "KILL "+id)
	}
	testwait.Until(t, "the statement has ended", func() bool { return database.MustNumber(t, east, "SELECT COUNT(*) "+waiting) == 0 })
}
