// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"database/sql"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/internal/dialect"
)

func openSQLite(t *testing.T, settings string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file::memory:?"+settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	return db
}

func TestAColumnOfSQLiteHoldsValuesByItsAffinity(t *testing.T) {
	db := openSQLite(t, "")
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE "my table" (plain TEXT, "no case" VARCHAR(9) NOT NULL COLLATE NOCASE, padded TEXT COLLATE RTRIM,
		bytes TEXT COLLATE BINARY, n INTEGER, b BLOB, any_, f DOUBLE, s STRING, d DECIMAL(9), at DATETIME, point "POINT");
		INSERT INTO "my table" (plain, "no case") VALUES ('a', 'A')`); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]dialect.Column{
		"plain": {Type: "text", Holds: dialect.HoldsTexts}, "bytes": {Type: "text", Holds: dialect.HoldsTexts},
		"no case": {Type: "varchar(9)", Holds: dialect.HoldsTexts, Collation: "NOCASE"}, "No Case": {Type: "varchar(9)", Holds: dialect.HoldsTexts, Collation: "NOCASE"},
		"padded": {Type: "text", Holds: dialect.HoldsTexts, Collation: "RTRIM"},
		"n":      {Type: "integer", Holds: dialect.HoldsIntegers}, "point": {Type: "point", Holds: dialect.HoldsIntegers},
		"b": {Type: "blob", Holds: dialect.HoldsAnything}, "any_": {Holds: dialect.HoldsAnything}, "f": {Type: "double", Holds: dialect.HoldsFloats},
		"s": {Type: "string", Holds: dialect.HoldsNumbers}, "d": {Type: "decimal(9)", Holds: dialect.HoldsNumbers},
		"at": {Type: "datetime", Holds: dialect.HoldsClocks, Precision: 1, Parsed: true},
	} {
		want.Unlimited = true
		if got, found, err := dialect.ReadColumn(t.Context(), db, dialect.SQLite{}, "my table", name); err != nil || !found || got != want {
			t.Errorf("%s: %+v, %t, %v; want %+v", name, got, found, err, want)
		}
	}
	for _, place := range [][2]string{{"my table", "none"}, {"none", "n"}} {
		if got, found, err := dialect.ReadColumn(t.Context(), db, dialect.SQLite{}, place[0], place[1]); err != nil || found {
			t.Errorf("%v: %+v, %t, %v", place, got, found, err)
		}
	}
}

func TestATypeOfSQLiteLimitsNoValue(t *testing.T) {
	db := openSQLite(t, "")
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (small INT, short VARCHAR(3), padded CHAR(3))"); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]any{"small": int64(1 << 40), "short": "abc ", "padded": "a "} {
		of, found, err := dialect.ReadColumn(t.Context(), db, dialect.SQLite{}, "t", name)
		if err != nil || !found {
			t.Fatal(name, found, err)
		}
		if of.Cuts(value, true) || of.Cuts(value, false) {
			t.Errorf("%s stores %v as another value", name, value)
		}
	}
}

// SQLite's driver determines the precision of times.
func TestThePrecisionOfSQLiteIsThePrecisionOfItsDriver(t *testing.T) {
	for settings, want := range map[string]time.Duration{
		"": 1, "_time_format=sqlite": 1, "_time_integer_format=unix": time.Second, "_time_integer_format=unix_milli": time.Millisecond, "_time_integer_format=unix_nano": 1,
	} {
		db := openSQLite(t, settings)
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (at DATETIME)"); err != nil {
			t.Fatal(err)
		}
		if got, found, err := dialect.ReadColumn(t.Context(), db, dialect.SQLite{}, "t", "at"); err != nil || !found || got.Precision != want {
			t.Errorf("%s: %v, %v, want %v", settings, got.Precision, err, want)
		}
	}
}
