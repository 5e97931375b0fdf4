// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestContributingSaysWhereEveryPackageIs(t *testing.T) {
	root := moduleRoot(t)
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	places := append(packagesOf(goFiles(t, root)), "integration")
	places = slices.DeleteFunc(places, func(p string) bool { return p == "" }) // it has no code
	for _, p := range missingFrom(string(page), places) {
		t.Errorf("the table under %q in CONTRIBUTING.md does not name `%s`", whereHeading, p)
	}
}

func TestAPackageMissingFromTheTableIsReported(t *testing.T) {
	const page = `# shardid
The package ` + "`sharding`" + ` is mentioned, but not in the table.

## Where is …?

| What | Where |
|---|---|
| the contract | ` + "`keygen`" + ` |
| snowflake ids | ` + "`keygen/snowflake/`" + ` |
| tables | ` + "`schema/inspect.go`" + ` |

Outside of the table: ` + "`gormplugin`" + `.

## Limits

| ` + "`sqlxhook`" + ` | none |
`
	places := []string{"keygen", "keygen/snowflake", "schema", "sharding", "gormplugin", "sqlxhook", "cmd/shardid/demo"}
	got := missingFrom(page, places)
	if want := []string{"sharding", "gormplugin", "sqlxhook"}; !slices.Equal(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
}

const whereHeading = "## Where is …?"

var backticked = regexp.MustCompile("`([^`]+)`")

// missingFrom returns those packages that no row of the table names, be it
// themselves or a file of theirs. What lies below main is main's own affair.
func missingFrom(page string, packages []string) []string {
	named := map[string]bool{}
	for _, match := range backticked.FindAllStringSubmatch(whereTable(page), -1) {
		place := path.Clean(match[1])
		named[place] = true
		if path.Ext(place) != "" {
			named[path.Dir(place)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(packages), func(p string) bool {
		return named[p] || strings.HasPrefix(p, "cmd/shardid/")
	})
}

// whereTable returns the rows of the tables in the section.
func whereTable(page string) string {
	_, section, _ := strings.Cut(page, whereHeading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := slices.DeleteFunc(strings.Split(section, "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "|")
	})
	return strings.Join(rows, "\n")
}
