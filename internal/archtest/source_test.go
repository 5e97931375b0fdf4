// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/shardid/shardid"

// moduleRoot is the nearest directory above with a go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for !exists(filepath.Join(dir, "go.mod")) {
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod in any directory above")
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// goFiles lists the module's Go files except tests, by paths below root.
func goFiles(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && outside(path):
			return filepath.SkipDir
		case d.IsDir() || !isCode(path):
			return nil
		}
		file, err := filepath.Rel(root, path)
		files = append(files, filepath.ToSlash(file))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// outside reports whether the go command would not look into the directory for
// packages of this module.
func outside(dir string) bool {
	name := filepath.Base(dir)
	return name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") ||
		exists(filepath.Join(dir, "go.mod"))
}

func isCode(path string) bool {
	return strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
}

// importsOf parses the imports of a file; src may be its text, or nil to read
// it below root.
func importsOf(t *testing.T, root, file string, src any) []importing {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), src, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var found []importing
	for _, spec := range parsed.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		target, own := strings.CutPrefix(path, module+"/")
		found = append(found, importing{packageOf(file), file, target, own})
	}
	return found
}

func packagesOf(files []string) []string {
	var packages []string
	for _, file := range files {
		packages = append(packages, packageOf(file))
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

func packageOf(file string) string {
	i := strings.LastIndex(file, "/")
	return file[:max(i, 0)]
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
