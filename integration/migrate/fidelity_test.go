// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// fidelityTypes are columns with values that a wrong copy would change.
var fidelityTypes = []struct {
	name, definition string
	values           []string
}{
	{"i1", "TINYINT", []string{"-128", "127"}},
	{"u8", "BIGINT UNSIGNED", []string{"18446744073709551615", "9223372036854775808"}},
	{"zf", "INT(8) ZEROFILL", []string{"42"}},
	{"de", "DECIMAL(65,30)", []string{"12345678901234567890123456789012345.123456789012345678901234567890", "-0.000000000000000000000000000001"}},
	{"fl", "FLOAT", []string{"16777215", "16777216", "0.1", "3.4028234e38", "1.17549435e-38", "-0e0"}},
	{"fd", "FLOAT(7,3)", []string{"1234.567"}},
	{"db", "DOUBLE", []string{"0.1", "0.30000000000000004", "1.7976931348623157e308", "5e-324", "9007199254740993", "-0e0", "-1.2345678901234567e-150"}},
	{"bi", "BIT(64)", []string{"b'1'", "18446744073709551615"}},
	{"yr", "YEAR", []string{"0", "1901", "2155"}},
	{"da", "DATE", []string{"'0000-00-00'", "'2024-02-30'", "'9999-12-31'", "'2024-00-10'"}},
	{"dt", "DATETIME(6)", []string{"'2024-03-31 02:30:00.123456'", "'0000-00-00'", "'1000-01-01 00:00:00.000001'"}},
	{"ts", "TIMESTAMP(6) NULL", []string{"'2024-10-27 00:30:00.000001'", "'1970-01-01 00:00:01'", "'0000-00-00'"}},
	{"ti", "TIME(6)", []string{"'-838:59:59'", "'838:59:59'", "'00:00:00.000001'"}},
	{"ch", "CHAR(10)", []string{"'ab'", "''", "'𝄞'"}},
	{"l1", "VARCHAR(100) CHARACTER SET latin1 COLLATE latin1_bin", []string{"'ünï €'", "_latin1 x'0081fe27'"}},
	{"vc", "VARCHAR(500) CHARACTER SET utf8mb4", []string{"'quote '' back\\\\slash \\% \\0 \\Z \\r\\n'", "'4 bytes 𝄞'", "'blank '", "'NULL'", "'; --'", "'?'"}},
	{"lt", "LONGTEXT", []string{"REPEAT('ü', 400000)"}},
	{"bn", "BINARY(6)", []string{"x'00ff2c275c00'", "'ab'"}},
	{"vb", "VARBINARY(300)", []string{"x''", "x'00ff2c275c0a0d1a'", "'text'"}},
	{"bl", "LONGBLOB", []string{"REPEAT(x'00ff27', 500000)"}},
	{"en", "ENUM('a','ü','''','') CHARACTER SET utf8mb4", []string{"'ü'", "''''", "''"}},
	{"se", "SET('x','y','z')", []string{"'x,z'", "''"}},
	{"js", "JSON", []string{`'{"a": [1, null, "ü\\n𝄞"], "b": 1.10}'`, "'null'", "'[]'", "'[0.0, -0.0, {\"a\": -0.0}]'"}},
	{"ge", "GEOMETRY", []string{"ST_GeomFromText('POINT(1 2.5)')", "ST_GeomFromText('LINESTRING(0 0,1 1)', 0)"}},
}

func TestEveryTypeIsCopiedBitByBit(t *testing.T) {
	t.Run("MariaDB", func(t *testing.T) {
		from, to := server.RunMariaDB(t), server.RunMariaDB(t)
		fidelity(t, from.Open(t, "shop"), from.Open(t, "a"), to.Open(t, "b"))
	})
	t.Run("MySQL", func(t *testing.T) {
		m := server.RunMySQL(t)
		fidelity(t, m.Open(t, "shop"), m.Open(t, "a"), m.Open(t, "b"))
	})
}

