// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// The README's Go blocks are the bodies of functions that executed examples call, without their
// returns.
func TestTheReadmesExamplesAreThoseThatRun(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "\n```go\n")[1:]
	want := []string{
		body(t, "forms_example_test.go", "readme"),
		body(t, "example_test.go", "readmeShards"),
	}
	if len(blocks) != len(want) {
		t.Fatalf("the README has %d Go blocks, want %d", len(blocks), len(want))
	}
	for i := range want {
		block, _, closed := strings.Cut(blocks[i], "```\n")
		if !closed || block != want[i] {
			t.Errorf("the README says:\n%s\nbut what runs is:\n%s", block, want[i])
		}
	}
}

// body returns a function's statements without the last one and without indentation.
func body(t *testing.T, file, name string) string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
			last := f.Body.List[len(f.Body.List)-1]
			lines := source[set.Position(f.Body.Lbrace).Offset+2 : set.Position(last.Pos()).Offset-1]
			return strings.TrimPrefix(string(bytes.ReplaceAll(lines, []byte("\n\t"), []byte("\n"))), "\t")
		}
	}
	t.Fatalf("%s has no function %s", file, name)
	return ""
}
