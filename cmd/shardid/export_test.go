package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding/export"
)

func TestExportPrintsEachFileUnderItsName(t *testing.T) {
	config := newConfig(t, shardsJSON)
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
	if !strings.Contains(o.stdout, "citus.sql\nnote: Citus needs the sharding key in every primary") {
		t.Error(o.stdout)
	}
}

func TestExportWritesFilesAndReplacesNone(t *testing.T) {
	config, dir := newConfig(t, shardsJSON), filepath.Join(t.TempDir(), "made")
	var out export.Export
	if err := json.Unmarshal([]byte(succeed(t, "export", "vitess", "--config", config, "--json").stdout), &out); err != nil {
		t.Fatal(err)
	}
	succeed(t, "export", "vitess", "--config", config, "--dir", dir)
	for _, f := range out.Files {
		if got := readFile(t, filepath.Join(dir, f.Name)); got != f.Text || f.Text == "" {
			t.Errorf("%s: %q", f.Name, got)
		}
	}
	first := filepath.Join(dir, out.Files[1].Name)
	if err := os.WriteFile(first, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := execute(t, "export", "vitess", "--config", config, "--dir", dir)
	if o.code != exitInput || !strings.Contains(o.stderr, "give an empty --dir") || readFile(t, first) != "mine" {
		t.Errorf("%d, %q", o.code, o.stderr)
	}
}

func TestExportRefusesWithTheReason(t *testing.T) {
	config := newConfig(t, strings.NewReplacer("low(10)", "mod(12)", `"tables": 4`, `"tables": 3`).Replace(shardsJSON))
	for system, says := range map[string]string{
		"vitess": "its targets repeat every 3 slots, and Vitess cuts its ranges by powers of 2; store the slot in a column",
		"tidb":   "there is no file",
		"oracle": "give one of vitess, shardingsphere, citus, tidb",
	} {
		o := execute(t, "export", system, "--config", config)
		if o.code != exitInput || !strings.Contains(o.stderr, says) || !oneSentence(o.stderr) || o.stdout != "" {
			t.Errorf("%s: %d, %q, %q; want %q", system, o.code, o.stdout, o.stderr, says)
		}
	}
	without := newConfig(t, strings.Replace(shardsJSON, `{"keyspace": "shop"}`, `{}`, 1))
	if o := execute(t, "export", "vitess", "--config", without); o.code != exitInput || !strings.Contains(o.stderr, "which keyspace?") {
		t.Errorf("%d, %q", o.code, o.stderr)
	}
	for _, line := range [][]string{{"export"}, {"export", "vitess"}, {"export", "vitess", "citus", "--config", config}} {
		if o := execute(t, line...); o.code != exitInput || !oneSentence(o.stderr) {
			t.Errorf("%v: %d, %q", line, o.code, o.stderr)
		}
	}
}
