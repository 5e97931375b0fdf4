package dialect_test

import (
	"database/sql"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/internal/dialect"
)

func TestFoldingOfSQLiteIsThatOfTheColumn(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE "my table" (plain TEXT, "no case" VARCHAR(9) NOT NULL COLLATE NOCASE, padded TEXT COLLATE RTRIM,
		bytes TEXT COLLATE BINARY, n INTEGER, b BLOB); INSERT INTO "my table" VALUES ('a', 'A', 'a ', 'A', 1, NULL)`); err != nil {
		t.Fatal(err)
	}
	for column, want := range map[string]string{"plain": "", "no case": "not BINARY", "No Case": "not BINARY", "padded": "not BINARY", "bytes": "", "n": "", "b": "", "none": ""} {
		if got, err := dialect.Folding(t.Context(), db, dialect.SQLite{}, "my table", column); err != nil || got != want {
			t.Errorf("%s: %q, %v", column, got, err)
		}
	}
}
