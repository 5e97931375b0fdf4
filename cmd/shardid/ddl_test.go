// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/schema/versions"
)

func TestDDLSaysThatThereIsNothingToDo(t *testing.T) {
	config, dir := newConfig(t, shardsJSON), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "00001_orders.sql"), []byte("-- +goose Up\nCREATE TABLE orders (user_id BIGINT);\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(verb string, args ...string) outcome {
		t.Helper()
		return succeed(t, append([]string{"ddl", verb, "--config", config, "--dir", dir}, args...)...)
	}
	if o := run("up"); strings.Contains(o.stderr, "every version") {
		t.Errorf("%q", o.stderr)
	}
	for _, verb := range []string{"up", "plan"} {
		if o := run(verb); o.stdout != "" || o.stderr != "every version is applied\n" {
			t.Errorf("%s: %q, %q", verb, o.stdout, o.stderr)
		}
		if o := run(verb, "--to", "1"); o.stdout != "" || o.stderr != "every version up to 1 is applied\n" {
			t.Errorf("%s --to 1: %q, %q", verb, o.stdout, o.stderr)
		}
	}
}

func TestAVersionWhoseFileIsMissingShowsInStatus(t *testing.T) {
	config := newConfig(t, `{"databases": {"main": {"sqlite": "main.db"}, "east": {"sqlite": "east.db"}}, "home": "main", "tables": [
		{"name": "orders", "key": "user_id", "rule": "mod(1)", "targets": ["east/orders_0"]},
		{"name": "logs", "key": "user_id", "rule": "mod(1)", "targets": ["main/logs_0"]}]}`)
	dir := t.TempDir()
	for name, table := range map[string]string{"00001_orders.sql": "orders", "00002_logs.sql": "logs"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("-- +goose Up\nCREATE TABLE "+table+" (user_id BIGINT);\n-- +goose Down\nDROP TABLE "+table+";\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := func(verb string) []string { return []string{"ddl", verb, "--config", config, "--dir", dir} }
	succeed(t, args("up")...)
	if err := os.Remove(filepath.Join(dir, "00002_logs.sql")); err != nil {
		t.Fatal(err)
	}
	if o := execute(t, args("status")...); o.code != command.ExitUnclean || !strings.Contains(o.stdout, "2  (no file)") || !strings.Contains(o.stderr, "restore their files") {
		t.Errorf("exit code %d: %s%s", o.code, o.stdout, o.stderr)
	}
	for _, verb := range []string{"up", "plan", "down"} {
		if o := execute(t, args(verb)...); o.code != command.ExitInput || !strings.Contains(o.stderr, "main has version 2, and no file has; restore its file") {
			t.Errorf("%s: exit code %d: %s%s", verb, o.code, o.stdout, o.stderr)
		}
	}
}

func TestAStatusSaysWhyADatabaseIsUnreachable(t *testing.T) {
	t.Setenv("DDL_EAST", "mover:s3cret@tcp(127.0.0.1:1)/shop")
	config := newConfig(t, `{"databases": {"east": {"env": "DDL_EAST"}}, "tables": [{"name": "orders", "key": "user_id", "rule": "mod(1)", "targets": ["east/orders_0"]}]}`)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "00001_orders.sql"), []byte("-- +goose Up\nCREATE TABLE orders (user_id BIGINT);\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := execute(t, "ddl", "status", "--config", config, "--dir", dir)
	for _, says := range []string{"database east cannot be reached: cannot connect to mover:***@tcp(127.0.0.1:1)/shop", "repeat the command when they are back"} {
		if o.code != command.ExitFailure || !strings.Contains(o.stderr, says) {
			t.Errorf("exit code %d: %s", o.code, o.stderr)
		}
	}
}

func TestAStatusOfManyDatabasesFitsTheScreen(t *testing.T) {
	m := versions.Matrix{Unreachable: map[string]string{"shop_07": "no route to host"}, Lines: []versions.Line{
		{Version: 1, File: "00001_orders.sql", Cells: map[string]versions.Cell{}}, {Version: 2, File: "00002_note.sql", Cells: map[string]versions.Cell{}},
	}}
	for i := range 50 {
		db := fmt.Sprintf("shop_%02d", i)
		m.Databases = append(m.Databases, db)
		m.Lines[0].Cells[db] = versions.Cell{State: versions.Applied}
		switch i {
		case 3:
			m.Lines[1].Cells[db] = versions.Cell{State: versions.Partial, Done: 1, Steps: 4}
		case 7:
		default:
			m.Lines[1].Cells[db] = versions.Cell{State: versions.Pending}
		}
	}
	want := `VERSION  FILE              STATE        DATABASES  WHICH
      1  00001_orders.sql  applied             50  all
      2  00002_note.sql    pending             48  shop_00, shop_01, shop_02, shop_04, shop_05, …
      2  00002_note.sql    partial 1/4          1  shop_03
      2  00002_note.sql    unreachable          1  shop_07
`
	if got := statusTable(io.Discard, &m).String(); got != want {
		t.Errorf("%s", got)
	}
}
