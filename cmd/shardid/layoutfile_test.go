// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
)

// shardsJSON names two files beside it.
const shardsJSON = `{
  "databases": {"east": {"sqlite": "east.db"}, "west": {"sqlite": "west.db"}},
  "tables": [{"name": "orders", "key": "user_id", "rule": "low(10)",
    "spread": {"databases": ["east", "west"], "tables": 4, "pattern": "orders_%02d"}}],
  "broadcast": ["regions"],
  "vitess": {"keyspace": "shop"}
}`

// newConfig writes a configuration and returns its path.
func newConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shards.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMistakesInTheConfigurationAreOneClearSentence(t *testing.T) {
	table := func(fields string) string {
		return `{"databases": {"a": {"sqlite": "a.db"}}, "tables": [{"name": "t", "key": "k", ` + fields + `}]}`
	}
	spread := `"spread": {"databases": ["a"], "tables": 2, "pattern": "t_%d"}`
	for name, test := range map[string]struct{ config, says string }{
		"no JSON":            {"databases:", "--config "},
		"unknown field":      {`{"dsn": "app:s3cret@tcp(h)/d"}`, `line 1, column 2: there is no field "dsn"`},
		"DSN in the file":    {`{"databases": {"a": "app:s3cret@tcp(h)/d"}}`, "see shardid export --help for its form"},
		"no tables":          {`{"databases": {"a": {"sqlite": "a.db"}}}`, "no tables; list them in \"tables\""},
		"empty file":         {"", "the file is empty; see shardid export --help"},
		"empty object":       {"{}", `no tables; list them in "tables", as in shardid export --help`},
		"unknown home":       {strings.Replace(table(`"rule": "low(1)", `+spread), `{"databases"`, `{"home": "north", "databases"`, 1), `"home" is "north", which is not one of "databases"`},
		"no key":             {strings.Replace(table(`"rule": "low(1)", `+spread), `"key": "k", `, "", 1), `give "key", the column whose value leads to the shard`},
		"no name":            {strings.Replace(table(`"rule": "low(1)", `+spread), `"name": "t", `, "", 1), `give "name", the name of the table in statements`},
		"no rule":            {table(spread), `give "rule", as low(10)`},
		"rule of one":        {table(`"rule": "bits(1)", ` + spread), `write two numbers, as in bits(1, 8)`},
		"list of words":      {table(`"rule": "list(1 = a)", ` + spread), `"1 = a" has no slot; write it as list(de = 0, fr = 1)`},
		"list from 1":        {table(`"rule": "list(a=1)", ` + spread), `slot 0 has no value; number the slots from 0 without gaps`},
		"unknown rule":       {table(`"rule": "middle(3)", ` + spread), `rule "middle(3)" is unknown; give one of low`},
		"unknown rule, text": {table(`"rule": "middle(half)", ` + spread), `rule "middle(half)" is unknown; give one of low`},
		"rule by months":     {table(`"rule": "interval(month)", ` + spread), `rule "interval(month)": write it as interval(2025-01-01, 2027-01-01, 24h)`},
		"times of nonsense":  {table(`"rule": "interval(2025-01-01, soon, 24h)", ` + spread), `"soon" is not a day, as 2025-01-01`},
		"pieces of nonsense": {table(`"rule": "interval(2025-01-01, 2027-01-01, 1 day)", ` + spread), `unknown unit " day" in duration "1 day"`},
		"zone of nonsense":   {table(`"rule": "interval(2025-01-01, 2027-01-01, 24h, zone = Mars)", ` + spread), `unknown time zone Mars`},
		"option of nonsense": {table(`"rule": "interval(2025-01-01, 2027-01-01, 24h, unit = 1s)", ` + spread), `"unit" is neither precision nor zone`},
		"times backwards":    {table(`"rule": "interval(2025-01-01, 2024-01-01, 24h)", ` + spread), `to must be after from`},
		"rule of nonsense":   {table(`"rule": "low", ` + spread), `write it as low(10)`},
		"rule with a word":   {table(`"rule": "low(x)", ` + spread), `"x" is not a whole number; write whole numbers`},
		"rule of two":        {table(`"rule": "low(1, 2)", ` + spread), `write one number, as in low(8)`},
		"rule out of range":  {table(`"rule": "low(99)", ` + spread), `bits must be from 1 to 16`},
		"rule of Also":       {table(`"rule": "low(1)", "also": [{"column": "id", "rule": "x"}], ` + spread), `rule "x"`},
		"parent of nothing":  {table(`"rule": "low(1)", "parents": [{"column": "p", "table": "u"}], ` + spread), `"u": not a sharded table; declare it, too`},
		"no map":             {table(`"rule": "low(1)"`), `give either "spread" or "targets"`},
		"two maps":           {table(`"rule": "low(1)", "targets": ["a/b"], ` + spread), `give either "spread" or "targets"`},
		"target of nothing":  {table(`"rule": "low(1)", "targets": ["a", "b"]`), `write each as "database/table"`},
		"unknown database":   {table(`"rule": "low(1)", "targets": ["b/x", "b/y"]`), `no database "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := newConfig(t, test.config)
			for _, line := range [][]string{{"export", "citus"}, {"doctor"}} {
				o := execute(t, append(line, "--config", path)...)
				if o.code != command.ExitInput || !strings.Contains(o.stderr, test.says) || !oneSentence(o.stderr) || o.stdout != "" || strings.Contains(o.stderr, "s3cret") {
					t.Errorf("%v: %d, %q, %q; want %q", line, o.code, o.stdout, o.stderr, test.says)
				}
			}
		})
	}
}

func TestDatabasesAreNamedByEnvironmentOrFile(t *testing.T) {
	path := newConfig(t, strings.NewReplacer(`{"sqlite": "east.db"}`, `{"env": "SHOP_EAST"}`, `{"sqlite": "west.db"}`, `{"file": "west.dsn"}`).Replace(shardsJSON))
	east := newFile(t, "CREATE TABLE orders_00 (user_id INTEGER); CREATE TABLE orders_02 (user_id INTEGER); CREATE TABLE regions (id INTEGER)")
	west := newFile(t, "CREATE TABLE orders_01 (user_id INTEGER); CREATE TABLE orders_03 (user_id INTEGER); CREATE TABLE regions (id INTEGER)")
	o := execute(t, "doctor", "--config", path)
	if o.code != command.ExitInput || !strings.Contains(o.stderr, `database "`) {
		t.Errorf("%d, %q", o.code, o.stderr)
	}
	t.Setenv("SHOP_EAST", east)
	o = execute(t, "doctor", "--config", path)
	if o.code != command.ExitInput || !strings.Contains(o.stderr, `database "west": the file west.dsn cannot be read`) {
		t.Errorf("%d, %q", o.code, o.stderr)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "west.dsn"), []byte("\uFEFF"+west+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	succeed(t, "doctor", "--config", path)
}
