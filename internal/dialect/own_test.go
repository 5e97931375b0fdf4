// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"database/sql"
	"reflect"
	"testing"
)

func TestOwnValuesListsTheColumnsThatTheDatabaseComputes(t *testing.T) {
	db, err := sql.Open("sqlite", "file::memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	for _, text := range []string{
		"CREATE TABLE a (ID INTEGER PRIMARY KEY, at DATETIME DEFAULT CURRENT_TIMESTAMP, r INT DEFAULT (random()), n INT DEFAULT 5, s TEXT DEFAULT '(x)')",
		"CREATE TABLE b (x INTEGER, y INTEGER, PRIMARY KEY (x, y))",
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	for table, want := range map[string]map[string]Own{"a": {"id": {Numbered: true}, "at": {Varies: true}, "r": {Varies: true}}, "b": {}} {
		if got, err := OwnValues(t.Context(), db, SQLite{}, table); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v, want %v", table, got, err, want)
		}
	}
}

func TestEmptyColumnsAreThoseThatHaveNULLInARowWithoutAValue(t *testing.T) {
	db, err := sql.Open("sqlite", "file::memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE a (id INTEGER PRIMARY KEY, Email TEXT, n INT DEFAULT 5, s TEXT NOT NULL, e TEXT DEFAULT '')"); err != nil {
		t.Fatal(err)
	}
	if got, err := EmptyColumns(t.Context(), db, SQLite{}, "a"); err != nil || !reflect.DeepEqual(got, []string{"email"}) {
		t.Errorf("%v, %v", got, err)
	}
}
