// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// The grants of docs/runbook.md.
var (
	sourceGrants = []string{
		"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, TRIGGER, LOCK TABLES, SHOW VIEW ON shop.* TO mover",
		"GRANT PROCESS ON *.* TO mover",
	}
	shardGrants = []string{
		"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, TRIGGER, LOCK TABLES, CREATE TEMPORARY TABLES ON `shop\\_%`.* TO mover",
		"GRANT PROCESS ON *.* TO mover",
	}
	mysqlGrants = []string{
		"GRANT XA_RECOVER_ADMIN ON *.* TO mover",
		"GRANT SELECT ON performance_schema.replication_connection_configuration TO mover",
	}
	mariadbGrants = []string{"GRANT SLAVE MONITOR ON *.* TO mover"}

	postgresGrants = []string{"GRANT CREATE, USAGE ON SCHEMA public TO mover", "GRANT pg_read_all_stats TO mover"}
	ownerGrant     = "GRANT shop_owner TO mover"
	keysGrant      = "GRANT SET ON PARAMETER session_replication_role TO mover"
)

// moving is a job of orders that the user mover is to carry out.
type moving struct {
	admin *sql.DB // of the source
	job   *migrate.Job
	cfg   migrate.Config
}

func newMoving(t *testing.T, s database.DSNOpener, grants ...string) *moving {
	t.Helper()
	m := &moving{admin: s.Open(t, "shop")}
	database.Exec(t, m.admin, "CREATE USER mover")
	for _, grant := range grants {
		database.Exec(t, m.admin, grant)
	}
	database.Exec(t, m.admin, "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, user_id INT NOT NULL, code VARCHAR(20) UNIQUE, note VARCHAR(100) CHARACTER SET latin1)")
	database.Exec(t, m.admin, "INSERT INTO orders (user_id, note) VALUES (0, 'a')"+strings.Repeat(", (1, 'b'), (2, 'c')", 7))
	spread, err := sharding.Spread([]string{"east", "west"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	m.cfg = migrate.Config{
		Source: database.OpenAs(t, s, "mover", "shop"),
		Shards: sharding.DBs{"east": database.OpenAs(t, s, "mover", "shop_east"), "west": database.OpenAs(t, s, "mover", "shop_west")},
		Tables: []migrate.Table{{Table: sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: spread}}},
	}
	if m.job, err = migrate.New(m.cfg); err != nil {
		t.Fatal(err)
	}
	return m
}

func onMariaDBAndMySQL(t *testing.T, test func(t *testing.T, s database.DSNOpener, grants []string)) {
	t.Helper()
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		test(t, server.RunMariaDB(t), slices.Concat(sourceGrants, shardGrants, mariadbGrants))
	})
	t.Run("MySQL", func(t *testing.T) {
		t.Parallel()
		test(t, server.RunMySQL(t), slices.Concat(sourceGrants, shardGrants, mysqlGrants))
	})
}

// onServers runs a test on a server of each kind.
func onServers(t *testing.T, test func(t *testing.T, s database.DSNOpener)) {
	t.Helper()
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) { test(t, s) })
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, server.RunPostgres(t))
	})
}

func isPostgres(s database.DSNOpener) bool {
	_, is := s.(*server.Postgres)
	return is
}

func TestTheRunbookHasTheGrantsThatAreTested(t *testing.T) {
	text, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	tested := slices.Concat(sourceGrants, shardGrants, mysqlGrants, mariadbGrants, postgresGrants, []string{ownerGrant, keysGrant})
	for i, grant := range tested {
		tested[i] = strings.ReplaceAll(grant, "`shop\\_%`", "shop_east") + ";"
		if !strings.Contains(string(text), tested[i]) {
			t.Errorf("the runbook lacks %s", tested[i])
		}
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "GRANT ") && strings.HasSuffix(line, " TO mover;") && !slices.Contains(tested, line) {
			t.Errorf("no test has %s", line)
		}
	}
}

