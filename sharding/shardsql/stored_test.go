// SPDX-License-Identifier: Apache-2.0

package shardsql_test

import (
	"errors"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// After a move, a statement of a program that forgets to follow the map would read the former shard.
func TestNoStatementGoesToATableWhoseStoredMapIsNotFollowed(t *testing.T) {
	open := files(t)
	dbs := sharding.DBs{"a": open("a.db"), "b": open("b.db")}
	first, err := sharding.Spread([]string{"a", "b"}, 2, "notes_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range first.Targets() {
		exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id INTEGER PRIMARY KEY, word TEXT)")
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "notes", Key: "id", Rule: sharding.Mod(2), Map: first.Stored()}, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: open("home.db")})
	t.Cleanup(func() { _ = routed.Close() })
	for _, text := range []string{
		"SELECT word FROM notes WHERE id = 1", "SELECT word FROM notes", "SELECT word FROM notes ORDER BY id", "SELECT COUNT(*) FROM notes",
		"INSERT INTO notes (id, word) VALUES (1, 'x')", "INSERT INTO notes (id, word) VALUES (1, 'x'), (2, 'y')",
		"UPDATE notes SET word = 'z' WHERE id = 1", "DELETE FROM notes WHERE id IN (1, 2)",
	} {
		if err := drain(t.Context(), routed, text); !errors.Is(err, sharding.ErrStaleMap) {
			t.Errorf("query %s: %v", text, err)
		}
		if _, err := routed.ExecContext(t.Context(), text); !errors.Is(err, sharding.ErrStaleMap) {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := routed.ExecContext(sharding.AllShards(t.Context()), text); !errors.Is(err, sharding.ErrStaleMap) {
			t.Errorf("%s of all shards: %v", text, err)
		}
	}
}
