// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
)

func TestMistakesInExpandEndWithOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shards.json")
	layout := `{"databases": {"one": {"sqlite": "one.db"}},
		"tables": [{"name": "orders", "key": "id", "rule": "epochs(0 = 0)", "targets": ["one/orders_0"]},
			{"name": "events", "key": "id", "rule": "low(1)", "targets": ["one/events_0", "one/events_1"]}]}`
	if err := os.WriteFile(file, []byte(layout), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"--tables: name the one table":  {},
		"has no table":                  {"--tables", "users"},
		"write database/table":          {"--tables", "orders", "--add", "two"},
		"--margin":                      {"--tables", "orders", "--add", "one/orders_1"},
		"no database":                   {"--tables", "orders", "--add", "two/orders_1", "--margin", "5"},
		"is not made by Epochs":         {"--tables", "events", "--add", "one/events_2", "--margin", "5"},
		"takes no arguments":            {"orders"},
		"unknown flag":                  {"--cut", "5"},
		"occurs as":                     {"--tables", "orders", "--add", "one/x,one/X", "--margin", "5"},
		"is given twice":                {"--tables", "orders", "--add", "one/orders_0", "--margin", "5"},
		"which tables and databases":    {"--config", ""},
		"does not exist; name the file": {"--config", file + "x"},
	} {
		o := execute(t, append([]string{"migrate", "expand", "--config", file}, args...)...)
		if o.code != command.ExitInput || !strings.Contains(o.stderr, want) || o.stdout != "" {
			t.Errorf("%v: exit code %d, %s", args, o.code, o.stderr)
		}
	}
}