func TestAUserWithTheDocumentedGrantsMigrates(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, grants []string) {
		m := newMoving(t, s, grants...)
		found, err := m.job.Inspect(t.Context())
		if err != nil || migrate.Blocked(found) || slices.ContainsFunc(found, func(f migrate.Finding) bool { return f.Code == migrate.Privileges || f.Code == migrate.RowFormat }) {
			t.Errorf("%+v, %v", found, err)
		}
		if _, err := m.job.Plan(t.Context()); err != nil {
			t.Error(err)
		}
		switchTo := func(do func(context.Context, time.Duration) (migrate.Switch, error)) func() error {
			return func() error {
				_, err := do(t.Context(), time.Minute)
				return err
			}
		}
		for i, step := range []func() error{
			func() error { return m.job.Pause(t.Context()) }, func() error { return m.job.Resume(t.Context()) },
			func() error { return m.job.Run(t.Context()) }, m.clean(t),
			switchTo(m.job.Cutover), switchTo(m.job.Rollback), m.clean(t), switchTo(m.job.Cutover),
			func() error { return m.job.Finalize(t.Context()) },
		} {
			if err := step(); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
		if p, err := m.job.Progress(t.Context()); err != nil || p.Phase != migrate.PhaseFinalized {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

// clean verifies.
func (m *moving) clean(t *testing.T) func() error {
	return func() error {
		v, err := m.job.Verify(t.Context())
		if err == nil && (!v.Clean() || v.Rows != 15) {
			t.Errorf("%+v", v)
		}
		return err
	}
}

func TestInspectKnowsTheServers(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		m := newMoving(t, s, "GRANT SELECT, INSERT, ALTER, SHOW VIEW ON *.* TO mover")
		for _, statement := range []string{
			"SET GLOBAL innodb_flush_log_at_trx_commit = 2",
			"CREATE VIEW recent AS SELECT id FROM orders",
			"CREATE TABLE items (id INT PRIMARY KEY, order_id INT, FOREIGN KEY (order_id) REFERENCES orders (id))",
			"ALTER TABLE orders ADD CHECK (user_id >= 0), ADD twice INT AS (user_id * 2)",
			"INSERT INTO orders (id, user_id) VALUES (-3, 1), (2000000000, 1)",
		} {
			database.Exec(t, m.admin, statement)
		}
		found, err := m.job.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []migrate.Code{
			migrate.Privileges, migrate.Durability, migrate.OutsideJob, migrate.Checks, migrate.GeneratedColumns, migrate.NonPositiveID,
			migrate.RangeUsed, migrate.NarrowKey, migrate.Charset, migrate.UniqueAcross, migrate.Size,
		} {
			if !slices.ContainsFunc(found, func(f migrate.Finding) bool { return f.Code == want }) {
				t.Errorf("%s is missing in %+v", want, found)
			}
		}
	})
}

func TestInspectSeesThatTriggersWillBeRefused(t *testing.T) {
	m := newMoving(t, server.RunMariaDB(t, "--log-bin", "--binlog-format=STATEMENT"), slices.Concat(sourceGrants, shardGrants, mariadbGrants)...)
	found, err := m.job.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []migrate.Code{migrate.TriggersRefused, migrate.BinlogFormat} {
		if !slices.ContainsFunc(found, func(f migrate.Finding) bool { return f.Code == want && f.Severity == migrate.Block }) {
			t.Errorf("%s is missing in %+v", want, found)
		}
	}
}

// MySQL shows no triggers to a user without TRIGGER, and MariaDB only their names. A job whose triggers were lost would
// have to be aborted.
func TestARightThatWasRevokedIsNotTakenForLostTriggers(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, grants []string) {
		m := newMoving(t, s, grants...)
		if err := m.job.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		denied := func(when string, errs ...error) {
			t.Helper()
			for _, err := range errs {
				if _, named := s.(*server.MariaDB); err == nil && named && when == "of the shards" {
					continue // which needs the names alone
				}
				if err == nil || errors.Is(err, migrate.ErrChanged) || !strings.Contains(err.Error(), "Error 1227") || !strings.Contains(err.Error(), "GRANT TRIGGER on the database to the user") {
					t.Errorf("%s: %v", when, err)
				}
			}
		}
		const ofSource = "TRIGGER ON shop.* "
		ofShards := "TRIGGER ON `shop\\_%`.* "
		database.Exec(t, m.admin, "REVOKE "+ofSource+"FROM mover")
		_, unverified := m.job.Verify(t.Context())
		denied("of the source", m.job.Run(t.Context()), unverified)
		database.Exec(t, m.admin, "GRANT "+ofSource+"TO mover")
		if _, err := m.job.Cutover(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, m.admin, "REVOKE "+ofShards+"FROM mover")
		_, unverified = m.job.Verify(t.Context())
		denied("of the shards", m.job.Run(t.Context()), unverified)
		database.Exec(t, m.admin, "GRANT "+ofShards+"TO mover")
		if err := m.job.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := m.job.Rollback(t.Context(), time.Minute); err != nil {
			t.Error(err)
		}
	})
}
