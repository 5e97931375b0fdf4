// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/schema"
)

// newShards makes the shards of shardsJSON with a few rows, and returns the path
// of the configuration.
func newShards(t *testing.T) string {
	t.Helper()
	config := newConfig(t, shardsJSON)
	fill(t, config, 100)
	return config
}

// fill puts a row for each user into the shard it belongs to.
func fill(t *testing.T, config string, users int) {
	t.Helper()
	for shard := range 4 {
		statement(t, config, shard, fmt.Sprintf("WITH RECURSIVE user (n) AS (SELECT %d UNION ALL SELECT n + 4 FROM user WHERE n + 4 < %d)"+
			" INSERT INTO orders_%02[1]d (user_id) SELECT n FROM user", shard, users))
	}
}

// statement runs SQL in the database of a shard, which it makes if need be.
func statement(t *testing.T, config string, shard int, text string) {
	t.Helper()
	db := openFile(t, filepath.Join(filepath.Dir(config), []string{"east.db", "west.db"}[shard%2]))
	for _, table := range []int{shard % 2, shard%2 + 2} {
		text = fmt.Sprintf("CREATE TABLE IF NOT EXISTS orders_%02d (id INTEGER PRIMARY KEY, user_id INTEGER);", table) + text
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS regions (id INTEGER);"+text); err != nil {
		t.Fatal(err)
	}
}

func TestDoctorOfHealthyShardsReportsNoFinding(t *testing.T) {
	o := succeed(t, "doctor", "--config", newShards(t))
	for _, want := range []string{
		"TABLE    DATABASE  PHYSICAL   ROWS  MISPLACED\n",
		"orders   east      orders_00    25          0\n",
		"         west      orders_03    25          0\n",
		"regions  east      regions       –          –\n",
		"\nEvery row is in the shard of its key, and the definitions of the shards are equal.\n",
	} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in\n%s", want, o.stdout)
		}
	}
}

func TestDoctorExitsWithOneOnErrorsAndSaysWhatToDo(t *testing.T) {
	config := newShards(t)
	statement(t, config, 0, "UPDATE orders_00 SET user_id = 41 WHERE user_id = 40; ALTER TABLE orders_00 ADD x TEXT; ALTER TABLE orders_02 ADD y TEXT")
	statement(t, config, 1, "CREATE TABLE orders_04 (id INTEGER); CREATE TABLE orders_05 (id INTEGER)")
	o := execute(t, "doctor", "--config", config)
	if o.code != command.ExitUnclean || o.stderr != "shardid: the shards are not as the router expects them; the findings say what to do\n" {
		t.Errorf("%d, %q", o.code, o.stderr)
	}
	for _, want := range []string{
		"orders   east      orders_00    25          1\n",
		"\nerror east/orders_00: 1 row is here that the router looks for in another table (misplaced_rows)\n    41 → west/orders_01\n  fix: move each",
		"\nwarning west/orders_04, west/orders_05: it looks like a shard of orders",
	} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in\n%s", want, o.stdout)
		}
	}
	if strings.Index(o.stdout, "\nerror") > strings.Index(o.stdout, "\nwarning") {
		t.Errorf("errors do not come first:\n%s", o.stdout)
	}
}

func TestDoctorPrintsTheDiagnosisAsJSON(t *testing.T) {
	config := newShards(t)
	statement(t, config, 1, "INSERT INTO orders_01 (user_id) VALUES (4), (1)")
	o := execute(t, "doctor", "--config", config, "--json", "--rows", "26")
	var d schema.Diagnosis
	if err := json.Unmarshal([]byte(o.stdout), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Targets) != 6 || len(d.Findings) != 2 || d.Healthy() {
		t.Fatalf("%+v", d)
	}
	f := d.Findings[0]
	if f.Code != schema.MisplacedRows || f.Database != "west" || f.Physical != "orders_01" || f.Examples[0] != (schema.Example{Key: "4", Belongs: "east/orders_00"}) {
		t.Errorf("%+v", f)
	}
	if d.Findings[1].Code != schema.PartlyChecked {
		t.Errorf("%+v", d.Findings[1])
	}
}

// What does not answer is a finding; its password shows nowhere.
func TestDoctorNamesDatabasesThatDoNotAnswer(t *testing.T) {
	config := newConfig(t, strings.Replace(shardsJSON, `{"sqlite": "west.db"}`, `{"env": "SHOP_WEST"}`, 1))
	statement(t, config, 0, "SELECT 1")
	for _, dsn := range []string{"app:s3cret@tcp(127.0.0.1:1)/shop", "mysql://app:s3cret@127.0.0.1:1/shop", "app:s3cret@nonsense", "nowhere.db"} {
		t.Setenv("SHOP_WEST", dsn)
		for _, form := range []string{"--json=true", "--json=false"} {
			o := execute(t, "doctor", "--config", config, form)
			if o.code != command.ExitUnclean || !strings.Contains(o.stdout, "the database cannot be looked at") || strings.Contains(o.stdout+o.stderr, "s3cret") {
				t.Errorf("%s: %d, %q, %q", dsn, o.code, o.stdout, o.stderr)
			}
		}
	}
}
