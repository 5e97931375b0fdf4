// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

func TestASecondPoolOfOneDatabaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) *sql.DB {
		t.Helper()
		db, err := sql.Open("sqlite", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	east, west := open("east"), open("west")
	for i, db := range []*sql.DB{east, west} {
		for _, text := range []string{"CREATE TABLE tags (name TEXT)", "CREATE TABLE notes_" + string("01"[i]) + " (id INTEGER PRIMARY KEY)"} {
			if _, err := db.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		home, west *sql.DB
		replica    *sql.DB
		refused    string
	}{
		"the same pool":          {home: east, west: west},
		"no common database":     {home: open("home"), west: west},
		"a second pool at home":  {home: open("west"), west: west, refused: "database west and the home database"},
		"two pools of the shard": {home: east, west: open("east"), refused: "database west and database east"},
		"a replica":              {home: east, west: west, replica: open("west")},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := sharding.Spread([]string{"east", "west"}, 2, "notes_%d")
			if err != nil {
				t.Fatal(err)
			}
			router, err := sharding.New(sharding.DBs{"east": east, "west": c.west}, sharding.Transactions(sharding.BestEffort),
				sharding.Tables(sharding.Table{Name: "notes", Key: "id", Rule: sharding.Mod(2), Map: m}), sharding.Broadcast("tags"))
			if err != nil {
				t.Fatal(err)
			}
			of := shardsql.Config{Router: router, Home: c.home}
			if c.replica != nil {
				of.Replicas = map[string][]*sql.DB{"west": {c.replica}}
			}
			routed := shardsql.OpenDB(of)
			defer func() { _ = routed.Close() }()
			if _, err = routed.Exec("CREATE TABLE IF NOT EXISTS other (id INTEGER)"); err != nil {
				t.Fatal(err)
			}
			if c.refused != "" {
				if _, err := routed.Exec("INSERT INTO tags VALUES ('x')"); !errors.Is(err, sharding.ErrSameDatabase) {
					t.Errorf("a write of all copies: %v", err)
				}
			}
			for range 2 {
				var n int
				err = routed.QueryRow("SELECT COUNT(*) FROM notes WHERE id = 1").Scan(&n)
				if errors.Is(err, sharding.ErrSameDatabase) != (c.refused != "") || c.refused != "" && !strings.Contains(err.Error(), c.refused) {
					t.Error(err)
				}
			}
			if c.refused == "" {
				return
			}
			var n int
			if err := east.QueryRow("SELECT COUNT(*) FROM tags").Scan(&n); err != nil || n != 0 {
				t.Error(n, err)
			}
		})
	}
}

func TestASecondPoolOfADatabaseWithATableOfTheSameNameIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	open := func() *sql.DB {
		t.Helper()
		db, err := sql.Open("sqlite", file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	home := open()
	for _, text := range []string{"CREATE TABLE notes (id INTEGER PRIMARY KEY)", "CREATE TABLE other (id INTEGER PRIMARY KEY)", "INSERT INTO notes VALUES (1)", "INSERT INTO other VALUES (1)"} {
		if _, err := home.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	for second, refused := range map[string]bool{"notes": true, "NOTES": true, "other": false} {
		m, err := sharding.MapOf(sharding.Target{DB: "east", Table: "notes"}, sharding.Target{DB: "west", Table: second})
		if err != nil {
			t.Fatal(err)
		}
		router, err := sharding.New(sharding.DBs{"east": open(), "west": open()}, sharding.Table{Name: "pages", Key: "id", Rule: sharding.Mod(2), Map: m})
		if err != nil {
			t.Fatal(err)
		}
		routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
		defer func() { _ = routed.Close() }()
		for range 2 {
			var n int
			err := routed.QueryRow("SELECT COUNT(*) FROM pages").Scan(&n)
			if errors.Is(err, sharding.ErrSameDatabase) != refused || !refused && n != 2 {
				t.Errorf("west has %s: %d rows, %v", second, n, err)
			}
		}
	}
}
