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

// A package and a type have room for so much; who needs more has found two nouns.
const (
	mostFiles   = 25
	mostMethods = 25
)

// larger are the packages and types that are above the limit, by how much they have. They
// may get smaller and not larger, and what keeps to the limit has no line here.
var larger = map[string]int{
	"keygen/keygentest.ledgerSuite": 27,
	"keygen/snowflake.Generator":    30,
	"keygen/zookeeper.Workers":      27,
	"keygen/zookeeper.registry":     26,
}

func TestAPackageHasFewFilesAndItsTypesFewMethods(t *testing.T) {
	root := moduleRoot(t)
	have := map[string]int{}
	limits := map[string]int{}
	for _, file := range goFiles(t, root) {
		room := packageOf(file)
		have[room]++
		limits[room] = mostFiles
		for _, of := range receivers(t, filepath.Join(root, file)) {
			typ := room + "." + of
			have[typ]++
			limits[typ] = mostMethods
		}
	}
	for name, n := range have {
		limit := limits[name]
		if allowed, is := larger[name]; is {
			if n < allowed {
				t.Errorf("%s has %d, fewer than the %d that it may have: write that down in larger", name, n, allowed)
			}
			limit = allowed
		}
		if n > limit {
			t.Errorf("%s has %d, and may have %d: divide it", name, n, limit)
		}
	}
	for name := range larger {
		if have[name] == 0 {
			t.Errorf("%s is in larger, and is not there", name)
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
