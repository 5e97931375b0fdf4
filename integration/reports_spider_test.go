// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
	"github.com/shardid/shardid/sharding/shardsql"
)

// TestMariaDBReportsOverLiveShardsReadWhatTheShardsHave carries out the page's commands of
// Spider.
func TestMariaDBReportsOverLiveShardsReadWhatTheShardsHave(t *testing.T) {
	shards := map[string]*server.MariaDB{
		"east": server.RunMariaDB(t, "--general-log", "--log-output=TABLE"),
		"west": server.RunMariaDB(t, "--general-log", "--log-output=TABLE"),
	}
	engine := server.RunSpider(t, "--general-log", "--log-output=TABLE")
	reports := engine.Open(t, "mine")
	dir := t.TempDir()
	server.CommandIn(t, dir)
	host, port := address(t, engine)
	for name, text := range map[string]string{
		"shards.json": pageBlocks(t, reportsPage, "json")[0],
		"reports.cnf": "[client]\nhost=" + host + "\nport=" + port + "\nuser=root\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const password = `it's "a" \ $HOME 密`
	dbs := sharding.DBs{}
	env := append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	for name, shard := range shards {
		dbs[name] = shard.Open(t, "shop_"+name)
		database.Exec(t, dbs[name], "CREATE USER reader@'%' IDENTIFIED BY '"+strings.NewReplacer(`'`, `''`, `\`, `\\`).Replace(password)+"'")
		database.Exec(t, dbs[name], "GRANT ALL ON shop_"+name+".* TO reader@'%'") // so that Spider refuses writes, and not the shards
		host, port := address(t, shard)
		prefix := strings.ToUpper(name)
		env = append(env, "SHOP_"+prefix+"="+shard.DSN("shop_"+name), prefix+"_HOST="+host, prefix+"_PORT="+port,
			prefix+"_DBNAME=shop_"+name, prefix+"_USER=reader", prefix+"_PASSWORD="+password)
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
		columns := "id bigint PRIMARY KEY AUTO_INCREMENT, user_id bigint NOT NULL, region_id int NOT NULL, note varchar(60) COLLATE utf8mb4_bin, made timestamp NOT NULL DEFAULT '2024-02-29 12:00:00', UNIQUE (id, note), KEY (user_id)"
		if n == 2 { // which was made in another order
			columns = "note varchar(60) COLLATE utf8mb4_bin, made timestamp NOT NULL DEFAULT '2024-02-29 12:00:00', region_id int NOT NULL, user_id bigint NOT NULL, id bigint PRIMARY KEY, KEY (user_id)"
		}
		database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" ("+columns+") CHARACTER SET utf8mb4")
	}
	for _, db := range dbs {
		database.Exec(t, db, "CREATE TABLE regions (id int PRIMARY KEY)")
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: r, Home: dbs["east"]})
	defer func() { _ = routed.Close() }()
	database.Exec(t, routed, "INSERT INTO regions (id) VALUES (0), (1), (2)")
	const rows, users = 2003, 300
	for id := range rows {
		database.Exec(t, routed, fmt.Sprintf("INSERT INTO orders (id, user_id, region_id, note) VALUES (%d, %d, %d, 'of %d 密')", id+1, id%users-users/3, id%3, id))
	}

	commands := strings.Split(strings.TrimSpace(strings.Join(pageBlocks(t, reportsPage, "sh"), "")), "\n")[3:]
	queries := strings.Split(strings.TrimSpace(pageBlocks(t, reportsPage, "sql")[1]), "\n")
	if len(commands) != 3 || len(queries) != 3 {
		t.Fatalf("the page has %d commands and %d queries", len(commands), len(queries))
	}
	run(commands[0])
	run("if env -u WEST_PORT " + commands[1] + " 2>refusal; then exit 1; fi; grep WEST_PORT refusal")
	run(commands[1])
	if got := database.Texts(t, reports, `SELECT argument FROM mysql.general_log WHERE argument LIKE 'CREATE SERVER%' OR argument LIKE 'SET @west_password%'`); len(got) > 0 {
		t.Errorf("the general log has passwords: %q", got)
	}

	var count, least, most int
	if err := reports.QueryRowContext(t.Context(), queries[0]).Scan(&count, &least, &most); err != nil || count != rows || least != -users/3 || most != users-users/3-1 {
		t.Errorf("%s: %d, %d, %d, %v", queries[0], count, least, most, err)
	}
	if got := database.Texts(t, reports, "SELECT n FROM ("+strings.Replace(strings.TrimSuffix(queries[1], ";"), "COUNT(*)", "COUNT(*) AS n", 1)+") of_regions ORDER BY region_id"); !slices.Equal(got, []string{"668", "668", "667"}) {
		t.Errorf("%s: %v", queries[1], got)
	}
	const whole = "SELECT CONCAT_WS(',', id, user_id, region_id, note, UNIX_TIMESTAMP(made)) FROM %s ORDER BY 1"
	var there []string
	for _, at := range r.Targets("orders") {
		there = append(there, database.Texts(t, dbs[at.DB], fmt.Sprintf(whole, at.Table))...)
	}
	slices.Sort(there)
	seen := database.Texts(t, reports, fmt.Sprintf(whole, "shards.orders"))
	slices.Sort(seen)
	if len(there) != rows || len(seen) != rows {
		t.Fatalf("Spider reads %d rows, and the shards have %d", len(seen), len(there))
	}
	for i := range rows {
		if seen[i] != there[i] {
			t.Fatalf("Spider reads %q where the shards have %q", seen[i], there[i])
		}
	}
	for user := -users / 3; user < users-users/3; user++ {
		checkFound(t, reports, dbs, target(t, r, "orders", user), user)
	}
	askedFor(t, shards, reports, queries[2], target(t, r, "orders", 7))
	askedFor(t, shards, reports, "SELECT * FROM shards.orders WHERE user_id = -99", target(t, r, "orders", -99))
	askedFor(t, shards, reports, "SELECT region_id, SUM(id) FROM shards.orders GROUP BY region_id", r.Targets("orders")...)

	for _, write := range []string{"INSERT INTO shards.orders (id, user_id, region_id, made) VALUES (-1, 1, 1, NOW())", "UPDATE shards.orders SET note = ''", "DELETE FROM shards.orders", "TRUNCATE shards.orders", "DELETE FROM shards.regions", "REPLACE INTO shards.regions VALUES (9)"} {
		if _, err := reports.ExecContext(t.Context(), write); err == nil || !strings.Contains(err.Error(), "read only") {
			t.Errorf("%s: %v", write, err)
		}
	}
	run(commands[2])
	if got := database.Texts(t, routed, "SELECT COUNT(*) FROM orders"); !slices.Equal(got, []string{strconv.Itoa(rows)}) {
		t.Errorf("after the undo the shards have %v rows", got)
	}
	run(commands[1]) // as on a server that had none
}

// checkFound compares how many orders a user has with how many Spider finds.
func checkFound(t *testing.T, reports *sql.DB, dbs sharding.DBs, at sharding.Target, user int) {
	t.Helper()
	here := database.MustNumber(t, dbs[at.DB], fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE user_id = %d", at.Table, user))
	if found := database.MustNumber(t, reports, fmt.Sprintf("SELECT COUNT(*) FROM shards.orders WHERE user_id = %d", user)); found != here || here == 0 {
		t.Errorf("Spider finds %d of %d orders of user %d", found, here, user)
	}
}

// TestSpiderFindsEachKeyWhereEachRulePutsIt has keys at both ends of their columns.
func TestSpiderFindsEachKeyWhereEachRulePutsIt(t *testing.T) {
	m := server.ShareMariaDB(t)
	engine := server.RunSpider(t)
	reports := engine.Open(t, "mine")
	db := m.Open(t, "spider_rules")
	rules := map[string]sharding.Rule{"low": sharding.Low(3), "bits": sharding.Bits(12, 3), "mod": sharding.Mod(6), "steps": sharding.OffsetStep(1, 4), "one": sharding.Mod(1)}
	var options []sharding.Option
	for _, name := range []string{"low", "bits", "mod", "steps", "one"} {
		layout, err := sharding.Spread([]string{"east"}, rules[name].Slots(), name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, sharding.Table{Name: name, Key: "k", Rule: rules[name], Map: layout})
	}
	r, err := sharding.New(sharding.DBs{"east": db}, options...)
	if err != nil {
		t.Fatal(err)
	}
	keys := []any{int64(math.MinInt64), int64(math.MinInt64 + 1), int64(math.MaxInt64), int64(math.MaxInt64 - 1), uint64(math.MaxUint64), uint64(math.MaxUint64 - 5), uint64(1 << 63)}
	for k := int64(-40000); k <= 40000; k += 1237 {
		keys = append(keys, k)
	}
	for _, table := range r.Tables() {
		for _, at := range r.Targets(table.Name) {
			column := "bigint"
			if table.Name == "mod" || table.Name == "bits" {
				column = "bigint unsigned"
			}
			database.Exec(t, db, "CREATE TABLE "+at.Table+" (k "+column+" PRIMARY KEY)")
		}
	}
	fits := func(table string, key any) bool {
		unsigned := table == "mod" || table == "bits"
		small, isSmall := key.(int64)
		return isSmall && (small >= 0 || !unsigned) || !isSmall && unsigned
	}
	for _, table := range r.Tables() {
		for _, key := range keys {
			if fits(table.Name, key) {
				database.Exec(t, db, fmt.Sprintf("INSERT INTO %s VALUES (%d)", target(t, r, table.Name, key).Table, key))
			}
		}
	}
	out, err := export.Spider(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range out.Files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.Text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := mysql.ParseDSN(m.DSN("spider_rules"))
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		t.Fatal(err)
	}
	at, atPort := address(t, engine)
	apply := exec.CommandContext(t.Context(), "sh", filepath.Join(dir, "apply.sh"), "--no-defaults", "--host="+at, "--port="+atPort, "--user=root")
	apply.Env = append(os.Environ(), "EAST_HOST="+host, "EAST_PORT="+port, "EAST_DBNAME="+c.DBName, "EAST_USER="+c.User, "EAST_PASSWORD="+c.Passwd)
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, table := range r.Tables() {
		for _, key := range keys {
			if fits(table.Name, key) && database.MustNumber(t, reports, fmt.Sprintf("SELECT COUNT(*) FROM shards.`%s` WHERE k = %d", table.Name, key)) != 1 {
				t.Errorf("Spider does not find %d of %s", key, table.Name)
			}
		}
	}
}

func TestSpiderRefusesWhatItsPartitionsCannotBe(t *testing.T) {
	db := server.ShareMariaDB(t).Open(t, "spider_refused")
	other := server.SharePostgres(t).Open(t, "spider_refused")
	database.Exec(t, db, "CREATE TABLE words (k varchar(20) PRIMARY KEY)")
	for reason, refused := range map[string]sharding.Table{
		"permits no function":     {Name: "words", Key: "k", Rule: sharding.HashText(1), Map: mapOf(t, "east", "words")},
		"highest bits":            {Name: "high", Key: "k", Rule: sharding.Bits(61, 2), Map: mapOf(t, "east", "low_0", "low_1", "low_2", "low_3")},
		"integer column":          {Name: "words", Key: "k", Rule: sharding.Mod(1), Map: mapOf(t, "east", "words")},
		"does not exist":          {Name: "none", Key: "k", Rule: sharding.Mod(1), Map: mapOf(t, "east", "none")},
		"only with shards on Mar": {Name: "words", Key: "k", Rule: sharding.Mod(1), Map: mapOf(t, "west", "words")},
	} {
		r, err := sharding.New(sharding.DBs{"east": db, "west": other}, refused)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := export.Spider(t.Context(), r); !errors.Is(err, export.ErrInexact) || !strings.Contains(err.Error(), reason) {
			t.Errorf("not refused as %q: %v", reason, err)
		}
	}
}

func mapOf(t *testing.T, db string, tables ...string) sharding.Map {
	t.Helper()
	var targets []sharding.Target
	for _, table := range tables {
		targets = append(targets, sharding.Target{DB: db, Table: table})
	}
	m, err := sharding.MapOf(targets...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// address is where a server listens.
func address(t *testing.T, m *server.MariaDB) (host, port string) {
	t.Helper()
	c, err := mysql.ParseDSN(m.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	if host, port, err = net.SplitHostPort(c.Addr); err != nil {
		t.Fatal(err)
	}
	return host, port
}

func target(t *testing.T, r *sharding.Router, table string, key any) sharding.Target {
	t.Helper()
	at, err := r.Target(table, key)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// askedFor runs a query and reads from the logs of the shards which of their tables it read.
func askedFor(t *testing.T, shards map[string]*server.MariaDB, reports *sql.DB, query string, want ...sharding.Target) {
	t.Helper()
	logs := map[string]*sql.DB{}
	for name, shard := range shards {
		logs[name] = shard.Open(t, "logs")
		database.Exec(t, logs[name], "TRUNCATE mysql.general_log")
	}
	for _, column := range database.Texts(t, reports, "SELECT COUNT(*) FROM ("+strings.TrimSuffix(query, ";")+") q") {
		if column == "0" {
			t.Errorf("%s finds nothing", query)
		}
	}
	var got []string
	for name, log := range logs {
		for n := range 4 {
			table := fmt.Sprintf("orders_%02d", n)
			if database.MustNumber(t, log, "SELECT COUNT(*) FROM mysql.general_log WHERE command_type = 'Query' AND argument LIKE CONCAT('select %`', ?, '`%')", table) > 0 {
				got = append(got, sharding.Target{DB: name, Table: table}.String())
			}
		}
	}
	var wanted []string
	for _, at := range want {
		wanted = append(wanted, at.String())
	}
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		t.Errorf("%s asks %v, not %v", query, got, wanted)
	}
}
