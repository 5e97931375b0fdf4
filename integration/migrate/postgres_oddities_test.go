// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// A prepared transaction of PostgreSQL keeps its locks even after its client is gone. No switch
// happens until it ends, and the changes that it commits are followed.
func TestAPreparedTransactionOfPostgresKeepsTheCutoverFromHappening(t *testing.T) {
	p := server.RunPostgres(t, "max_prepared_transactions=1")
	o := newPostgresTable(t, p, "SELECT 1", "CREATE TABLE t (id bigint PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
	o.run(t)
	conn, err := o.source.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"BEGIN", "UPDATE t SET v = 7 WHERE id = 1", "PREPARE TRANSACTION 'late'"} {
		if _, err := conn.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = o.job.Cutover(t.Context(), 200*time.Millisecond)
	mustGiveUp(t, "beside a prepared transaction", err)
	database.Exec(t, o.source, "COMMIT PREPARED 'late'")
	o.cutover(t)
	o.sameRows(t, "t_old", "")
	if n := database.MustNumber(t, o.shards["b"], "SELECT v FROM t_1 WHERE id = 1"); n != 7 {
		t.Errorf("the shard has %d", n)
	}
}

// Settings of roles, databases and programs do not affect a copy.
func TestASettingOfPostgresThatBreaksACopyDoesNotReachIt(t *testing.T) {
	p := server.RunPostgres(t)
	o := newPostgresTable(t, p, "SELECT 1",
		"CREATE TABLE t (id bigint PRIMARY KEY, f float8, g real, b bytea, at timestamptz, d date, i interval, txt text)",
		`INSERT INTO t SELECT n, 0.1 + n::float8 / 3, 0.3 + n, decode('00ff5c27', 'hex'), '2026-03-29 01:30:00.123456+00'::timestamptz + n * interval '1 hour',
			'2026-01-02'::date + n, '1 mon -3 days 04:05:06.7', E'it''s \\ '||n FROM generate_series(1, 40) n`)
	for _, db := range []*sql.DB{o.source, o.shards["a"], o.shards["b"]} {
		db.SetMaxIdleConns(0) // what is set is so for new connections
	}
	set := func(settings ...string) {
		for _, name := range []string{"whole", "part_a", "part_b"} {
			for _, setting := range settings {
				database.Exec(t, o.source, "ALTER DATABASE "+name+" "+setting)
			}
		}
	}
	under := func(step func(*testing.T)) {
		set("SET TimeZone = 'Asia/Kolkata'", "SET DateStyle = 'German, DMY'", "SET IntervalStyle = 'sql_standard'", "SET bytea_output = 'escape'", "SET extra_float_digits = -5")
		step(t)
		set("RESET ALL")
	}
	broken := sql.OpenDB(settingConnector{o.source.Driver(), p.DSN("whole"), []string{
		"SET standard_conforming_strings = off", "SET default_transaction_isolation = 'serializable'", "SET default_transaction_read_only = on",
		"SET statement_timeout = '20min'", "SET row_security = off", "SET session_replication_role = 'origin'",
	}})
	t.Cleanup(func() { _ = broken.Close() })
	o.through(t, broken)
	under(o.run)
	o.sameRows(t, "t", "")
	database.Exec(t, o.source, "UPDATE t SET f = f + 0.1, txt = txt || E'\\\\' WHERE id % 3 = 0")
	under(func(t *testing.T) {
		t.Helper()
		o.run(t)
		if v, err := o.job.Verify(t.Context()); err != nil || !v.Clean() || v.Rows != 40 {
			t.Errorf("%+v, %v", v, err)
		}
		o.cutover(t)
	})
	o.sameRows(t, "t_old", "")
	database.Exec(t, o.shards["a"], "UPDATE t_0 SET f = f / 7, at = at + interval '1 second'")
	under(o.rollback)
	o.sameRows(t, "t", "_sealed")
}

func TestAnEmptyTextInTheFirstColumnOfPostgresStaysEmpty(t *testing.T) {
	o := newPostgresTable(t, server.SharePostgres(t), "SELECT 1", "CREATE TABLE t (txt text, more text, id bigint PRIMARY KEY)", "INSERT INTO t VALUES ('', '', 1), (NULL, '', 2), ('', NULL, 3), ('x', '', 4)")
	o.run(t)
	o.sameRows(t, "t", "")
	if v, err := o.job.Verify(t.Context()); err != nil || !v.Clean() {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestATextKeyOfPostgresIsInspectedAndMigrated(t *testing.T) {
	for _, typ := range []string{"text", "varchar(40)", "uuid"} {
		o := newPostgresTable(t, server.RunPostgres(t), "SELECT 1", "CREATE TABLE t (id bigint PRIMARY KEY, u "+typ+" NOT NULL)",
			"INSERT INTO t SELECT n, left(gen_random_uuid()::text, 36)::"+typ+" FROM generate_series(1, 20) n")
		o.table.Key, o.table.Rule = "u", sharding.HashText(4)
		o.through(t, o.source)
		if found := o.blocked(t); found != "" {
			t.Errorf("%s: %s", typ, found)
		}
		o.run(t)
	}
}

// A runner owns the shards' tables on PostgreSQL, and others need rights there before the switch.
func TestInspectNamesUsersWithoutRightsOnTheShards(t *testing.T) {
	t.Parallel()
	o := newOdd(t, server.RunPostgres(t), "odd", "odd", sharding.Low(1), "CREATE TABLE odd (id BIGINT PRIMARY KEY, u INT NOT NULL)",
		"CREATE ROLE app", "CREATE ROLE report", "GRANT SELECT, INSERT ON odd TO app, report")
	o.run(t)
	lack := func() (places []string) {
		found, err := o.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.Code == migrate.Privileges && f.Database != "source" {
				places = append(places, f.Database+": "+f.Message)
			}
		}
		return places
	}
	if got := strings.Join(lack(), ", "); !strings.Contains(got, "a: some have rights on odd of the source, and none here: app, report") || !strings.Contains(got, "b: ") {
		t.Error(got)
	}
	database.Exec(t, o.shards["a"], "GRANT SELECT ON odd_0 TO app, report")
	database.Exec(t, o.shards["b"], "GRANT SELECT ON odd_1 TO app")
	if got := lack(); len(got) != 1 || !strings.HasSuffix(got[0], "none here: report") {
		t.Error(got)
	}
}
