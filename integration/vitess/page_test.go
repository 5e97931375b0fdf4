// SPDX-License-Identifier: Apache-2.0

package vitess_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// page is the page on Vitess' servers.
const page = "../../docs/to-vitess.md"

// section is a section of the page, whose commands a test runs.
type section struct {
	text string
	ran  []string
}

// newSection reads a section. The test fails unless it runs each command of it.
func newSection(t *testing.T, heading string) *section {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	s := &section{text: rest}
	t.Cleanup(func() {
		for _, line := range s.commands() {
			if !t.Failed() && !slices.Contains(s.ran, line) {
				t.Errorf("the page says %q, which was not run", line)
			}
		}
	})
	return s
}

func (s *section) blocks(language string) (blocks []string) {
	for _, rest := range strings.Split(s.text, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(rest, "```\n")
		blocks = append(blocks, block)
	}
	return blocks
}

// commands are the lines of the shell, those that go on in the next line as one.
func (s *section) commands() (lines []string) {
	text := strings.ReplaceAll(strings.Join(s.blocks("sh"), ""), "\\\n", "")
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// command returns the one command that begins like this.
func (s *section) command(t *testing.T, begins string) string {
	t.Helper()
	var found []string
	for _, line := range s.commands() {
		if strings.HasPrefix(line, begins) {
			found = append(found, line)
		}
	}
	found = slices.Compact(found)
	if len(found) != 1 {
		t.Fatalf("the commands that begin with %q are %q", begins, found)
	}
	s.ran = append(s.ran, found[0])
	return found[0]
}
