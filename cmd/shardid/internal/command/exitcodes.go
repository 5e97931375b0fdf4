// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/cmd/shardid/internal/term"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitUnclean     = 1
	ExitInput       = 2
	ExitFailure     = 3
	ExitInterrupted = 130
)

// Exit codes that only verbs of migrate, rebalance, lookup and ddl have.
const (
	MigrateLocked    = 4
	MigrateFenced    = 5
	MigrateNotReady  = 6
	MigrateThrottled = 7
	MigrateChanged   = 8
	MigrateUnclear   = 9
)

// exitCode is a code, its meaning, and what to do then.
type exitCode struct {
	Code        int
	Meaning, Do string
}

// ExitCodes are those of all commands; the runbook has them, too.
var ExitCodes = []exitCode{
	{ExitOK, "done", "the next step"},
	{ExitUnclean, "something was found: `migrate inspect` or `run` a finding that blocks the job, `migrate verify` rows that differ; " +
		"`demo` rows that are lost, duplicated or misrouted; `doctor` or `inspect` errors; `audit` uneven ids; `route` refused or undecided statements; " +
		"`lookup build` or `verify` values with two rows or without an entry; " +
		"`ddl status` or `drift` shards that lack a version or differ, or versions without a file; `rebalance status` moving slots",
		"read what is printed. `migrate inspect` has fixes; after `migrate verify` let the runner write the rows again, verify"},
	{ExitInput, "the input is wrong, and nothing was written: a flag, an id, a file, a name, or a database that does not let you in; or the user lacks a right there", "read the message; after a GRANT, the same command again"},
	{ExitFailure, "something failed while the command was running, or a database cannot be reached", "the same command again"},
	{MigrateLocked, "`migrate`, `rebalance` or `ddl`: another runner leads the job", "leave it alone, or end it"},
	{MigrateFenced, "`migrate`: a newer runner has taken the job over", "leave it to that one"},
	{MigrateNotReady, "`migrate`, `rebalance`, `lookup` or `ddl`: a precondition is not met", "wait, or do the step before; try again"},
	{MigrateThrottled, "`migrate`: throttled for longer than `--max-throttle`", "find out why"},
	{MigrateChanged, "`migrate` or `rebalance`: the tables or the plan have changed", "read the message: plan again, abort and begin again, or put a shard's rows back"},
	{MigrateUnclear, "`migrate`: tables exist under both names, or under neither", "correct the names by hand: somebody else renamed or created one"},
	{ExitInterrupted, "interrupted", "the same command again"},
}

// ExitHelp is the text about exit codes in the help of every command with subcommands.
func ExitHelp() string { return "Exit codes of all commands:\n" + exitTable(ExitCodes) }

func exitTable(codes []exitCode) string {
	var b strings.Builder
	for _, c := range codes {
		text := c.Meaning
		if c.Do != "" {
			text += "; " + c.Do
		}
		fmt.Fprintf(&b, "  %-4d %s\n", c.Code, term.Folded(strings.ReplaceAll(text, "`", ""), 72, "       "))
	}
	return b.String()
}

// coded is an error with an exit code of its own.
type coded struct {
	error

	code int
}

// Unwrap returns the cause.
func (c coded) Unwrap() error { return c.error }

// WithCode gives an error an exit code.
func WithCode(err error, code int) error { return coded{err, code} }

// CodeOf returns the exit code of an error, and whether it has one.
func CodeOf(err error) (code int, given bool) {
	var has coded
	given = errors.As(err, &has)
	return has.code, given
}
