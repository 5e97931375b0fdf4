// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"database/sql"
	"errors"
	"reflect"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
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
		"CREATE TABLE d (id TEXT NOT NULL, a INT UNIQUE, PRIMARY KEY (id))",
		"CREATE TABLE e (id INTEGER PRIMARY KEY, a INT NOT NULL, b INT NOT NULL UNIQUE, c INT, UNIQUE (a, c))",
		"CREATE UNIQUE INDEX e_some ON e (a) WHERE c > 1",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	for table, want := range map[string][]Key{
		"a": {{[]string{"id"}, true, true, false}, {[]string{""}, false, false, false}, {[]string{"y"}, false, false, false}, {[]string{"x", "y"}, false, false, false}},
		"b": {{[]string{"p", "q"}, false, true, false}},
		"c": nil,
		"d": {{[]string{"id"}, false, true, false}, {[]string{"a"}, false, false, false}},
		"e": {{[]string{"id"}, true, true, false}, {[]string{"a"}, false, false, true}, {[]string{"b"}, false, true, false}, {[]string{"a", "c"}, false, false, false}},
	} {
		keys, err := UniqueKeys(t.Context(), db, SQLite{}, table)
		if err != nil || !sameKeys(keys, want) || len(want) > 0 && !reflect.DeepEqual(keys[0], want[0]) {
			t.Errorf("%s: %v, %v, want %v", table, keys, err, want)
		}
	}
}

// MariaDB answered 80 of 6000 queries of information_schema.STATISTICS without rows that KILL QUERY interrupted.
func TestAnEmptyListOfUniqueKeysIsConfirmed(t *testing.T) {
	killed := errors.New("Error 1317 (70100): Query execution was interrupted")
	for name, c := range map[string]struct {
		shown *sqlmock.Rows
		fails error
		want  bool
	}{
		"the table has none":       {shown: sqlmock.NewRows([]string{"Key_name"})},
		"the list was interrupted": {shown: sqlmock.NewRows([]string{"Key_name"}).AddRow("PRIMARY"), want: true},
		"so is the confirmation":   {fails: killed, want: true},
		"there is no table":        {fails: errors.New("Error 1146 (42S02): Table 'shop.a' doesn't exist")},
	} {
		db, mock, err := sqlmock.New()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		mock.ExpectQuery("STATISTICS").WillReturnRows(sqlmock.NewRows([]string{"k", "c"}))
		confirmed := mock.ExpectQuery("SHOW INDEX FROM `a`")
		if confirmed.WillReturnError(c.fails); c.fails == nil {
			confirmed.WillReturnRows(c.shown)
		}
		keys, err := UniqueKeys(t.Context(), db, MySQL{}, "a")
		if Unavailable(err) != c.want || (err != nil) != c.want || len(keys) != 0 {
			t.Errorf("%s: %v, %v", name, keys, err)
		}
	}
}

// sameKeys compares keys in any order. (That of the primary key is the first.)
func sameKeys(a, b []Key) bool {
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
