// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// translated are the pages with a Chinese version.
var translated = []string{"README.md", "docs/ids.md", "docs/which-generator.md", "docs/sharding.md", "docs/runbook.md"}

func TestAPageSaysTheSameInBothLanguages(t *testing.T) {
	root := moduleRoot(t)
	for _, page := range translated {
		other := strings.TrimSuffix(page, ".md") + ".zh-CN.md"
		for _, d := range differences(readPage(t, root, page), readPage(t, root, other)) {
			t.Errorf("%s and %s: %s", page, other, d)
		}
	}
}

func TestTheReadmeHasFewerThan150Lines(t *testing.T) {
	for _, page := range []string{"README.md", "README.zh-CN.md"} {
		if n := strings.Count(readPage(t, moduleRoot(t), page), "\n"); n >= 150 {
			t.Errorf("%s has %d lines", page, n)
		}
	}
}

func TestATranslationThatLagsBehindIsReported(t *testing.T) {
	const page = "# A\n\n## One\n\n```sh\nmake test # all\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[x](docs/x.md)\n"
	for name, lagging := range map[string]string{
		"a heading": strings.Replace(page, "## One\n", "", 1),
		"code":      strings.Replace(page, "make test", "make check", 1),
		"a row":     strings.Replace(page, "| 1 | 2 |\n", "", 1),
		"a link":    strings.Replace(page, "docs/x.md", "docs/y.md", 1),
	} {
		if len(differences(page, lagging)) == 0 {
			t.Errorf("%s that is missing is not reported", name)
		}
	}
	same := strings.NewReplacer("# A", "# 甲", "## One", "## 一", "# all", "# 全部", "docs/x.md", "docs/x.zh-CN.md").Replace(page)
	if d := differences(page, same); len(d) > 0 {
		t.Errorf("%v", d)
	}
}

func readPage(t *testing.T, root, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	heading = regexp.MustCompile(`(?m)^#+ `)
	row     = regexp.MustCompile(`(?m)^\|.*\|$`)
	item    = regexp.MustCompile(`(?m)^[*-] `)
	link    = regexp.MustCompile(`\]\(([^)]+)\)`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	remark  = regexp.MustCompile(`(?m)\s*(//|#).*$`)
)

// differences returns the differences of two translations of a page apart from prose: the number of
// headings, rows and items, the code without its comments, and the links.
func differences(a, b string) []string {
	var all []string
	for what, of := range map[string]func(string) []string{
		"headings": func(s string) []string { return heading.FindAllString(fence.ReplaceAllString(s, ""), -1) },
		"rows":     func(s string) []string { return slices.Repeat([]string{"row"}, len(row.FindAllString(s, -1))) },
		"items":    func(s string) []string { return item.FindAllString(s, -1) },
		"code":     code,
		"links":    links,
	} {
		if x, y := of(a), of(b); !slices.Equal(x, y) {
			all = append(all, what+" differ:\n"+strings.Join(x, "\n")+"\n--- and ---\n"+strings.Join(y, "\n"))
		}
	}
	return all
}

func code(page string) []string {
	var all []string
	for _, block := range fence.FindAllString(page, -1) {
		all = append(all, remark.ReplaceAllString(block, ""))
	}
	return all
}

// links returns the targets of links, sorted by name, because sentences have another order in
// another language. A page in Chinese links to the Chinese one.
func links(page string) []string {
	var all []string
	for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		if target := strings.Replace(m[1], ".zh-CN.md", ".md", 1); target != "README.md" {
			all = append(all, target)
		}
	}
	slices.Sort(all)
	return all
}
