// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/sqltext"
)

var update = flag.Bool("update", false, "write the trees in testdata as they are read now")

// section is a text of a file in testdata with its tree.
type section struct{ dialect, text, tree string }

// dialects are the words above a text in testdata.
var dialects = map[string]Dialect{
	"mysql":                      {Family: MySQL},
	"mysql ansi_quotes":          {Family: MySQL, Flavor: sqltext.MySQL &^ sqltext.DoubleQuoteStrings},
	"mysql no_backslash_escapes": {Family: MySQL, Flavor: sqltext.MySQL &^ sqltext.BackslashEscapes},
	"mysql pipes_as_concat":      {Family: MySQL, PipesAsConcat: true},
	"mysql low_not":              {Family: MySQL, LowNot: true},
	"mariadb":                    {Family: MariaDB},
	"sqlite":                     {Family: SQLite},
	"postgresql":                 {Family: PostgreSQL},
}

// readSections reads a file of testdata: "=== dialect", a text, "---", its tree.
func readSections(t testing.TB, file string) []section {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []section
	for part := range strings.SplitSeq("\n"+string(content), "\n=== ") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		dialect, rest, _ := strings.Cut(part, "\n")
		text, tree, _ := strings.Cut(rest, "\n---\n")
		if _, known := dialects[dialect]; !known {
			t.Fatalf("%s: dialect %q", file, dialect)
		}
		list = append(list, section{dialect, strings.TrimRight(text, "\n"), strings.TrimRight(tree, "\n")})
	}
	return list
}

func testdata(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	return files
}

func TestTextsAreParsedAsTheTreesInTestdata(t *testing.T) {
	for _, file := range testdata(t) {
		var out strings.Builder
		for _, s := range readSections(t, file) {
			got := strings.TrimRight(dump(Parse(s.text, dialects[s.dialect])), "\n")
			if got != s.tree && !*update {
				t.Errorf("%s, %s\n%s\nread as\n%s\nwant\n%s", filepath.Base(file), s.dialect, s.text, got, s.tree)
			}
			out.WriteString("=== " + s.dialect + "\n" + s.text + "\n---\n" + got + "\n\n")
		}
		if !*update {
			continue
		}
		if err := os.WriteFile(file, []byte(strings.TrimSuffix(out.String(), "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
