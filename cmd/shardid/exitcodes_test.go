// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
	"github.com/shardid/shardid/schema/versions"
)

func TestAllHelpListsTheSameExitCodes(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"migrate", "--help"}} {
		if o := succeed(t, args...); !strings.Contains(o.stdout, command.ExitHelp()) {
			t.Errorf("%v says:\n%s", args, o.stdout)
		}
	}
	for line := range strings.Lines(command.ExitHelp()) {
		if len(line) > 81 {
			t.Errorf("%d letters: %s", len(line), line)
		}
	}
}

func TestTheRunbookListsTheExitCodes(t *testing.T) {
	var table strings.Builder
	table.WriteString("| code | meaning | what to do |\n|---|---|---|\n")
	for _, c := range command.ExitCodes {
		fmt.Fprintf(&table, "| %d | %s | %s |\n", c.Code, c.Meaning, c.Do)
	}
	if !strings.Contains(readFile(t, "../../docs/runbook.md"), table.String()+"\n") {
		t.Errorf("the runbook lacks this table:\n%s", table.String())
	}
}

func TestAMissingRightHasTheSameExitCodeInEveryCommand(t *testing.T) {
	p := &program{parsed: true}
	for _, text := range []string{
		"Error 1142 (42000): CREATE command denied to user 'mover'@'db1' for table `shop_west`.`orders_1`",
		"ERROR: permission denied for table orders (SQLSTATE 42501)",
	} {
		if code := p.exitCode(t.Context(), fmt.Errorf("rebalance: move slots: %w", errors.New(text))); code != command.ExitInput {
			t.Errorf("%s: exit code %d", text, code)
		}
	}
}

// A supervisor repeats a command that ended with 3, and not one that ended with 2.
func TestADatabaseThatIsAwayEndsEveryCommandWithTheSameExitCode(t *testing.T) {
	const away = "app:s3cret@tcp(127.0.0.1:1)/shop"
	t.Setenv("AWAY", away)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "00001_orders.sql"), []byte("-- +goose Up\nCREATE TABLE orders (user_id BIGINT);\n-- +goose Down\nDROP TABLE orders;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := newConfig(t, `{"databases": {"east": {"env": "AWAY"}}, "home": "east", "slots": {"name": "shop", "shards": {"orders": ["east/orders_0"]}},
		"vitess": {"keyspace": "shop"}, "tables": [{"name": "orders", "key": "user_id", "rule": "low(4)", "lookups": [{"column": "number", "table": "orders_by_number"}], "targets": [`+strings.Repeat(`"east/orders_0", `, 15)+`"east/orders_0"]}]}`)
	for _, line := range []string{
		"inspect --source " + away, "inspect --source mysql://app:s3cret@127.0.0.1:1/shop", "inspect --source postgres://app:s3cret@127.0.0.1:1/shop", "serve --source " + away,
		"doctor --config FILE", "audit --config FILE --table orders", "export vitess --config FILE", "export tidb --config FILE", "export spider --config FILE",
		"ddl up --config FILE --dir DIR", "ddl down --config FILE --dir DIR", "ddl plan --config FILE --dir DIR", "ddl status --config FILE --dir DIR", "ddl drift --config FILE --dir DIR",
		"ddl adopt --config FILE --dir DIR --to 1", "ddl resolve --config FILE --dir DIR --version 1 --table east/orders_0 --done",
		"lookup create --config FILE --table orders --column number", "lookup build --config FILE --table orders --column number", "lookup verify --config FILE --table orders --column number",
		"rebalance create --config FILE", "rebalance plan --config FILE", "rebalance status --config FILE", "rebalance run --config FILE", "rebalance abort --config FILE",
		"migrate inspect --config FILE --source " + away, "migrate status --config FILE --source " + away, "migrate verify --config FILE --source " + away,
	} {
		args := strings.Fields(strings.NewReplacer("FILE", config, "DIR", dir).Replace(line))
		if o := execute(t, args...); o.code != command.ExitFailure || strings.Contains(o.stderr, "s3cret") {
			t.Errorf("%s: exit code %d: %s", line, o.code, o.stderr)
		}
	}
}

func TestAnAddressThatIsInUseIsAMistakeOfTheUser(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ids := newFile(t, succeed(t, "schema", "--dialect", "sqlite").stdout)
	if o := execute(t, "serve", "--source", ids, "--listen", l.Addr().String()); o.code != command.ExitInput || !strings.Contains(o.stderr, "give a free address") {
		t.Errorf("exit code %d: %s", o.code, o.stderr)
	}
}

// The same command again does not help in any of these.
func TestDDLEndsWithTheExitCodeOfTheCause(t *testing.T) {
	for cause, want := range map[error]int{
		versions.ErrLocked: command.MigrateLocked, versions.ErrUnclear: command.MigrateNotReady, versions.ErrPartial: command.MigrateNotReady,
		versions.ErrDiffers: command.MigrateNotReady, versions.ErrNotInFlight: command.ExitInput, versions.ErrNoDown: command.ExitInput,
	} {
		err := new(ddl).explained(fmt.Errorf("versions: east: %w", cause), layoutfile.NewMask(nil))
		if code := (&program{parsed: true}).exitCode(t.Context(), err); code != want {
			t.Errorf("%v: exit code %d, want %d", cause, code, want)
		}
	}
}

func TestResolvingAStatementThatIsNotInFlightIsAMistakeOfTheUser(t *testing.T) {
	config, dir := newConfig(t, shardsJSON), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "00001_orders.sql"), []byte("-- +goose Up\nCREATE TABLE orders (user_id BIGINT);\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ddl := func(verb string, args ...string) []string {
		return append([]string{"ddl", verb, "--config", config, "--dir", dir}, args...)
	}
	succeed(t, ddl("up")...)
	for table, says := range map[string]string{
		"south/orders_00": "the router has no database south; name the one",
		"east/orders_01":  "has no statement for east/orders_01; name the table",
		"east/orders_00":  "there is nothing to resolve of 00001_orders.sql on east/orders_00; run Up",
	} {
		if o := execute(t, ddl("resolve", "--version", "1", "--table", table, "--done")...); o.code != command.ExitInput || !strings.Contains(o.stderr, says) {
			t.Errorf("%s: exit code %d: %s", table, o.code, o.stderr)
		}
	}
}
