// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"os"
	"strings"
	"testing"
)

func TestThePageOnMocksShowsWhatRuns(t *testing.T) {
	page := readText(t, "../docs/testing-with-go-sqlmock.md")
	runs := dedented(readText(t, "sqlmock_test.go")) + dedented(readText(t, "../sqlxhook/example_test.go"))
	blocks := strings.Split(page, "\n```go\n")[1:]
	if len(blocks) != 5 {
		t.Errorf("the page has %d blocks of Go, want 5", len(blocks))
	}
	for _, rest := range blocks {
		block, _, closed := strings.Cut(rest, "```\n")
		if !closed || !strings.Contains(runs, block) {
			t.Errorf("no example has these lines:\n%s", block)
		}
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dedented returns source without the indentation of functions' statements.
func dedented(source string) string {
	return strings.ReplaceAll("\n"+source, "\n\t", "\n")
}
