// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The packages of a nested module are not tested with the module around it. The modules LANES and
// TIDB compile so much code that only `make lanes` and `make tidb` run their tests, and
// .ci/all-tests does not.
func TestTheTestsOfEveryModuleAreRun(t *testing.T) {
	root := moduleRoot(t)
	have := modules(t, root)
	makefile := read(t, root, "Makefile")
	listed := regexp.MustCompile(`(?m)^(MODULES|LANES|TIDB) := (.*)$`).FindAllStringSubmatch(makefile, -1)
	if len(listed) != 3 {
		t.Fatal("the Makefile has no lines MODULES := …, LANES := … and TIDB := …")
	}
	lanes := strings.Fields(listed[1][2] + " " + listed[2][2])
	if inMakefile := slices.Sorted(slices.Values(append(strings.Fields(listed[0][2]), lanes...))); !slices.Equal(inMakefile, have) {
		t.Errorf("there are the modules %v, and the Makefile has %v", have, inMakefile)
	}
	have = slices.DeleteFunc(have, func(dir string) bool { return slices.Contains(lanes, dir) })
	var run []string
	for _, m := range regexp.MustCompile(`(?m)^\s*CGO_ENABLED=[01] run '[^']*' (\S+) (?:'[^']* )?\./\.\.\.['\s]`).FindAllStringSubmatch(read(t, root, ".ci/all-tests"), -1) {
		run = append(run, m[1])
	}
	slices.Sort(run)
	if run = slices.Compact(run); !slices.Equal(run, have) {
		t.Errorf("there are the modules %v, and .ci/all-tests runs %v", have, run)
	}
}

// modules returns the directories with a go.mod, sorted, "." being the root.
func modules(t *testing.T, root string) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if d.Name() == "go.mod" {
			dir, err := filepath.Rel(root, filepath.Dir(path))
			dirs = append(dirs, filepath.ToSlash(dir))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(dirs)
	return dirs
}

func read(t *testing.T, root, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// .ci/all-tests chooses tests by parts of their names. A part that no test has any more would
// move its test, which was renamed, into another run.
func TestEachNameInAllTestsIsThatOfATest(t *testing.T) {
	root := moduleRoot(t)
	script := read(t, root, ".ci/all-tests")
	names := testNames(t, root)
	for _, variable := range []string{"sequential", "random", "together"} {
		var pattern strings.Builder
		for _, m := range regexp.MustCompile(`(?m)^`+variable+`\+?='(.*)'$`).FindAllStringSubmatch(script, -1) {
			pattern.WriteString(m[1])
		}
		before, list, found := strings.Cut(pattern.String(), "(")
		if !found || !strings.HasSuffix(list, ")") {
			t.Fatalf("%s is not a list of names: %s", variable, pattern.String())
		}
		for _, part := range alternatives(strings.TrimSuffix(list, ")")) {
			if !regexp.MustCompile("(?m)" + before + part).MatchString(names) {
				t.Errorf("%s of .ci/all-tests has %s, and no test is called so", variable, part)
			}
		}
	}
}

// testNames returns the names of the tests of all modules, one in a line.
func testNames(t *testing.T, root string) string {
	t.Helper()
	var names strings.Builder
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(tree, path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllSubmatch(text, -1) {
			names.Write(append(m[1], '\n'))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names.String()
}

// alternatives splits a pattern at each | outside of parentheses.
func alternatives(pattern string) (list []string) {
	depth, from := 0, 0
	for i, r := range pattern {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == '|' && depth == 0:
			list = append(list, pattern[from:i])
			from = i + 1
		}
	}
	return append(list, pattern[from:])
}
