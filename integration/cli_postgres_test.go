// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/server"
)

// The commands that only read accept the URL of a PostgreSQL database.
func TestCommandsThatLookTakePostgreSQL(t *testing.T) {
	dir := t.TempDir()
	program := server.Command(t)
	p := server.SharePostgres(t)
	for _, name := range []string{"a", "b"} {
		db := p.Open(t, name)
		for _, table := range []string{"orders_0", "orders_1"} {
			if _, err := db.ExecContext(t.Context(), "CREATE TABLE "+table+" (id bigserial PRIMARY KEY, user_id bigint NOT NULL)"); err != nil {
				t.Fatal(err)
			}
		}
	}
	config := filepath.Join(dir, "shards.json")
	layout := `{"databases": {"a": {"env": "A"}, "b": {"env": "B"}}, "tables": [{"name": "orders", "key": "user_id", "rule": "low(2)",
		"spread": {"databases": ["a", "b"], "tables": 2, "pattern": "orders_%d"}}],
		"home": "a", "vitess": {"keyspace": "shop"}}`
	if err := os.WriteFile(config, []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(source string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = []string{"SHARDID_SOURCE=" + source, "A=" + p.DSN("a") + "?sslmode=disable", "B=" + p.DSN("b") + "?sslmode=disable"}
		out, err := cmd.CombinedOutput()
		t.Logf("shardid %s: %v\n%s", strings.Join(args, " "), err, out)
		return string(out)
	}
	expect := func(out, want string) {
		t.Helper()
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	expect(run(p.DSN("a")+"?sslmode=disable", "inspect"), "PostgreSQL 1")
	expect(run("", "doctor", "--config", config), "a/orders_1, b/orders_0: it looks like a shard of orders")
	expect(run(p.DSN("a")+"?sslmode=disable", "migrate", "inspect", "--config", config), "the source has no table orders")
	stepped := filepath.Join(dir, "stepped.json")
	layout = `{"databases": {"a": {"env": "A"}, "b": {"env": "B"}}, "tables": [{"name": "orders", "key": "id", "rule": "epochs(0 = 0)", "targets": ["a/orders_0"]}]}`
	if err := os.WriteFile(stepped, []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(run("", "migrate", "expand", "--config", stepped, "--tables", "orders", "--add", "b/orders_1", "--margin", "10"), "only servers of MySQL and MariaDB number by auto_increment_offset")
	expect(run("", "migrate", "expand", "--config", stepped, "--tables", "orders"), "only servers of MySQL and MariaDB number by auto_increment_offset")

	for verb, want := range map[string]string{
		"export vitess":             "a is not MySQL: its rows have to be copied; there is no adoption in place",
		"export vitess --unchecked": "The live shards were not checked",
		"export shardingsphere":     "actualDataNodes: a.orders_0,b.orders_1",
		"export citus":              "create_distributed_table",
		"export tidb":               "TiDB takes tables of MySQL and MariaDB only; this database is another",
		"export fdw":                `ATTACH PARTITION "shards_b"."orders_1" FOR VALUES IN (1)`,
		"export spider":             "read shards on PostgreSQL with `shardid export fdw`",
		"audit --table orders":      "0 ids over 4 slots",
	} {
		expect(run("", append(strings.Fields(verb), "--config", config)...), want)
	}
	expect(run("", "route", "--config", config, "--dialect", "postgres", "SELECT id FROM orders WHERE user_id = $1", "2"), `a/orders_0: SELECT id FROM "orders_0" AS orders`)

	missing, err := url.Parse(p.DSN("nowhere"))
	if err != nil {
		t.Fatal(err)
	}
	missing.User, missing.RawQuery = url.UserPassword("postgres", "s3cret"), "sslmode=disable"
	out := run(missing.String(), "inspect")
	expect(out, "does not exist")
	if strings.Contains(out, "s3cret") {
		t.Error("it shows the password")
	}
}
