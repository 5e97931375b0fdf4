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

// Exit codes of the verbs of migrate.
const (
	MigrateUsage       = 1
	MigratePreflight   = 2
	MigrateDivergence  = 3
	MigrateLocked      = 4
	MigrateFenced      = 5
	MigrateNotReady    = 6
	MigrateThrottled   = 7
	MigrateChanged     = 8
	MigrateUnclear     = 9
	MigrateInterrupted = 10
)

// exitCode is a code, its meaning, and what to do then.
type exitCode struct {
	Code        int
	Meaning, Do string
}

// exitCodes are the codes of all commands except the verbs of migrate. MigrateCodes are
// those of the verbs; the runbook has them, too.
var (
	exitCodes = []exitCode{
		{ExitOK, "done", ""},
		{ExitUnclean, "demo found rows that are lost, duplicated or misrouted; doctor or inspect found errors; audit found uneven ids; route found refused statements; ddl status or drift found shards that lack a version or differ; rebalance status found moving slots", ""},
		{ExitInput, "the input is wrong: a flag, an id, a file, a server; nothing was written", ""},
		{ExitFailure, "something failed while the command was running", ""},
		{ExitInterrupted, "interrupted", ""},
	}
	MigrateCodes = []exitCode{
		{ExitOK, "done", "the next step"},
		{MigrateUsage, "a flag, a file or a name is wrong, or a database does not let you in", "read the message"},
		{MigratePreflight, "a finding blocks the job", "`inspect`, and its fixes"},
		{MigrateDivergence, "rows differ", "let the runner write them again, verify"},
		{MigrateLocked, "another runner leads the job", "leave it alone, or end it"},
		{MigrateFenced, "a newer runner has taken the job over", "leave it to that one"},
		{MigrateNotReady, "a precondition is not met", "wait, or do the step before; try again"},
		{MigrateThrottled, "throttled for longer than `--max-throttle`", "find out why"},
		{MigrateChanged, "the tables or the plan have changed", "read the message: plan again, abort and begin again, or put a shard's rows back"},
		{MigrateUnclear, "tables exist under both names, or under neither", "correct the names by hand: somebody else renamed or created one"},
		{MigrateInterrupted, "interrupted, or a database failed", "the same command again"},
	}
)

// ExitHelp is the text about exit codes in the help of every command with subcommands.
func ExitHelp() string {
	return "Exit codes of the verbs of migrate:\n" + exitTable(MigrateCodes) + "\nExit codes of all other commands:\n" + exitTable(exitCodes)
}

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