// fidelity copies the values, and then applies changes to them.
func fidelity(t *testing.T, source, a, b *sql.DB) {
	t.Helper()
	insertFidelity(t, source)
	spread, err := sharding.Spread([]string{"a", "b"}, 4, "odd_%d")
	if err != nil {
		t.Fatal(err)
	}
	job, err := migrate.New(migrate.Config{
		Source: source, Shards: sharding.DBs{"a": a, "b": b}, ChunkRows: 7,
		Tables: []migrate.Table{{Table: sharding.Table{Name: "odd", Key: "id", Rule: sharding.Mod(4), Map: spread}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{"DO 0", "UPDATE odd SET touched = touched + 1", "DELETE FROM odd WHERE id % 3 = 0"} {
		database.Exec(t, source, change)
		if err := job.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		sameBytes(t, source, a, b)
		v, err := job.Verify(t.Context())
		if err != nil || !v.Clean() {
			t.Errorf("%+v, %v", v, err)
		}
	}
}

func insertFidelity(t *testing.T, source *sql.DB) {
	t.Helper()
	defs := []string{"id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY", "touched INT NOT NULL DEFAULT 0"}
	for _, typ := range fidelityTypes {
		defs = append(defs, typ.name+" "+typ.definition)
	}
	defs = append(defs, "gen INT AS (touched * 2) STORED", "virt VARCHAR(20) AS (CONCAT(touched, 'x')) VIRTUAL")
	conn, err := source.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	do := func(statement string) {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%.200s: %v", statement, err)
		}
	}
	do("SET sql_mode = 'ALLOW_INVALID_DATES'")
	do("SET time_zone = '+00:00'")
	do("SET NAMES utf8mb4")
	do("CREATE TABLE odd (" + strings.Join(defs, ", ") + ") DEFAULT CHARSET=utf8mb4")
	do("INSERT INTO odd () VALUES ()") // NULL everywhere
	for _, typ := range fidelityTypes {
		for _, value := range typ.values {
			do(fmt.Sprintf("INSERT INTO odd (%s) VALUES (%s)", typ.name, value))
		}
	}
	do("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
	do("INSERT INTO odd (id) VALUES (0), (4294967295)")
	do("SET sql_mode = DEFAULT, time_zone = DEFAULT")
}

// sameBytes compares what the servers have stored, byte for byte.
func sameBytes(t *testing.T, source, a, b *sql.DB) {
	t.Helper()
	want := fidelityRows(t, source, "odd")
	var got []string
	for i, db := range []*sql.DB{a, b, a, b} {
		got = append(got, fidelityRows(t, db, fmt.Sprintf("odd_%d", i))...)
	}
	slices.Sort(want)
	slices.Sort(got)
	if slices.Equal(want, got) && len(want) > 30 {
		return
	}
	for _, row := range want {
		if !slices.Contains(got, row) {
			t.Errorf("no shard has %s", row)
		}
	}
	t.Errorf("%d rows on the source, %d on the shards", len(want), len(got))
}

func fidelityRows(t *testing.T, db *sql.DB, table string) []string {
	t.Helper()
	parts := []string{"id", "touched", "gen", "virt"}
	for _, typ := range fidelityTypes {
		c := typ.name
		switch {
		case strings.HasPrefix(typ.definition, "FLOAT"), strings.HasPrefix(typ.definition, "DOUBLE"):
			c = "JSON_ARRAY(" + c + "*1e0)" // which has all digits, and the sign of a zero
		case strings.HasPrefix(typ.definition, "TIMESTAMP"):
			c = "IF(" + c + " = 0, 'zero', UNIX_TIMESTAMP(" + c + "))"
		case strings.Contains(typ.definition, "LONG"):
			c = "SHA2(" + c + ", 256)"
		default:
			c = "HEX(" + c + ")"
		}
		parts = append(parts, "'"+typ.name+"', COALESCE("+c+", 'NULL')")
	}
	return database.Texts(t, db, "SELECT CONCAT_WS(' ', "+strings.Join(parts, ", ")+") FROM "+table)
}
