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

func TestReadmeSaysWhereEveryPackageIs(t *testing.T) {
	root := moduleRoot(t)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	places := append(packagesOf(goFiles(t, root)), "integration")
	for _, p := range missingFrom(string(readme), places) {
		t.Errorf("the table under %q in README.md does not name `%s`", whereHeading, p)
	}
}

func TestPackageMissingFromReadmeIsReported(t *testing.T) {
	const readme = `# shardid
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
	got := missingFrom(readme, places)
	if want := []string{"sharding", "gormplugin", "sqlxhook"}; !slices.Equal(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
}

const whereHeading = "## Where is …?"

var backticked = regexp.MustCompile("`([^`]+)`")

// missingFrom returns those packages that no row of the table names, be it
// themselves or a file of theirs. What lies below main is main's own affair.
func missingFrom(readme string, packages []string) []string {
	named := map[string]bool{}
	for _, match := range backticked.FindAllStringSubmatch(whereTable(readme), -1) {
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
func whereTable(readme string) string {
	_, section, _ := strings.Cut(readme, whereHeading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := slices.DeleteFunc(strings.Split(section, "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "|")
	})
	return strings.Join(rows, "\n")
}
