// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/sharding/export"
)

func TestExportPrintsEachFileUnderItsName(t *testing.T) {
	config := newShards(t)
	for system, want := range map[string]string{
		"vitess":         "==> shards.json <==\n[\n  {\n    \"shard\": \"-40\",\n    \"tables\": {\n      \"orders\": \"east/orders_00\"\n",
		"shardingsphere": "      shardingColumn: user_id\n",
		"citus":          "SELECT create_reference_table('\"regions\"');\n",
	} {
		o := succeed(t, "export", system, "--config", config)
		if !strings.Contains(o.stdout, want) || o.stderr != "" {
			t.Errorf("%s printed %q, %q; want %q", system, o.stdout, o.stderr, want)
		}
	}
}

func TestExportSaysNotesApartFromTheFiles(t *testing.T) {
	o := succeed(t, "export", "citus", "--config", newConfig(t, shardsJSON), "--dir", filepath.Join(t.TempDir(), "made"))
	if !strings.Contains(o.stdout, "citus.sql\nnote: This export was checked against golden files; Citus itself was not run. Try it on a copy of the data first.\nnote: Citus needs the sharding key in every primary") {
		t.Error(o.stdout)
	}
}

func TestExportWritesFilesAndReplacesNone(t *testing.T) {
	config, dir := newShards(t), filepath.Join(t.TempDir(), "made")
	var out export.Export
	if err := json.Unmarshal([]byte(succeed(t, "export", "vitess", "--config", config, "--json").stdout), &out); err != nil {
		t.Fatal(err)
	}
	succeed(t, "export", "vitess", "--config", config, "--dir", dir)
	for _, f := range out.Files {
		path := filepath.Join(dir, f.Name)
		if got := readFile(t, path); got != f.Text || f.Text == "" {
			t.Errorf("%s: %q", f.Name, got)
		}
		// The servers that take the files run under users of their own.
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o444 != 0o444 {
			t.Errorf("%s cannot be read by others: %v, %v", f.Name, info.Mode(), err)
		}
	}
	first := filepath.Join(dir, out.Files[1].Name)
	if err := os.WriteFile(first, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := execute(t, "export", "vitess", "--config", config, "--dir", dir)
	if o.code != command.ExitInput || !strings.Contains(o.stderr, "give an empty --dir") || readFile(t, first) != "mine" {
		t.Errorf("%d, %q", o.code, o.stderr)
	}
}

func TestExportRefusesWithTheReason(t *testing.T) {
	config := newConfig(t, strings.NewReplacer("low(10)", "mod(12)", `"tables": 4`, `"tables": 3`).Replace(shardsJSON))
	for system, says := range map[string]string{
		"vitess": "its targets repeat every 3 slots, but Vitess divides its ranges by powers of 2; store the slot in a column",
		"tidb":   "there is no file",
		"oracle": "give one of vitess, shardingsphere, citus, tidb",
	} {
		o := execute(t, "export", system, "--config", config)
		if o.code != command.ExitInput || !strings.Contains(o.stderr, says) || !oneSentence(o.stderr) || o.stdout != "" {
			t.Errorf("%s: %d, %q, %q; want %q", system, o.code, o.stdout, o.stderr, says)
		}
	}
	without := newConfig(t, strings.Replace(shardsJSON, `{"keyspace": "shop"}`, `{}`, 1))
	if o := execute(t, "export", "vitess", "--config", without); o.code != command.ExitInput || !strings.Contains(o.stderr, "which keyspace?") {
		t.Errorf("%d, %q", o.code, o.stderr)
	}
	for _, line := range [][]string{{"export"}, {"export", "vitess"}, {"export", "vitess", "citus", "--config", config}} {
		if o := execute(t, line...); o.code != command.ExitInput || !oneSentence(o.stderr) {
			t.Errorf("%v: %d, %q", line, o.code, o.stderr)
		}
	}
}

func TestExportToVitessRefusesRowsThatVitessWouldLose(t *testing.T) {
	for change, says := range map[string]string{
		"INSERT INTO orders_00 (user_id) VALUES (-4), (-8)":          "east/orders_00 has 2 rows whose user_id is negative (-8 is the lowest), and the vindex reverse_bits gives negative numbers no shard",
		"INSERT INTO orders_02 (user_id) VALUES (NULL)":              "east/orders_02: 1 row is here whose user_id is NULL or no sharding key; give them a key",
		"UPDATE orders_00 SET user_id = 41 WHERE user_id = 40":       "east/orders_00: 1 row is here that the router looks for in another table; move each",
		"DROP TABLE orders_02":                                       "east/orders_02: the table does not exist",
		"ALTER TABLE orders_02 RENAME COLUMN user_id TO customer_id": "east/orders_02: there is no column user_id",
	} {
		config := newShards(t)
		statement(t, config, 0, change)
		o := execute(t, "export", "vitess", "--config", config)
		if o.code != command.ExitInput || !strings.Contains(o.stderr, says) || o.stdout != "" {
			t.Errorf("%s: %d, %q, %q", change, o.code, o.stdout, o.stderr)
		}
		if o := succeed(t, "export", "vitess", "--config", config, "--unchecked"); !strings.Contains(o.stdout, "note: The live shards were not checked") {
			t.Errorf("%s: %q", change, o.stdout)
		}
	}
}

func TestExportToVitessRefusesSlotsOfOtherTables(t *testing.T) {
	config := newConfig(t, strings.Replace(shardsJSON, `"keyspace": "shop"`, `"keyspace": "shop", "buckets": {"orders": "slot"}`, 1))
	fill(t, config, 100)
	for table := range 4 {
		statement(t, config, table, fmt.Sprintf("ALTER TABLE orders_%02d ADD slot INTEGER; UPDATE orders_%02[1]d SET slot = user_id & 1023", table))
	}
	// A stored slot serves negative keys as well.
	statement(t, config, 0, "INSERT INTO orders_00 (user_id, slot) VALUES (-4, 1020)")
	succeed(t, "export", "vitess", "--config", config)
	statement(t, config, 0, "INSERT INTO orders_00 (user_id, slot) VALUES (4, 5), (8, NULL)")
	o := execute(t, "export", "vitess", "--config", config)
	for _, want := range []string{"east/orders_00 has rows whose slot is no slot of that table", "5 (1 rows)", "NULL (1 rows)", "set slot to the slot that the rule gives the row's user_id"} {
		if o.code != command.ExitInput || !strings.Contains(o.stderr, want) {
			t.Errorf("%d, %q; want %q", o.code, o.stderr, want)
		}
	}
}

func TestExportToVitessIsNoMistakeOfTheUsersWhenADatabaseDoesNotAnswer(t *testing.T) {
	o := execute(t, "export", "vitess", "--config", newConfig(t, shardsJSON))
	if o.code != command.ExitFailure || !strings.Contains(o.stderr, "not all rows of") || !strings.Contains(o.stderr, "give --unchecked if the shards do not exist yet") || o.stdout != "" {
		t.Errorf("%d, %q, %q", o.code, o.stdout, o.stderr)
	}
}
