// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// docs/sharding.md has the first statement.
func TestOneStatementTakesAJobOfTheShardThatItsContextNames(t *testing.T) {
	const next = "WHERE id = (SELECT id FROM jobs WHERE free_at <= 5 ORDER BY free_at LIMIT 1 FOR UPDATE SKIP LOCKED)"
	for name, s := range map[string]struct {
		open namedDatabase
		text string
	}{
		"PostgreSQL": {server.SharePostgres(t).Open, "UPDATE jobs SET free_at = 9 " + next + " RETURNING id"},
		"MariaDB":    {server.ShareMariaDB(t).Open, "UPDATE jobs SET free_at = 9 " + next},
		"MySQL":      {server.ShareMySQL(t).Open, "UPDATE jobs SET free_at = 9 WHERE id = (SELECT id FROM (SELECT id FROM jobs WHERE free_at <= 5 ORDER BY free_at LIMIT 1 FOR UPDATE SKIP LOCKED) AS next)"},
	} {
		t.Run(name, func(t *testing.T) { takesOfEachShard(t, s.open, s.text) })
	}
}

func takesOfEachShard(t *testing.T, open namedDatabase, text string) {
	t.Helper()
	dbs := sharding.DBs{"a": open(t, "jobs_a"), "b": open(t, "jobs_b")}
	layout, err := sharding.Spread([]string{"a", "b"}, 4, "jobs_%d")
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range layout.Targets() {
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, free_at BIGINT NOT NULL)")
		database.Exec(t, dbs[at.DB], fmt.Sprintf("INSERT INTO %s VALUES (%d, %d, 3), (%d, %d, 2), (%d, %d, 6)", at.Table, i, i, i+10, i, i+20, i))
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "jobs", Key: "user_id", Rule: sharding.Mod(4), Map: layout})
	if err != nil {
		t.Fatal(err)
	}
	db := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["a"]})
	t.Cleanup(func() { _ = db.Close() })
	for i, at := range router.Targets("jobs") {
		if _, err := db.ExecContext(sharding.On(t.Context(), at), text); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		taken := database.Texts(t, dbs[at.DB], "SELECT id FROM "+at.Table+" WHERE free_at = 9")
		if !slices.Equal(taken, []string{strconv.Itoa(i + 10)}) {
			t.Errorf("of %s the jobs %q are taken", at, taken)
		}
	}
}
