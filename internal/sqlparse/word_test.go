// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"go/ast"
	goparser "go/parser"
	gotoken "go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A rule that checks for a word which is not in the table would never match.
func TestWordsThatTheGrammarChecksForAreInTheTable(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := goparser.ParseFile(gotoken.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for node := range ast.Preorder(tree) {
			for _, word := range askedFor(node) {
				if asked++; words[idOf(word)].text != word {
					t.Errorf("%s: %q is not known", file, word)
				}
			}
		}
	}
	if asked < 200 {
		t.Errorf("only %d words are asked for", asked)
	}
}

// askedFor returns the words for which a call or a comparison checks.
func askedFor(node ast.Node) []string {
	var operands []ast.Expr
	switch node := node.(type) {
	case *ast.CallExpr:
		if f, ok := node.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"at", "atBoth", "accept", "expect", "optional"}, f.Sel.Name) {
			operands = node.Args
		}
	case *ast.BinaryExpr:
		if call, ok := node.X.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "is" {
				operands = []ast.Expr{node.Y}
			}
		}
	}
	var list []string
	for _, operand := range operands {
		if l, ok := operand.(*ast.BasicLit); ok && l.Kind == gotoken.STRING {
			if word, err := strconv.Unquote(l.Value); err == nil && word != "" {
				list = append(list, word)
			}
		}
	}
	return list
}
