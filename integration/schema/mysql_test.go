// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema"
)

const schemaTestdata = "../../schema/testdata/"

func TestInspectOfSampleDatabasesEqualsTheGoldenReports(t *testing.T) {
	m := server.RunMariaDB(t)
	t.Run("shop", func(t *testing.T) {
		m.Open(t, "shop")
		database.RunScript(t, m.DSN("shop"), schemaTestdata+"shop.mysql.sql")
		inspectAgainst(t, m.Open(t, "shop"), "MariaDB", schemaTestdata+"shop.mysql.json")
	})
	if _, err := os.Stat(database.Chinook); err == nil {
		t.Run("chinook", func(t *testing.T) {
			database.RunScript(t, m.DSN(""), database.Chinook)
			inspectAgainst(t, m.Open(t, "Chinook_AutoIncrement"), "MariaDB", schemaTestdata+"chinook.mysql.json")
		})
	}
}

func inspectAgainst(t *testing.T, db *sql.DB, product, expected string) {
	t.Helper()
	if err := schema.Apply(t.Context(), db); err != nil { // our tables are left out
		t.Fatal(err)
	}
	report := inspected(t, db)
	if report.Server.Product != product || report.Server.Version == "" {
		t.Errorf("server is %+v", report.Server)
	}
	report.Server = schema.Server{Product: "any", Version: "any"}
	got, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(expected)
	if err != nil {
		t.Fatal(err)
	}
	if string(got)+"\n" != string(want) {
		t.Errorf("%s differs; got\n%s", expected, got)
	}
}

func TestApplyWorksInStrictModeAndAgainAndFromManyAtOnce(t *testing.T) {
	m := server.RunMariaDB(t, "--explicit-defaults-for-timestamp=OFF",
		"--sql-mode=STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ONLY_FULL_GROUP_BY,ERROR_FOR_DIVISION_BY_ZERO")
	db := m.Open(t, "own")
	database.AtOnce(t, 8, func(int) error { return schema.Apply(t.Context(), db) })
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	database.Exec(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 1000)")
	database.Exec(t, db, "INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) VALUES ('h', '1', 1, CURDATE(), NOW(), NOW())")
}

