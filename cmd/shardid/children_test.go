// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
)

// childJSON has items that lie where their orders do, and have no user.
const childJSON = `{
  "databases": {"east": {"sqlite": "east.db"}, "west": {"sqlite": "west.db"}},
  "tables": [
    {"name": "orders", "key": "user_id", "rule": "low(2)", "group": "orders",
     "spread": {"databases": ["east", "west"], "tables": 4, "pattern": "orders_%02d"}},
    {"name": "items", "key": "user_id", "rule": "low(2)", "group": "orders", "via": "order_id",
     "spread": {"databases": ["east", "west"], "tables": 4, "pattern": "items_%02d"}}],
  "vitess": {"keyspace": "shop"}
}`

func TestExportRefusesChildrenThatLieByTheirParent(t *testing.T) {
	config := newConfig(t, childJSON)
	for _, system := range exportSystems {
		o := execute(t, "export", system, "--config", config)
		want := "export: " + system + `: table items: no exact equivalent: its rows lie in the shards of the rows that its order_id refers to, and have no sharding key themselves ("via"); ` +
			`leave "via" out if the table has the sharding key itself, or add that column; if its parent is placed by its id, write "key": "order_id" instead of "via"`
		if o.code != command.ExitInput || !strings.Contains(o.stderr, want) || !oneSentence(o.stderr) || o.stdout != "" {
			t.Errorf("%s: %d, %q, %q", system, o.code, o.stdout, o.stderr)
		}
	}
	config = newConfig(t, strings.Replace(childJSON, `"shop"`, `"shop", "buckets": {"items": "slot"}`, 1))
	if o := succeed(t, "export", "vitess", "--config", config, "--unchecked"); !strings.Contains(o.stdout, `"column": "slot"`) {
		t.Errorf("%q, %q", o.stdout, o.stderr)
	}
}

func TestDoctorLooksAtChildrenButNotAtTheirRows(t *testing.T) {
	config := newConfig(t, childJSON)
	fill(t, config, 100)
	for shard, table := range []string{"items_00", "items_01", "items_02", "items_03"} {
		statement(t, config, shard, "CREATE TABLE "+table+" (id INTEGER PRIMARY KEY, order_id INTEGER); INSERT INTO "+table+" (order_id) VALUES (1), (2), (NULL)")
	}
	o := succeed(t, "doctor", "--config", config, "--rows", "2")
	for _, want := range []string{
		"orders  east      orders_00   ≥ 2          0\n",
		"items   east      items_00      –          –\n",
		`info east/items_00, east/items_02, west/items_01, west/items_03: its rows lie in the shards of the rows that its order_id refers to, and have no sharding key themselves ("via"); they were not checked (not_checked)` + "\n",
		`, write "key": "order_id" instead of "via"` + "\n",
	} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in\n%s", want, o.stdout)
		}
	}
	statement(t, config, 0, "ALTER TABLE items_00 RENAME order_id TO parent; DROP TABLE items_02")
	o = execute(t, "doctor", "--config", config)
	for _, want := range []string{"there is no column order_id, by which", "east/items_02: the table does not exist"} {
		if o.code != command.ExitUnclean || !strings.Contains(o.stdout, want) {
			t.Errorf("%d, no %q in\n%s", o.code, want, o.stdout)
		}
	}
}

func TestAuditOfAChildSaysWhyItCannot(t *testing.T) {
	o := execute(t, "audit", "--config", newConfig(t, childJSON), "--table", "items")
	if o.code != command.ExitInput || !strings.Contains(o.stderr, "items: its rows lie in the shards of the rows") || !strings.Contains(o.stderr, "; audit its parent; leave") || !oneSentence(o.stderr) || o.stdout != "" {
		t.Errorf("%d, %q, %q", o.code, o.stdout, o.stderr)
	}
}
