package main

import (
	"fmt"
	"strings"
)

// Exit codes.
const (
	exitOK          = 0
	exitUnclean     = 1
	exitInput       = 2
	exitFailure     = 3
	exitInterrupted = 130
)

// Exit codes of the verbs of migrate.
const (
	migrateUsage       = 1
	migratePreflight   = 2
	migrateDivergence  = 3
	migrateLocked      = 4
	migrateFenced      = 5
	migrateNotReady    = 6
	migrateThrottled   = 7
	migrateChanged     = 8
	migrateUnclear     = 9
	migrateInterrupted = 10
)

// exitCode is a code, what it says, and what to do then.
type exitCode struct {
	code        int
	meaning, do string
}

// exitCodes are those of all commands but the verbs of migrate, migrateCodes those
// of the verbs, as the runbook has them, too.
var (
	exitCodes = []exitCode{
		{exitOK, "done", ""},
		{exitUnclean, "demo found rows that are lost, duplicated or misrouted; doctor or inspect found errors; audit found uneven ids; ddl status or drift found shards that lack a version or differ; rebalance status found slots on their way", ""},
		{exitInput, "the input is wrong: a flag, an id, a file, a server; nothing was written", ""},
		{exitFailure, "something failed while the command was at work", ""},
		{exitInterrupted, "interrupted", ""},
	}
	migrateCodes = []exitCode{
		{exitOK, "done", "the next step"},
		{migrateUsage, "a flag, a file or a name is wrong, or a database does not let you in", "read the message"},
		{migratePreflight, "something stands in the way", "`inspect`, and its fixes"},
		{migrateDivergence, "rows differ", "let the runner write them again, verify"},
		{migrateLocked, "another runner leads the job", "leave it alone, or end it"},
		{migrateFenced, "a newer runner has taken the job over", "leave it to that one"},
		{migrateNotReady, "not now", "wait, or do the step before; try again"},
		{migrateThrottled, "throttled for longer than `--max-throttle`", "find out why"},
		{migrateChanged, "the tables or the plan are not what they were", "read the message: plan again, abort and begin again, or put a shard's rows back"},
		{migrateUnclear, "tables exist under both names, or under neither", "put the names right by hand: somebody else renamed one"},
		{migrateInterrupted, "interrupted, or a database failed", "the same command again"},
	}
)

// exitHelp is what the help of every command that has commands says about them.
func exitHelp() string {
	return "Exit codes of the verbs of migrate:\n" + exitTable(migrateCodes) + "\nExit codes of all other commands:\n" + exitTable(exitCodes)
}

func exitTable(codes []exitCode) string {
	var b strings.Builder
	for _, c := range codes {
		text := c.meaning
		if c.do != "" {
			text += "; " + c.do
		}
		fmt.Fprintf(&b, "  %-4d %s\n", c.code, folded(strings.ReplaceAll(text, "`", ""), 72, "       "))
	}
	return b.String()
}

// folded breaks a text into lines, the second and later ones indented.
func folded(text string, width int, indent string) string {
	var b strings.Builder
	line := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == 0:
		case line+1+len(word) > width:
			b.WriteString("\n" + indent)
			line = 0
		default:
			b.WriteByte(' ')
			line++
		}
		b.WriteString(word)
		line += len(word)
	}
	return b.String()
}
