// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"database/sql"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/internal/dialect"
)

// sqliteHash is the hash of one row of two columns with these values.
func sqliteHash(t *testing.T, db *sql.DB, values string) uint64 {
	t.Helper()
	expr := RowHash(dialect.SQLite{}, []Column{{Name: "a", Nullable: true}, {Name: "b", Nullable: true}})
	rows, err := db.QueryContext(t.Context(), "SELECT "+expr+" FROM (SELECT column1 AS a, column2 AS b FROM (VALUES ("+values+")))")
	if err != nil {
		t.Fatalf("%s: %v", values, err)
	}
	defer func() { _ = rows.Close() }()
	var hash sql.RawBytes
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	if err := rows.Scan(&hash); err != nil {
		t.Fatal(err)
	}
	sum, err := RowSum(dialect.SQLite{}, hash)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestSQLiteRowsThatLookAlikeHaveDifferentHashes(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	seen := map[uint64]string{}
	for _, values := range []string{
		"NULL, NULL", "NULL, 'NULL'", "'NULL', NULL", "'', NULL", "NULL, ''", "'', ''", "x'', ''",
		"1, 2", "'1', 2", "1, '2'", "x'31', 2", "1.0, 2", "12, ''", "'1,2', ''", "'1', ',2'",
		"'a' || char(0) || 'b', 1", "'a' || char(0) || 'c', 1", "'a', 1", "'a ', 1", "'A', 1", "'ä', 1",
		"0.1, 0", "0.1000000000000000056, 1", "0.10000000000000002, 0", "16777215.0, 0", "16777200.0, 0", "1e300 * 1e10, 0", "-1e300 * 1e10, 0",
		"9223372036854775807, 0", "9223372036854775806, 0", "9223372036854775807.0, 0",
	} {
		hash := sqliteHash(t, db, values)
		if other, taken := seen[hash]; taken {
			t.Errorf("(%s) and (%s) have one hash", values, other)
		}
		if again := sqliteHash(t, db, values); again != hash {
			t.Errorf("(%s) has the hashes %d and %d", values, hash, again)
		}
		seen[hash] = values
	}
}

func TestARowWithoutAHashIsAnError(t *testing.T) {
	if sum, err := RowSum(dialect.MySQL{}, nil); err == nil {
		t.Errorf("%d", sum)
	}
}

func TestLongValuesAreHashedAlone(t *testing.T) {
	expr := RowHash(dialect.MySQL{}, []Column{
		{Name: "id", Type: "bigint"}, {Name: "f", Type: "float"}, {Name: "x", Type: "longblob", kind: Binary, Nullable: true},
		{Name: "j", Type: "longtext", kind: Quoted, Nullable: true}, {Name: "at", Type: "datetime", kind: Quoted, cast: true}, {Name: "z", Type: "int"},
	})
	want := strings.Join([]string{
		"CRC32(CONCAT_WS(','", "`id`+0", "JSON_ARRAY(`f`*1e0)", "CONCAT(CRC32(`x`),','", "OCTET_LENGTH(`x`))",
		"IF(CHARSET(`j`) IN ('utf8mb4','utf8mb3','ascii')", "CONCAT(CRC32(`j`),','", "OCTET_LENGTH(`j`))",
		"CONCAT(CRC32(CONVERT(`j` USING utf8mb4)),','", "OCTET_LENGTH(CONVERT(`j` USING utf8mb4))))", "`at`", "`z`+0",
		"CONCAT(ISNULL(`x`)", "ISNULL(`j`))))",
	}, ",")
	if expr != want {
		t.Errorf("\n got %s\nwant %s", expr, want)
	}
}
