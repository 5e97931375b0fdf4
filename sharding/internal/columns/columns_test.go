// SPDX-License-Identifier: Apache-2.0

package columns_test

import (
	"database/sql"
	"path/filepath"
	"reflect"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/columns"
)

// All plans of a table are made again if its description differs from the one that was read a minute before.
func TestTheDescriptionsOfAnUnalteredTableAreEqual(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	at, err := sharding.Spread([]string{"a"}, 4, "people_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"a": db}, sharding.Table{
		Name: "people", Key: "name", Rule: sharding.HashText(4), Map: at,
		Lookups: []sharding.Lookup{{Column: "email", Table: "people_by_email", Unique: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	table, _ := router.Snapshot().Lookup("people")
	read := func(create string) any {
		t.Helper()
		for _, text := range []string{"DROP TABLE IF EXISTS people_0", create} {
			if _, err := db.ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		server, err := dialect.Detect(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		found, err := columns.ReadRouted(t.Context(), server, db, "people_0", table)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	const create = "CREATE TABLE people_0 (id BIGINT PRIMARY KEY, name VARCHAR(20) NOT NULL, email VARCHAR(50) UNIQUE)"
	first := read(create)
	if again := read(create); !reflect.DeepEqual(first, again) {
		t.Errorf("%+v is not %+v", first, again)
	}
	if altered := read("CREATE TABLE people_0 (id BIGINT PRIMARY KEY, name CHAR(10) NOT NULL, email VARCHAR(50) UNIQUE)"); reflect.DeepEqual(first, altered) {
		t.Error("an altered table is described as before")
	}
}

func TestAColumnOfSQLiteHoldsIntegersByTheAffinityOfItsType(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (a INTEGER, b INT(11), c UNSIGNED BIG INT, d TEXT, e REAL)"); err != nil {
		t.Fatal(err)
	}
	found, err := columns.Read(t.Context(), dialect.SQLite{}, db, "t", false)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a": true, "b": true, "c": true, "d": false, "e": false} {
		if got := found.Columns[name].Holds == catalog.Integers; got != want {
			t.Errorf("%s holds integers: %v", name, got)
		}
	}
}
