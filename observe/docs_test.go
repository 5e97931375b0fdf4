// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shardid/shardid/observe"
)

var update = flag.Bool("update", false, "write the table of metrics in docs/operating.md anew")

var operating = filepath.Join("..", "docs", "operating.md")

const (
	tableBegins = "<!-- metrics: written by observe's tests; go test ./observe -update -->\n"
	tableEnds   = "<!-- end of metrics -->\n"
)

func TestThePageOnOperatingListsEveryMetric(t *testing.T) {
	var want strings.Builder
	want.WriteString("| metric | type | labels | |\n|---|---|---|---|\n")
	for _, f := range observe.Describe() {
		want.WriteString("| `" + f.Name + "` | " + string(f.Type) + " | " + strings.Join(f.Labels, ", ") + " | " + f.Help + " |\n")
	}
	page, err := os.ReadFile(operating)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), tableBegins)
	table, after, ends := strings.Cut(rest, tableEnds)
	switch {
	case !begins || !ends:
		t.Fatal("the page has no place for the table")
	case *update:
		if err := os.WriteFile(operating, []byte(before+tableBegins+want.String()+tableEnds+after), 0o600); err != nil {
			t.Fatal(err)
		}
	case table != want.String():
		t.Errorf("the page has\n%s\nand there are\n%s", table, want.String())
	}
}

func TestThePageOnOperatingNamesNoOtherMetric(t *testing.T) {
	page, err := os.ReadFile(operating)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range observe.Describe() {
		names[f.Name] = true
		if f.Type == observe.Histogram {
			names[f.Name+"_count"] = true
		}
	}
	for _, name := range regexp.MustCompile(`shardid_\w+`).FindAllString(string(page), -1) {
		if !names[name] {
			t.Errorf("%s is no metric", name)
		}
	}
}
