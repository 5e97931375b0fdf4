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

// The README's first Go block is the body of the function readme, which an
// executed example calls, without its return.
func TestTheReadmesExampleIsTheOneThatRuns(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "\n```go\n")
	block, _, closed := strings.Cut(block, "```\n")
	if !found || !closed {
		t.Fatal("the README has no Go block")
	}
	if want := body(t, "forms_example_test.go", "readme"); block != want {
		t.Errorf("the README says:\n%s\nbut what runs is:\n%s", block, want)
	}
}

// body returns a function's statements but the last, without their indentation.
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
