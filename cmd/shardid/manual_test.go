// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestEveryCommandHasAManualPageThatManReads(t *testing.T) {
	dir := t.TempDir()
	succeed(t, "man", dir)
	var pages int
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		page := readFile(t, filepath.Join(dir, name+".1"))
		for _, want := range []string{".SH NAME\n", ".SH SYNOPSIS\n", strings.ReplaceAll(cmd.Short, "-", `\-`)} {
			if !strings.Contains(page, want) {
				t.Errorf("%s has no %q", name, want)
			}
		}
		pages++
		for _, child := range cmd.Commands() {
			if child.IsAvailableCommand() {
				look(child)
			}
		}
	}
	look((&program{}).newRoot())
	if pages < 30 {
		t.Errorf("only %d pages", pages)
	}
	page := readFile(t, filepath.Join(dir, "shardid-migrate-run.1"))
	for _, want := range []string{`\fB\-\-chunk\-rows\fR int`, `\fB\-\-config\fR string`, ".BR shardid\\-migrate (1)\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}

// man takes a line that begins with a dot or an apostrophe as a request.
func TestManualPagesHaveNoRequestsButTheirOwn(t *testing.T) {
	dir := t.TempDir()
	succeed(t, "man", dir)
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	request := regexp.MustCompile(`^(\.TH "SHARDID[A-Z-]*" 1 "" "shardid [^"]+"|\.SH [A-Z ]+|\.TP|\.nf|\.fi|\.BR \S+ \(1\),?)$`)
	for _, page := range pages {
		for line := range strings.SplitSeq(readFile(t, page), "\n") {
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !request.MatchString(line) {
				t.Errorf("%s: %s", filepath.Base(page), line)
			}
		}
	}
}

func TestManualPagesNeedADirectory(t *testing.T) {
	for _, args := range [][]string{{"man"}, {"man", filepath.Join(t.TempDir(), "none")}, {"man", os.TempDir(), os.TempDir()}} {
		if o := execute(t, args...); o.code != 2 || !strings.Contains(o.stderr, "directory") {
			t.Errorf("%v: %+v", args, o)
		}
	}
}
