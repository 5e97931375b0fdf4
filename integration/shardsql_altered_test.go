// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testkit/selects"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// A program whose tables are altered goes on with their new columns and keys. The time is simulated.
func TestTablesThatAreAlteredWhileAProgramRunsAnswerLikeOneTable(t *testing.T) {
	kinds := writing(t)
	kinds["PostgreSQL"] = postgresDrivers(t)["pq"] // pgx itself would fail once, for the types of a prepared query
	for name, open := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tablesAreAltered(t, open, name == "PostgreSQL") })
		})
	}
}

func tablesAreAltered(t *testing.T, open namedDatabase, postgres bool) {
	t.Helper()
	whole, dbs := open(t, "altered_whole"), sharding.DBs{"a": open(t, "altered_a"), "b": open(t, "altered_b")}
	m, err := sharding.Spread([]string{"a", "b"}, 4, "people_%d")
	if err != nil {
		t.Fatal(err)
	}
	everywhere := func(text string) {
		t.Helper()
		for _, at := range m.Targets() {
			database.Exec(t, dbs[at.DB], strings.ReplaceAll(text, "%", at.Table))
		}
		database.Exec(t, whole, strings.ReplaceAll(text, "%", "people"))
	}
	bytewise, folding := "VARCHAR(20) COLLATE utf8mb4_bin", "MODIFY word VARCHAR(20) COLLATE utf8mb4_general_ci"
	upsert := "INSERT IGNORE INTO people (id, user_id, word, email) VALUES (%d, %d, 'x', 'a@example.org')"
	if postgres {
		bytewise, folding = "bytea", `ALTER word TYPE varchar(20) COLLATE "C" USING 'w' || length(word)`
		upsert = strings.Replace(upsert, "INSERT IGNORE", "INSERT", 1) + " ON CONFLICT DO NOTHING"
	}
	everywhere("DROP TABLE IF EXISTS %")
	everywhere("CREATE TABLE % (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, word " + bytewise + ", email VARCHAR(50))")
	router, err := sharding.New(dbs, sharding.Table{Name: "people", Key: "user_id", Rule: sharding.Mod(4), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	defer func() { _ = routed.Close() }()
	same := func() {
		t.Helper()
		q := selects.Query{Text: "SELECT word, COUNT(*) AS n FROM people GROUP BY word", Open: true}
		want, err := q.Answer(t.Context(), whole, nil)
		got, errRouted := q.Answer(t.Context(), routed, nil)
		if err := errors.Join(err, errRouted); err != nil {
			t.Fatal(err)
		}
		for _, rows := range [][]string{got, want} { // any of several equal texts may be returned
			for i, row := range rows {
				rows[i] = strings.ToLower(row)
			}
			slices.Sort(rows)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, and one table has %v", got, want)
		}
	}
	for _, db := range []*sql.DB{whole, routed} {
		for id, word := range []string{"b", "B", "b", "c", "C", "C", "C", "dd"} {
			database.Exec(t, db, fmt.Sprintf("INSERT INTO people (id, user_id, word, email) VALUES (%d, %[1]d, '%s', '%[1]d@example.org')", id, word))
		}
	}
	same()
	for _, db := range []*sql.DB{whole, routed} {
		database.Exec(t, db, fmt.Sprintf(upsert, 100, 1))
	}
	everywhere("ALTER TABLE % " + folding)
	everywhere("ALTER TABLE % ADD UNIQUE (email)")
	time.Sleep(time.Minute)
	if _, err := routed.ExecContext(t.Context(), fmt.Sprintf(upsert, 102, 2)); !errors.Is(err, sharding.ErrKeyChange) {
		t.Errorf("two shards have a row of this email: %v", err)
	}
	same()
}
