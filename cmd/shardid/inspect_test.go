// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/schema"
)

func TestInspectPrintsTheReportAsJSON(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			o := execute(t, "inspect", "--json", "--source", newFile(t, readFile(t, s.script)))
			var report schema.Report
			if err := json.Unmarshal([]byte(o.stdout), &report); err != nil {
				t.Fatal(err)
			}
			got := strings.Replace(o.stdout, `"version": "`+report.Server.Version+`"`, `"version": "any"`, 1)
			if got != readFile(t, expected+s.name+".sqlite.json") {
				t.Errorf("stdout differs from the expectation:\n%s", got)
			}
			if found := blocked(report); found != (o.code == command.ExitUnclean) || !found && (o.code != command.ExitOK || o.stderr != "") {
				t.Errorf("exit code %d, stderr: %s", o.code, o.stderr)
			}
		})
	}
}

func TestInspectAlignsTablesAndSaysWhatToDo(t *testing.T) {
	t.Setenv(command.SourceVariable, newFile(t, readFile(t, shop)))
	o := execute(t, "inspect")
	if o.code != command.ExitUnclean || !strings.Contains(o.stderr, "some tables cannot be sharded as they are") {
		t.Errorf("exit code %d, stderr: %s", o.code, o.stderr)
	}
	for _, want := range []string{
		"TABLE            KEY                   TYPE     NEXT ID    USED  REFERS TO\n",
		"Employee         id                    INTEGER        4  0.00 %  boss_id → Employee\n",
		"order_item       order_id, product_id                            order_id → order; product_id → product\n",
		"\nerror order_item: the primary key is (order_id, product_id)\n  fix: move it as a child",
	} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in\n%s", want, o.stdout)
		}
	}
}

func TestInspectMergesEqualFindingsOfSeveralTables(t *testing.T) {
	o := execute(t, "inspect", "--source", newFile(t, "CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (id TEXT PRIMARY KEY); CREATE TABLE c (id INTEGER PRIMARY KEY)"))
	if n := strings.Count(o.stdout, "without AUTOINCREMENT"); n != 1 || !strings.Contains(o.stdout, "\ninfo a, c: without AUTOINCREMENT") {
		t.Errorf("%d times in\n%s", n, o.stdout)
	}
}

func TestInspectTakesEveryFormOfAFileName(t *testing.T) {
	path := newFile(t, smallShop)
	escaped := strings.NewReplacer("%", "%25", "#", "%23", "?", "%3f").Replace(path)
	for _, source := range []string{path, "file:" + escaped, "file://" + escaped, "sqlite://" + escaped, "sqlite:" + escaped, "file:" + escaped + "?mode=rwc&cache=private"} {
		if o := execute(t, "inspect", "--source", source); !strings.Contains(o.stdout, "order_items") {
			t.Errorf("%s: %s", source, o.stdout)
		}
	}
}

func TestInspectOfAnEmptyDatabase(t *testing.T) {
	o := succeed(t, "inspect", "--source", newFile(t, "PRAGMA user_version = 1"))
	if !strings.HasSuffix(o.stdout, ", 0 tables\n") {
		t.Errorf("%q", o.stdout)
	}
}
