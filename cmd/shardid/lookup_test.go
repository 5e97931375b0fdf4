// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
)

// lookupsPage is docs/lookups.md.
func lookupsPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/lookups.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pageBlock returns the only code of a language.
func pageBlock(t *testing.T, language string) string {
	t.Helper()
	blocks := strings.Split(lookupsPage(t), "\n```"+language+"\n")
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of %s", len(blocks)-1, language)
	}
	block, _, _ := strings.Cut(blocks[1], "```\n")
	return block
}

// lookupsDB is the page's Go code.
func lookupsDB(ctx context.Context, tables sharding.Map, east, west *sql.DB) *sql.DB {
	users := sharding.Table{Name: "users", Key: "id", Rule: sharding.Mod(4), Map: tables, Lookups: []sharding.Lookup{
		{Column: "email", Table: "users_by_email", Unique: true},
		{Column: "city", Table: "users_by_city"},
	}}
	router, err := sharding.New(sharding.DBs{"east": east, "west": west}, users)
	check(err)
	check(lookups.Create(ctx, lookups.Config{Router: router, Home: east, Table: "users", Column: "email"}))
	check(lookups.Create(ctx, lookups.Config{Router: router, Home: east, Table: "users", Column: "city"}))
	db := shardsql.OpenDB(shardsql.Config{Router: router, Home: east})
	return db
}

