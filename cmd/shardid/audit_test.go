// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
)

func TestAuditJudgesTheIDsOfTheShards(t *testing.T) {
	config := newConfig(t, strings.Replace(shardsJSON, "low(10)", "low(2)", 1))
	fill(t, config, 400)
	o := succeed(t, "audit", "--config", config, "--table", "orders")
	if want := "orders.user_id: 400 ids over 4 slots: chi² per degree of freedom 0.000"; !strings.HasPrefix(o.stdout, want) || !strings.HasSuffix(o.stdout, "; even\n") {
		t.Errorf("%q", o.stdout)
	}
	statement(t, config, 0, "INSERT INTO orders_00 (user_id) SELECT user_id FROM orders_00 UNION ALL SELECT user_id FROM orders_00 UNION ALL SELECT user_id FROM orders_00")
	o = execute(t, "audit", "--config", config, "--table", "ORDERS", "--json")
	var got auditResult
	if err := json.Unmarshal([]byte(o.stdout), &got); err != nil {
		t.Fatal(err)
	}
	if o.code != command.ExitUnclean || got.Verdict != "uneven" || got.IDs != 700 || got.Fullest != 0 || got.Most != 400 || o.stderr != "shardid: the ids spread unevenly over the slots\n" {
		t.Errorf("%d, %+v, %q", o.code, got, o.stderr)
	}
	o = succeed(t, "audit", "--config", config, "--table", "orders", "--rows", "1")
	if !strings.Contains(o.stdout, "4 ids over 4 slots") || !strings.HasSuffix(o.stdout, "too few ids for a result; take 20 or more\n") {
		t.Errorf("%q", o.stdout)
	}
}

// Ids of a generator that begins its sequence at 0 in each millisecond, as from a
// table that is not sharded yet.
func TestAuditReadsIDsOfATableThatIsToBeSharded(t *testing.T) {
	config, ids := newConfig(t, shardsJSON), filepath.Join(t.TempDir(), "ids")
	var text bytes.Buffer
	for i := range 10_000 {
		fmt.Fprintf(&text, "%d\n", 1541815603606036480+i<<22)
	}
	if err := os.WriteFile(ids, append(text.Bytes(), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	o := execute(t, "audit", "--config", config, "--table", "orders", "--ids", ids)
	if o.code != command.ExitUnclean || !strings.Contains(o.stdout, "1023 slots are empty") {
		t.Errorf("%d, %q, %q", o.code, o.stdout, o.stderr)
	}
}

func TestAuditRefusesWhatItCannotCount(t *testing.T) {
	config, ids := newConfig(t, shardsJSON), filepath.Join(t.TempDir(), "ids")
	if err := os.WriteFile(ids, []byte("1\n\nx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for says, args := range map[string][]string{
		"give --config FILE": {"--table", "orders"},
		`there is no table "items" in the configuration; its tables are orders`: {"--config", config, "--table", "items"},
		`"note" does not lead to a slot of orders`:                              {"--config", config, "--table", "orders", "--column", "note"},
		"which table? give --table; the configuration has orders":               {"--config", config},
		`"0" for "--rows" flag: it must be 1 or more`:                           {"--config", config, "--table", "orders", "--rows", "0"},
		"line 3 is not an id": {"--config", config, "--table", "orders", "--ids", ids},
		"nowhere does not exist; name a file with one id per line": {"--config", config, "--table", "orders", "--ids", "nowhere"},
		"there is no file": {"--config", config, "--table", "orders"},
	} {
		o := execute(t, append([]string{"audit"}, args...)...)
		if o.code != command.ExitInput || !strings.Contains(o.stderr, says) || !oneSentence(o.stderr) || o.stdout != "" {
			t.Errorf("%v: %d, %q, %q; want %q", args, o.code, o.stdout, o.stderr, says)
		}
	}
}
