package dialect

import (
	"database/sql"
	"reflect"
	"testing"
)

func TestUniqueKeysAreListedWithThePrimaryKey(t *testing.T) {
	db, err := sql.Open("sqlite", "file::memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		"CREATE TABLE a (id INTEGER PRIMARY KEY, x INT, y INT UNIQUE, UNIQUE (x, y))",
		"CREATE UNIQUE INDEX a_lower ON a (lower(y))",
		"CREATE TABLE b (p INT, q INT, PRIMARY KEY (p, q)) WITHOUT ROWID",
		"CREATE TABLE c (x INT)",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	for table, want := range map[string][][]string{
		"a": {{"id"}, {""}, {"y"}, {"x", "y"}},
		"b": {{"p", "q"}},
		"c": nil,
	} {
		keys, err := UniqueKeys(t.Context(), db, SQLite{}, table)
		if err != nil || !sameKeys(keys, want) {
			t.Errorf("%s: %q, %v, want %q", table, keys, err, want)
		}
	}
}

// sameKeys compares keys in any order.
func sameKeys(a, b [][]string) bool {
	if len(a) != len(b) {
		return false
	}
	for _, key := range a {
		found := false
		for _, other := range b {
			found = found || reflect.DeepEqual(key, other)
		}
		if !found {
			return false
		}
	}
	return true
}
