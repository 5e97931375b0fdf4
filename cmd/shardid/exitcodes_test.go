// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
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
