// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// A package and a type have these limits; code that needs more is two nouns.
const (
	mostFiles   = 25
	mostMethods = 25
)

func TestAPackageHasFewFilesAndItsTypesFewMethods(t *testing.T) {
	root := moduleRoot(t)
	have := map[string]int{}
	limits := map[string]int{}
	for _, file := range goFiles(t, root) {
		pkg := packageOf(file)
		have[pkg]++
		limits[pkg] = mostFiles
		for _, of := range receivers(t, filepath.Join(root, file)) {
			typ := pkg + "." + of
			have[typ]++
			limits[typ] = mostMethods
		}
	}
	for name, n := range have {
		if limit := limits[name]; n > limit {
			t.Errorf("%s has %d, and may have %d: divide it", name, n, limit)
		}
	}
}

// receivers returns the type of each method in a file.
func receivers(t *testing.T, file string) (types []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
			types = append(types, typeName(f.Recv.List[0].Type))
		}
	}
	return types
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return strings.TrimSpace(fmt.Sprint(e))
}
