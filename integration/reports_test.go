// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// reportsPage is the page on reports over live shards.
const reportsPage = "../docs/reports.md"

// TestPostgreSQLReportsOverLiveShardsReadWhatTheShardsHave carries out the page.
func TestPostgreSQLReportsOverLiveShardsReadWhatTheShardsHave(t *testing.T) {
	p := server.SharePostgres(t)
	dir := t.TempDir()
	server.CommandIn(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "shards.json"), []byte(pageBlocks(t, reportsPage, "json")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	dbs := sharding.DBs{"east": p.Open(t, "shop_east"), "west": p.Open(t, "shop_west")}
	reports := p.Open(t, "reports")
	env := append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "REPORTS="+p.DSN("reports"))
	for _, name := range []string{"east", "west"} {
		dsn, err := url.Parse(p.DSN("shop_" + name))
		if err != nil {
			t.Fatal(err)
		}
		prefix := strings.ToUpper(name)
		env = append(env, "SHOP_"+prefix+"="+dsn.String(), prefix+"_HOST="+dsn.Hostname(), prefix+"_PORT="+dsn.Port(), prefix+"_DBNAME="+dsn.Path[1:],
			prefix+"_USER="+dsn.User.Username(), prefix+"_PASSWORD=it's none")
	}
	run := func(line string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", line)
		cmd.Dir, cmd.Env = dir, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}

	layout, err := sharding.Spread([]string{"east", "west"}, 4, "orders_%02d")
	if err != nil {
		t.Fatal(err)
	}
	r, err := sharding.New(dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(10), Map: layout}, sharding.Broadcast("regions"), sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	for n, at := range r.Targets("orders") {
		columns := "id bigint PRIMARY KEY, user_id bigint NOT NULL, region_id int NOT NULL, note text, twice bigint GENERATED ALWAYS AS (user_id * 2) STORED"
		if n == 2 { // which was made in another order, and takes NULL
			columns = "twice bigint GENERATED ALWAYS AS (user_id * 2) STORED, note text, region_id int, user_id bigint NOT NULL, id bigint PRIMARY KEY"
		}
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" ("+columns+")")
	}
	for _, db := range dbs {
		database.Exec(t, db, "CREATE TABLE regions (id int PRIMARY KEY)")
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: r, Home: dbs["east"]})
	defer func() { _ = routed.Close() }()
	database.Exec(t, routed, "INSERT INTO regions (id) VALUES (0), (1), (2)")
	const rows, users = 2003, 300
	for id := range rows {
		database.Exec(t, routed, fmt.Sprintf("INSERT INTO orders (id, user_id, region_id, note) VALUES (%d, %d, %d, 'of %d')", id, id%users-users/3, id%3, id))
	}

	commands := strings.Split(strings.TrimSpace(strings.Join(pageBlocks(t, reportsPage, "sh"), "")), "\n")
	queries := strings.Split(strings.TrimSpace(pageBlocks(t, reportsPage, "sql")[0]), "\n")
	if len(commands) != 6 || len(queries) != 3 { // three of them are Spider's
		t.Fatalf("the page has %d commands and %d queries", len(commands), len(queries))
	}
	run("if env -u WEST_PASSWORD psql --dbname \"$REPORTS\" --file /dev/null && " + commands[0] + " && env -u WEST_PASSWORD " + commands[1] + " 2>refusal; then exit 1; fi; grep WEST_PASSWORD refusal; rm -r fdw")
	run(commands[0])
	german := p.OpenICU(t, "german", "de-DE")
	if err := german.PingContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	run("if REPORTS='" + p.DSN("german") + "' sh -c '" + commands[1] + "' 2>refusal; then exit 1; fi; grep 'locale C, and those of this one de' refusal")
	run(commands[1])

	var count, least, most int
	if err := reports.QueryRowContext(t.Context(), queries[0]).Scan(&count, &least, &most); err != nil || count != rows || least != -users/3 || most != users-users/3-1 {
		t.Errorf("%s: %d, %d, %d, %v", queries[0], count, least, most, err)
	}
	if got := database.Texts(t, reports, "SELECT COUNT(*)::text FROM shards.orders WHERE twice = 2 * user_id"); !slices.Equal(got, []string{strconv.Itoa(rows)}) {
		t.Errorf("%s rows have what their shards compute", got)
	}
	if got := database.Texts(t, reports, "SELECT count::text FROM ("+strings.TrimSuffix(queries[1], ";")+") of_regions ORDER BY region_id"); !slices.Equal(got, []string{"668", "668", "667"}) {
		t.Errorf("%s: %v", queries[1], got)
	}
	for id := range rows {
		checkReported(t, reports, id, id%users-users/3)
	}
	if plan := strings.Join(database.Texts(t, reports, "EXPLAIN "+queries[2]), "\n"); strings.Count(plan, "Foreign Scan") != 1 {
		t.Errorf("%s asks other shards, too:\n%s", queries[2], plan)
	}
	if plan := strings.Join(database.Texts(t, reports, "EXPLAIN "+queries[0]), "\n"); strings.Count(plan, "Foreign Scan") != 4 || !strings.Contains(plan, "Async") {
		t.Errorf("%s does not ask all shards at the same time:\n%s", queries[0], plan)
	}
	for _, write := range []string{"INSERT INTO shards.orders (id, user_id, region_id) VALUES (-1, 1, 1)", "UPDATE shards.orders SET note = ''", "DELETE FROM shards.orders", "TRUNCATE shards.orders", "DELETE FROM shards.regions"} {
		if _, err := reports.ExecContext(t.Context(), write); err == nil {
			t.Errorf("%s was carried out", write)
		}
	}
	run(commands[2])
	run(commands[1]) // as on an empty database
}

// checkReported looks for an order with the function of its slot.
func checkReported(t *testing.T, reports *sql.DB, id, user int) {
	t.Helper()
	var note string
	const query = "SELECT note FROM shards.orders WHERE id = $1 AND user_id = $2 AND shards.orders_slot(user_id) = shards.orders_slot($2)"
	if err := reports.QueryRowContext(t.Context(), query, id, user).Scan(&note); err != nil || note != fmt.Sprintf("of %d", id) {
		t.Errorf("order %d of user %d: %q, %v", id, user, note, err)
	}
}
