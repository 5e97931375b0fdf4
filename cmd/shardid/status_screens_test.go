// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/testwait"
)

var update = flag.Bool("update", false, "write the screens of status in docs/runbook.md anew")

// screens are what status says of a job while it is copied, without a runner, and after the
// switch.
func screens(t *testing.T) string {
	t.Helper()
	m := newMovable(t, 5000)
	m.must(t, 0, "install")
	m.must(t, 0, "seed", "--margin", "100000")
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var out bytes.Buffer
		(&program{}).run(ctx, m.args("run", "--chunk-rows", "50", "--rate", "100"), &out, &out)
	}()
	var all string
	testwait.Until(t, "status knows how long the copy will take, and what holds it back", func() bool {
		all = m.must(t, 0, "status").stdout
		if strings.Contains(all, "is following") {
			t.Fatalf("the copy is over:\n%s", all)
		}
		return strings.Contains(all, " s of copying left\nthrottled: ")
	})
	kill()
	<-ended
	m.exec(t, "UPDATE shardid_runner SET heard = heard - 60, began = began - 60")
	all += "\n" + m.must(t, 0, "status").stdout
	m.must(t, 0, "run", "--once")
	m.must(t, 0, "cutover", "--max-pause", "10m")
	m.must(t, 0, "run", "--once")
	m.exec(t, "UPDATE shardid_runner SET doing = 'brings changes of the shards back'") // as one that goes on says
	all += "\n" + m.must(t, 0, "status").stdout
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(m.file("shards.json"), "shards.json", " "+host+" pid", " db1 pid").Replace(all)
}

var (
	figures = regexp.MustCompile(`\d[\d,.]*`)
	rates   = regexp.MustCompile(`, # (rows|changes)/s`)
	columns = regexp.MustCompile(` +`)
)

// withoutFigures leaves what does not change from one run to the next.
func withoutFigures(screen string) string {
	return columns.ReplaceAllString(rates.ReplaceAllString(figures.ReplaceAllString(screen, "#"), ""), " ")
}

func TestTheRunbooksScreensOfStatusAreThoseOfARun(t *testing.T) {
	const begin, end = "Its screens while rows are copied, when every runner was killed, and after the switch:\n\n```\n", "```\n"
	is := screens(t)
	page := readFile(t, "../../docs/runbook.md")
	before, rest, found := strings.Cut(page, begin)
	if !found {
		t.Fatal("the runbook has no place for them")
	}
	said, after, _ := strings.Cut(rest, end)
	if *update {
		check(os.WriteFile("../../docs/runbook.md", []byte(before+begin+is+end+after), 0o600))
		return
	}
	if withoutFigures(said) != withoutFigures(is) {
		t.Errorf("the runbook says\n%s\nand a run\n%s\nwrite it anew with go test ./cmd/shardid -run Screens -update", said, is)
	}
}