// newUsers makes the shards of the page's configuration with 40 users, and returns the
// path of that.
func newUsers(t *testing.T) string {
	t.Helper()
	config := newConfig(t, pageBlock(t, "json"))
	for shard := range 4 {
		db := openFile(t, filepath.Join(filepath.Dir(config), []string{"east.db", "west.db"}[shard%2]))
		table := fmt.Sprintf("users_%d", shard)
		text := "CREATE TABLE " + table + " (id INTEGER PRIMARY KEY, email VARCHAR(100) UNIQUE, city VARCHAR(100), note TEXT);" +
			fmt.Sprintf("WITH RECURSIVE user (n) AS (SELECT %d UNION ALL SELECT n + 4 FROM user WHERE n < 36) INSERT INTO %s (id, email) SELECT n, 'u' || n || '@x' FROM user", shard, table)
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	return config
}

func TestTheGoCodeOfTheLookupsPageIsThatWhichRuns(t *testing.T) {
	source, err := os.ReadFile("lookup_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if block := "\t" + strings.ReplaceAll(strings.TrimSuffix(pageBlock(t, "go"), "\n"), "\n", "\n\t") + "\n"; !strings.Contains(string(source), block) {
		t.Errorf("the page says, but this does not run:\n%s", block)
	}
}

func TestTheStatementsOfTheLookupsPageBecomeWhatItSays(t *testing.T) {
	config := newUsers(t)
	open := func(name string) *sql.DB { return openFile(t, filepath.Join(filepath.Dir(config), name)) }
	tables, err := sharding.Spread([]string{"east", "west"}, 4, "users_%d")
	if err != nil {
		t.Fatal(err)
	}
	db := lookupsDB(t.Context(), tables, open("east.db"), open("west.db"))
	defer func() { _ = db.Close() }()
	rows := strings.Split(lookupsPage(t), "\n| `")[1:]
	if len(rows) < 9 {
		t.Fatalf("%d statements", len(rows))
	}
	for _, row := range rows {
		statement, rest, _ := strings.Cut(row, "` | ")
		want, _, _ := strings.Cut(rest, " | ")
		e, err := shardsql.Explain(t.Context(), db, statement)
		if err != nil || string(e.Kind) != want {
			t.Errorf("%s becomes %s (%v, %v), the page says %s", statement, e.Kind, e.Err, err, want)
		}
	}
}

func TestTheCommandsOfTheLookupsPageDoWhatItSays(t *testing.T) {
	config := newUsers(t)
	var printed []string
	for line := range strings.Lines(pageBlock(t, "sh")) {
		args := strings.Fields(strings.ReplaceAll(line, "shards.json", config))
		printed = append(printed, succeed(t, args[1:]...).stdout)
	}
	if len(printed) != 6 {
		t.Fatalf("%d commands", len(printed))
	}
	for i, want := range []string{`CREATE TABLE IF NOT EXISTS "users_by_email" ("email" VARCHAR(100) NOT NULL, "id" INTEGER NOT NULL, "claim" BIGINT NOT NULL, PRIMARY KEY ("email"));`,
		"CREATE TABLE", "40 values on the shards, 40 entries, 0 missing, 0 left over", "40 values", "0 removed", "the definitions of the shards are equal"} {
		if !strings.Contains(printed[i], want) {
			t.Errorf("command %d: no %q in\n%s", i, want, printed[i])
		}
	}
}

func TestALookupThatIsNotMadeNamesTheCommand(t *testing.T) {
	config := newUsers(t)
	for _, verb := range []string{"build", "verify"} {
		o := execute(t, "lookup", verb, "--config", config, "--table", "users", "--column", "email")
		if o.code == command.ExitOK || !strings.Contains(o.stderr, "create users_by_email with shardid lookup create") {
			t.Errorf("%s: %d, %s", verb, o.code, o.stderr)
		}
	}
}

func TestBuildPrintsAllOwnersOfAValue(t *testing.T) {
	config := newUsers(t)
	succeed(t, "lookup", "create", "--config", config, "--table", "users", "--column", "email")
	db := openFile(t, filepath.Join(filepath.Dir(config), "west.db"))
	if _, err := db.ExecContext(t.Context(), "UPDATE users_1 SET email = 'u2@x' WHERE id = 9; UPDATE users_3 SET email = 'u2@x' WHERE id = 3"); err != nil {
		t.Fatal(err)
	}
	o := execute(t, "lookup", "build", "--config", config, "--table", "users", "--column", "email")
	const want = "VALUE  KEY  SHARD         ENTRY\nu2@x   9    west/users_1  yes\nu2@x   2    east/users_2  no\nu2@x   3    west/users_3  no\n"
	if o.code != command.ExitUnclean || !strings.HasSuffix(o.stdout, want) {
		t.Errorf("%d, %s%s", o.code, o.stdout, o.stderr)
	}
	putInUse(t, config)
	for _, args := range [][]string{{"doctor", "--config", config}, {"lookup", "verify", "--config", config, "--table", "users", "--column", "email"}} {
		if o := execute(t, args...); o.code != command.ExitUnclean || !strings.Contains(o.stdout+o.stderr, "2 rows") || !strings.Contains(o.stdout+o.stderr, "email of another row") {
			t.Errorf("%v: %d, %s%s", args, o.code, o.stdout, o.stderr)
		}
	}
}

// putInUse changes a configuration whose lookup is being built.
func putInUse(t *testing.T, config string) {
	t.Helper()
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(strings.Replace(string(text), `, "building": true`, "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDoctorFindsRowsWithoutAnEntry(t *testing.T) {
	config := newUsers(t)
	succeed(t, "lookup", "create", "--config", config, "--table", "users", "--column", "email")
	succeed(t, "lookup", "build", "--config", config, "--table", "users", "--column", "email")
	putInUse(t, config)
	succeed(t, "doctor", "--config", config)
	db := openFile(t, filepath.Join(filepath.Dir(config), "east.db"))
	if _, err := db.ExecContext(t.Context(), "DELETE FROM users_by_email WHERE id IN (7, 9); INSERT INTO users_by_email VALUES ('x', 5, 1)"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"doctor", "--config", config}, {"lookup", "verify", "--config", config, "--table", "users", "--column", "email"}} {
		if o := execute(t, args...); o.code != command.ExitUnclean || !strings.Contains(o.stdout+o.stderr, "2 of 40 values") {
			t.Errorf("%v: %d, %s%s", args, o.code, o.stdout, o.stderr)
		}
	}
	if o := execute(t, "lookup", "build", "--config", config, "--table", "users", "--column", "email"); o.code == command.ExitOK || !strings.Contains(o.stderr, "Building") {
		t.Errorf("a lookup in use is filled: %d, %s", o.code, o.stderr)
	}
}

func TestALookupNeedsItsNames(t *testing.T) {
	config := newUsers(t)
	for _, args := range [][]string{
		{"lookup", "build", "--config", config},
		{"lookup", "build", "--config", config, "--table", "users", "--column", "city"},
		{"lookup", "verify", "--table", "users", "--column", "email"},
		{"lookup", "verify", "--config", newConfig(t, shardsJSON), "--table", "orders", "--column", "id"},
	} {
		if o := execute(t, args...); o.code != command.ExitInput {
			t.Errorf("%v: %d, %s", args, o.code, o.stderr)
		}
	}
}

// The rows have moved away from where the file says that they are.
func TestLookupsFollowTheSlotsThatARebalanceHasMoved(t *testing.T) {
	config, _ := newSlots(t)
	text := readFile(t, config)
	declared := strings.Replace(text, `"key": "user_id",`, `"key": "user_id", "lookups": [{"column": "id", "table": "orders_by_id", "unique": true, "building": true}],`, 1)
	if declared == text {
		t.Fatal(text)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(declared)
	succeed(t, "lookup", "create", "--config", config, "--table", "orders", "--column", "id")
	succeed(t, "lookup", "build", "--config", config, "--table", "orders", "--column", "id")
	write(strings.Replace(declared, `, "building": true`, "", 1))

	succeed(t, "rebalance", "create", "--config", config)
	succeed(t, "rebalance", "run", "--config", config)
	verify := func() {
		t.Helper()
		o := succeed(t, "lookup", "verify", "--remove", "--config", config, "--table", "orders", "--column", "id")
		if want := "800 values on the shards, 800 entries, 0 missing, 0 left over, 0 removed\n"; o.stdout != want {
			t.Errorf("%s, want %s", o.stdout, want)
		}
		if o := succeed(t, "doctor", "--config", config, "--rows", "-1"); !strings.Contains(o.stdout, "orders_2") {
			t.Errorf("doctor did not look at the new shard:\n%s", o.stdout)
		}
	}
	verify()
	succeed(t, "rebalance", "run", "--config", config, "--drain", "west")
	verify()
	o := succeed(t, "export", "citus", "--config", config)
	if !strings.Contains(o.stdout, "shard_count => 2") {
		t.Errorf("the export goes by another map:\n%s", o.stdout)
	}
}

func TestALookupWithoutItsTableAsksForTheStepBefore(t *testing.T) {
	config := newUsers(t)
	for _, verb := range []string{"build", "verify"} {
		o := execute(t, "lookup", verb, "--config", config, "--table", "users", "--column", "email")
		if o.code != command.MigrateNotReady || !strings.Contains(o.stderr, "create users_by_email with shardid lookup create") {
			t.Errorf("%s: exit code %d: %s", verb, o.code, o.stderr)
		}
	}
}
