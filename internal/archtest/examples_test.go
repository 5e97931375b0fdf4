// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// publicTrees are the trees of packages whose functions a user calls.
var publicTrees = []string{"keygen", "sharding", "gormplugin", "sqlxhook", "schema"}

// shownByTests are the exported functions that no example can call, and the test that shows
// them: suites take a *testing.T, and the others need servers.
var shownByTests = map[string]string{
	"keygen/keygentest.Generator":        "keygen/keygentest/own_test.go",
	"keygen/keygentest.Keys":             "keygen/objectid/objectid_test.go",
	"keygen/keygentest.Ledger":           "keygen/keygentest/own_test.go",
	"keygen/keygentest.Source":           "keygen/keygentest/own_test.go",
	"schema/rebalance.CheckExpansion":    "integration/migrate/expand_test.go",
	"schema/rebalance.PlanExpansion":     "integration/migrate/expand_test.go",
	"schema/rebalance.UnseenConnections": "integration/migrate/expand_test.go",
}

// A function is shown if an example of its own package is named after it or calls it, and the
// example has an output, so that go test runs it.
func TestEveryFunctionOfThePublicPackagesIsShownByAnExampleThatRuns(t *testing.T) {
	root := moduleRoot(t)
	functions, found := 0, map[string]bool{}
	for _, pkg := range packagesOf(goFiles(t, root)) {
		if !isPublic(pkg) {
			continue
		}
		exported, shown := exportedAndShown(t, root, pkg)
		functions += len(exported)
		for _, name := range exported {
			full := pkg + "." + name
			test, excepted := shownByTests[full]
			switch {
			case !shown[name] && !excepted:
				t.Errorf("no example of %s that runs shows %s: write one, with // Output:", pkg, name)
			case shown[name] && excepted:
				t.Errorf("an example shows %s now: remove its line from shownByTests", full)
			case excepted && !strings.Contains(read(t, root, test), path.Base(pkg)+"."+name+"("):
				t.Errorf("%s does not call %s", test, full)
			}
			found[full] = true
		}
	}
	for name := range shownByTests {
		if !found[name] {
			t.Errorf("%s is in shownByTests, and is not there", name)
		}
	}
	if functions < 100 {
		t.Errorf("only %d functions were looked at", functions)
	}
}

// errorsShownByTests are packages whose errors need several processes or servers, and the test that
// shows them.
var errorsShownByTests = map[string]string{
	"keygen/ticket":    "keygen/ticket/expansion_test.go",
	"keygen/zookeeper": "keygen/zookeeper/correction_test.go",
}

// An error that a program handles must be named in an example that runs. Families of errors are
// handled in the same way, so each package shows some of them.
func TestEveryPublicPackageWithErrorsShowsHowTheyAreHandled(t *testing.T) {
	root, all, named := moduleRoot(t), 0, 0
	for _, pkg := range packagesOf(goFiles(t, root)) {
		if !isPublic(pkg) {
			continue
		}
		sentinels := exportedErrors(t, root, pkg)
		_, shown := exportedAndShown(t, root, pkg)
		here := 0
		for _, name := range sentinels {
			if shown[name] {
				here++
			}
		}
		all, named = all+len(sentinels), named+here
		test, excepted := errorsShownByTests[pkg]
		switch {
		case len(sentinels) > 0 && here == 0 && !excepted:
			t.Errorf("no example of %s that runs names one of its errors, %v", pkg, sentinels)
		case excepted && !strings.Contains(read(t, root, test), path.Base(pkg)+".Err"):
			t.Errorf("%s names no error of %s", test, pkg)
		}
	}
	if all < 100 || 2*named < all {
		t.Errorf("examples name %d of %d errors; show at least half of them", named, all)
	}
}

// exportedErrors returns the exported variables of a package whose names begin with Err.
func exportedErrors(t *testing.T, root, pkg string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !isCode(file) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if strings.HasPrefix(name.Name, "Err") {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

func isPublic(pkg string) bool {
	return slices.Contains(publicTrees, strings.Split(pkg, "/")[0]) && !strings.Contains(pkg+"/", "/internal/")
}

// exportedAndShown returns the exported functions of a package, and the names that its examples
// with an output are named after or call.
func exportedAndShown(t *testing.T, root, pkg string) (exported []string, shown map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	shown = map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if isCode(file) {
			for _, d := range parsed.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() {
					exported = append(exported, f.Name.Name)
				}
			}
			continue
		}
		qualifier := nameOfImport(parsed, module+"/"+pkg)
		for _, e := range doc.Examples(parsed) {
			if e.Output == "" && !e.EmptyOutput {
				continue
			}
			shown[strings.Split(e.Name, "_")[0]] = true
			ast.Inspect(e.Code, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if of, ok := s.X.(*ast.Ident); ok && of.Name == qualifier {
						shown[s.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
	return exported, shown
}

// nameOfImport returns the name that the file has for a package.
func nameOfImport(file *ast.File, pkg string) string {
	for _, i := range file.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err == nil && p == pkg {
			if i.Name != nil {
				return i.Name.Name
			}
			return path.Base(pkg)
		}
	}
	return ""
}
