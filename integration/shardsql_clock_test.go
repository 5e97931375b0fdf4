// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// mysqlClocks are functions that read the clock, and a type that holds their values.
var mysqlClocks = map[string]string{
	"NOW()": "DATETIME", "NOW(6)": "DATETIME(6)", "CURRENT_TIMESTAMP": "TIMESTAMP NULL", "CURRENT_TIMESTAMP(3)": "DATETIME(3)", "LOCALTIME": "DATETIME", "localtimestamp()": "DATETIME",
	"UTC_TIMESTAMP(6)": "DATETIME(6)", "CURDATE()": "DATE", "CURRENT_DATE": "DATE", "UTC_DATE()": "DATE", "CURTIME()": "TIME", "CURRENT_TIME(6)": "TIME(6)", "UTC_TIME": "TIME",
	"UNIX_TIMESTAMP()": "BIGINT", "NOW(6) + INTERVAL 1 MICROSECOND": "DATETIME(6)", "DATE_SUB(NOW(6), INTERVAL 1 DAY)": "DATETIME(6)", "DATE_FORMAT(NOW(6), '%H:%i:%s.%f')": "VARCHAR(30)",
	"NOW(6) + 0": "DECIMAL(30,6)", "CURDATE() + 0": "BIGINT",
}

var postgresClocks = map[string]string{
	"NOW()": "TIMESTAMPTZ", "CURRENT_TIMESTAMP": "TIMESTAMPTZ", "CURRENT_TIMESTAMP(3)": "TIMESTAMPTZ", "LOCALTIMESTAMP": "TIMESTAMP", "CURRENT_DATE": "DATE", "CAST(LOCALTIME AS TEXT)": "TEXT",
	"NOW() - INTERVAL '1 day'": "TIMESTAMPTZ", "EXTRACT(EPOCH FROM NOW())": "NUMERIC", "TO_CHAR(NOW(), 'US')": "TEXT", "CURRENT_DATE + 1": "DATE", "date_trunc('second', LOCALTIMESTAMP)": "TIMESTAMP",
}

// A statement for several databases has one time, as on one table, whatever its function.
func TestRowsOfAllShardsGetTheSameTime(t *testing.T) {
	type kind struct {
		open   namedDatabase
		clocks map[string]string
	}
	kinds := map[string]kind{"PostgreSQL": {postgresDrivers(t)["pgx"], postgresClocks}}
	for name, open := range writing(t) {
		kinds[name] = kind{open, mysqlClocks}
	}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			for clock, typ := range k.clocks {
				t.Run(clock, func(t *testing.T) { sameTime(t, k.open, name == "PostgreSQL", clock, typ) })
			}
			refusesOtherTimes(t, k.open)
		})
	}
}

// sameTime inserts the value of a function into the rows of four shards, and reads it.
func sameTime(t *testing.T, open namedDatabase, postgres bool, clock, typ string) {
	t.Helper()
	m, err := sharding.Spread([]string{"a", "b"}, 4, "timed_%d")
	if err != nil {
		t.Fatal(err)
	}
	dbs := sharding.DBs{"a": open(t, "clock_a"), "b": open(t, "clock_b")}
	for _, at := range m.Targets() {
		database.Exec(t, dbs[at.DB], "DROP TABLE IF EXISTS "+at.Table)
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, v "+typ+", w "+typ+")")
	}
	routed := timed(t, dbs, m)
	params := []string{"?", "?", "?", "?"}
	if postgres {
		params = []string{"$1", "$2", "$3", "$4"}
	}
	var values []string
	for _, param := range params {
		values = append(values, "("+param+", "+clock+")")
	}
	if _, err := routed.Exec("INSERT INTO timed (id, v) VALUES "+strings.Join(values, ", "), 0, 1, 2, 3); err != nil {
		t.Fatal(err)
	}
	if n := rows(t, routed, "SELECT COUNT(DISTINCT v) FROM timed WHERE v IS NOT NULL"); n != 1 {
		t.Errorf("%d values", n)
	}
	if n := rows(t, routed, "SELECT COUNT(*) FROM timed WHERE v = "+clock+" OR v <> "+clock); n != 4 {
		t.Errorf("%d rows compare with it", n)
	}
	tx, err := routed.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	database.Exec(t, tx, "UPDATE timed SET w = "+clock+" WHERE id IN (0, 1, 2, 3)")
	if n := rows(t, tx, "SELECT COUNT(DISTINCT w) FROM timed WHERE w IS NOT NULL"); n != 1 {
		t.Errorf("%d values of an UPDATE", n)
	}
}

// In PostgreSQL NOW() is the time at which the transaction began. The first statement asks for it
// before a database of its rows has begun the transaction, and later ones afterwards.
func TestATransactionOfPostgreSQLHasOneTime(t *testing.T) {
	open := postgresDrivers(t)["pgx"]
	m, err := sharding.Spread([]string{"a", "b"}, 4, "held_%d")
	if err != nil {
		t.Fatal(err)
	}
	dbs := sharding.DBs{"a": open(t, "clock_a"), "b": open(t, "clock_b")}
	for _, at := range m.Targets() {
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, v TIMESTAMPTZ)")
	}
	tx, err := timed(t, dbs, m).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	database.Exec(t, tx, "INSERT INTO timed (id, v) VALUES (0, NOW()), (1, NOW()), (2, NOW()), (3, NOW())")
	database.Exec(t, tx, "INSERT INTO timed (id, v) VALUES (4, now()), (5, now()), (6, now()), (7, now())")
	if n := rows(t, tx, "SELECT COUNT(DISTINCT v) FROM timed"); n != 1 {
		t.Errorf("%d times", n)
	}
}

func timed(t *testing.T, dbs sharding.DBs, m sharding.Map) *sql.DB {
	t.Helper()
	router, err := sharding.New(dbs, sharding.Transactions(sharding.BestEffort), sharding.Table{Name: "timed", Key: "id", Rule: sharding.Mod(4), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = routed.Close() })
	return routed
}

func refusesOtherTimes(t *testing.T, open namedDatabase) {
	t.Helper()
	m, err := sharding.Spread([]string{"a", "b"}, 4, "timed_%d")
	if err != nil {
		t.Fatal(err)
	}
	routed := timed(t, sharding.DBs{"a": open(t, "clock_a"), "b": open(t, "clock_b")}, m)
	for _, text := range []string{"SELECT id, NOW() FROM timed", "SELECT * FROM timed WHERE v > SYSDATE()", "SELECT * FROM timed WHERE v > CLOCK_TIMESTAMP()"} {
		if _, err := routed.Query(text); !errors.Is(err, sharding.ErrUnmergeable) { //nolint:rowserrcheck,sqlclosecheck // there are no rows
			t.Errorf("%s: %v", text, err)
		}
	}
}

func rows(t *testing.T, on interface {
	QueryRow(query string, args ...any) *sql.Row
}, text string) (n int) {
	t.Helper()
	if err := on.QueryRow(text).Scan(&n); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}