func TestApplyTakesTheTablesOfLeafAndUidGeneratorWithoutCreateRight(t *testing.T) {
	m := server.RunMariaDB(t)
	db := m.Open(t, "own")
	database.Exec(t, db, "CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL DEFAULT '', max_id bigint(20) NOT NULL DEFAULT '1',"+
		" step int(11) NOT NULL, `desc` varchar(256) DEFAULT NULL, update_time timestamp NOT NULL, PRIMARY KEY (biz_tag))")
	database.Exec(t, db, "CREATE TABLE WORKER_NODE (ID BIGINT NOT NULL AUTO_INCREMENT, HOST_NAME VARCHAR(64) NOT NULL, PORT VARCHAR(64) NOT NULL,"+
		" TYPE INT NOT NULL, LAUNCH_DATE DATE NOT NULL, MODIFIED TIMESTAMP NOT NULL, CREATED TIMESTAMP NOT NULL DEFAULT '2000-01-01', PRIMARY KEY(ID))")
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	database.Exec(t, db, "CREATE USER app IDENTIFIED BY 'pw'")
	database.Exec(t, db, "GRANT SELECT, UPDATE (max_id) ON leaf_alloc TO app")
	database.Exec(t, db, "GRANT INSERT, SELECT (ID) ON WORKER_NODE TO app")
	database.Exec(t, db, "GRANT SELECT, INSERT, UPDATE ON worker_lease TO app")
	database.Exec(t, db, "GRANT SELECT, INSERT, UPDATE ON worker_namespace TO app")
	cfg, err := mysql.ParseDSN(m.DSN("own"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.User, cfg.Passwd = "app", "pw"
	app, err := sql.Open("mysql", cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = app.Close() }()
	if err := schema.Apply(t.Context(), app); err != nil {
		t.Fatal(err)
	}
}

func TestApplyRefusesATableThatCannotServe(t *testing.T) {
	db := server.RunMariaDB(t).Open(t, "own")
	database.Exec(t, db, "CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id int NOT NULL, step int NOT NULL, update_time timestamp)")
	var refused *schema.ColumnError
	if err := schema.Apply(t.Context(), db); !errors.As(err, &refused) || refused.Table != "leaf_alloc" || refused.Column != "max_id" {
		t.Fatalf("Apply: %v", err)
	}
}

func TestEverythingNamesTheMissingDatabase(t *testing.T) {
	db, err := sql.Open("mysql", server.RunMariaDB(t).DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := schema.Inspect(t.Context(), db); !errors.Is(err, schema.ErrNoDatabase) {
		t.Errorf("Inspect: %v", err)
	}
	if err := schema.Apply(t.Context(), db); !errors.Is(err, schema.ErrNoDatabase) {
		t.Errorf("Apply: %v", err)
	}
}

func TestInspectFindsWhatNeedsWork(t *testing.T) {
	db := server.RunMariaDB(t).Open(t, "odd")
	for _, statement := range []string{
		"CREATE TABLE no_key (a int)",
		"CREATE TABLE text_key (a varchar(9) PRIMARY KEY)",
		"CREATE TABLE half (a smallint AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 16386",
		"CREATE TABLE used_up (a tinyint AUTO_INCREMENT PRIMARY KEY)",
		"INSERT INTO used_up VALUES (127)",
		"CREATE TABLE zero (a bigint AUTO_INCREMENT PRIMARY KEY)",
		"SET STATEMENT sql_mode = 'NO_AUTO_VALUE_ON_ZERO' FOR INSERT INTO zero VALUES (0), (-3)",
		"CREATE TABLE beyond (a bigint unsigned PRIMARY KEY)",
		"INSERT INTO beyond VALUES (18446744073709551615)",
		"CREATE TABLE old (a bigint AUTO_INCREMENT PRIMARY KEY) ENGINE=MyISAM",
		"CREATE TABLE `odd ``name` (`k ``e` bigint AUTO_INCREMENT PRIMARY KEY)",
		"CREATE SEQUENCE seq",
	} {
		database.Exec(t, db, statement)
	}
	expectFindings(t, inspected(t, db), map[string]string{
		"no_key":    "error:no_primary_key",
		"text_key":  "error:non_integer_key",
		"half":      "warning:narrow_key warning:range_used",
		"used_up":   "warning:narrow_key error:range_used",
		"zero":      "warning:non_positive_id",
		"beyond":    "error:range_used error:beyond_int64 info:no_auto_increment",
		"old":       "error:not_innodb",
		"odd `name": "",
	})
}

func inspected(t *testing.T, db *sql.DB) schema.Report {
	t.Helper()
	report, err := schema.Inspect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// expectFindings compares the findings of each table, as "severity:code" in their
// order.
func expectFindings(t *testing.T, report schema.Report, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, table := range report.Tables {
		var all []string
		for _, f := range table.Findings {
			all = append(all, fmt.Sprintf("%s:%s", f.Severity, f.Code))
		}
		got[table.Name] = strings.Join(all, " ")
	}
	if !maps.Equal(got, want) {
		t.Errorf("findings:\n got %v\nwant %v", got, want)
	}
}

func TestNextIDIsAboveWhatTheTableHasGiven(t *testing.T) {
	db := server.RunMariaDB(t).Open(t, "own")
	database.Exec(t, db, "CREATE TABLE orders (id int AUTO_INCREMENT PRIMARY KEY, n bigint NOT NULL DEFAULT 0, u bigint unsigned, s varchar(9))")
	expectNext(t, db, "id", 1)
	database.Exec(t, db, "INSERT INTO orders () VALUES (), (), ()")
	expectNext(t, db, "id", 4)
	database.Exec(t, db, "DELETE FROM orders WHERE id > 1")
	expectNext(t, db, "id", 4)
	database.Exec(t, db, "INSERT INTO orders (id, n) VALUES (100, -7)")
	expectNext(t, db, "ID", 101)
	expectNext(t, db, "n", 1)
	database.Exec(t, db, "UPDATE orders SET u = 9223372036854775807")
	for column, want := range map[string]error{"u": schema.ErrKeyExhausted, "s": schema.ErrNoIntegerKey, "x": schema.ErrNoIntegerKey} {
		if _, err := schema.NextID(t.Context(), db, "orders", column); !errors.Is(err, want) {
			t.Errorf("NextID of %s: %v, want %v", column, err, want)
		}
	}
	if _, err := schema.NextID(t.Context(), db, "order", "id"); !errors.Is(err, schema.ErrNoTable) {
		t.Errorf("NextID of no table: %v", err)
	}
}

func expectNext(t *testing.T, db *sql.DB, column string, want int64) {
	t.Helper()
	if got, err := schema.NextID(t.Context(), db, "orders", column); err != nil || got != want {
		t.Errorf("NextID of %s = %d, %v; want %d", column, got, err, want)
	}
}

// A connection with autocommit off still has the snapshot of its last transaction;
// NextID must not read it.
func TestNextIDSeesPastAnOpenSnapshot(t *testing.T) {
	m := server.RunMariaDB(t)
	writer := m.Open(t, "own")
	database.Exec(t, writer, "CREATE TABLE orders (id bigint PRIMARY KEY)")
	stale, err := sql.Open("mysql", m.DSN("own")+"?autocommit=0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stale.Close() }()
	stale.SetMaxOpenConns(1)
	var n int
	if err := stale.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders").Scan(&n); err != nil {
		t.Fatal(err)
	}
	database.Exec(t, writer, "INSERT INTO orders VALUES (41)")
	expectNext(t, stale, "id", 42)
}

func TestSeedRaisesAndNeverLowersHoweverManySeedAtOnce(t *testing.T) {
	m := server.RunMariaDB(t)
	db := m.Open(t, "own")
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	seedAtOnce(t, db, 4) // neighbouring new rows, which MySQL locks gaps for
}

// seedAtOnce seeds tags concurrently and requires that the highest value remains.
func seedAtOnce(t *testing.T, db *sql.DB, tags int) {
	t.Helper()
	const seeders = 24
	database.AtOnce(t, seeders, func(i int) error {
		for tag := range tags {
			now, err := schema.Seed(t.Context(), db, fmt.Sprint("tag", tag), int64(1000+i), 10)
			if err == nil && now < int64(1000+i) {
				err = fmt.Errorf("seeded %d, now %d", 1000+i, now)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	for tag := range tags {
		if now, err := schema.Seed(t.Context(), db, fmt.Sprint("tag", tag), 1, 99); err != nil || now != 1000+seeders-1 {
			t.Errorf("tag%d: %d, %v", tag, now, err)
		}
	}
	if step := database.MustNumber(t, db, "SELECT MAX(step) FROM leaf_alloc"); step != 10 {
		t.Errorf("step %d; an existing row keeps its own", step)
	}
}

// With autocommit off, a seed that is not committed by itself is lost.
func TestSeedIsCommittedWhateverTheConnectionsAutocommit(t *testing.T) {
	m := server.RunMariaDB(t)
	db := m.Open(t, "own")
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	off, err := sql.Open("mysql", m.DSN("own")+"?autocommit=0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Seed(t.Context(), off, "order", 500, 10); err != nil {
		t.Fatal(err)
	}
	if err := off.Close(); err != nil {
		t.Fatal(err)
	}
	if now, err := schema.Seed(t.Context(), db, "order", 1, 10); err != nil || now != 500 {
		t.Errorf("now %d, %v", now, err)
	}
}
