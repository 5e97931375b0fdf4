// SPDX-License-Identifier: Apache-2.0

package shoptest

import (
	"os"
	"strings"
	"testing"
)

func TestThePageOnShardingShowsTheCodeOfTheShops(t *testing.T) {
	var code strings.Builder
	for _, file := range []string{"../setup/setup.go", "../../gormshop/main.go", "../../gormshop/tags_test.go", "../../sqlxshop/main.go", "../../worker/main.go"} {
		code.WriteString(strings.ReplaceAll("\n"+read(t, file), "\n\t", "\n"))
	}
	blocks := strings.Split(read(t, "../../../docs/sharding.md"), "\n```go\n")[1:]
	if len(blocks) != 11 {
		t.Errorf("the page has %d blocks of Go, not 11", len(blocks))
	}
	for _, rest := range blocks {
		block, _, closed := strings.Cut(rest, "```\n")
		if !closed || !strings.Contains(code.String(), "\n"+block) {
			t.Errorf("no shop has these lines:\n%s", block)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
