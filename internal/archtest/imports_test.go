// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"slices"
	"strings"
	"testing"
)

func TestEveryImportFollowsTheRules(t *testing.T) {
	root := moduleRoot(t)
	files := goFiles(t, root)
	for _, file := range files {
		for _, i := range importsOf(t, root, file, nil) {
			if c := complaint(i); c != "" {
				t.Error(c)
			}
		}
	}
	if !slices.Contains(packagesOf(files), "keygen") {
		t.Errorf("package keygen was not looked at, only %v", packagesOf(files))
	}
}

func TestEveryPackageBelongsToALayer(t *testing.T) {
	for _, p := range packagesOf(goFiles(t, moduleRoot(t))) {
		if _, known := ruleOf(p); !known {
			t.Errorf("package %q has no line in rules_test.go; decide to which layer it belongs", p)
		}
	}
}

func TestEveryRuleIsAboutAnExistingPackage(t *testing.T) {
	packages := packagesOf(goFiles(t, moduleRoot(t)))
	for _, r := range layers {
		if !strings.HasSuffix(r.path, "...") && !slices.Contains(packages, r.path) {
			t.Errorf("there is no package %s any more; remove its line from rules_test.go", r.path)
		}
	}
}

func TestNoPackageMayImportOneOfAHigherLayer(t *testing.T) {
	for i, r := range layers {
		for _, target := range r.may {
			isBelow := func(lower rule) bool { return matches(lower.path, target) }
			if !slices.ContainsFunc(layers[:i], isBelow) {
				t.Errorf("%s may import %s, which is not above it in the table", r.path, target)
			}
		}
	}
}

func TestForbiddenImportIsReportedWithItsReason(t *testing.T) {
	for _, test := range []struct{ file, imports, want string }{
		{"keygen/x.go", module + "/sharding", "keygen must not import sharding: it is the contract"},
		{"keygen/x.go", "gorm.io/gorm", "users without GORM"},
		{"keygen/snowflake/x.go", module + "/keygen/segment", "it is a leaf"},
		{"keygen/segment/x.go", module + "/keygen/sqlstore", "it is a leaf"},
		{"keygen/sqlstore/x.go", module + "/keygen/snowflake", "may import keygen/segment, keygen/workerid"},
		{"keygen/sqlstore/x.go", "modernc.org/sqlite", "a library takes a *sql.DB"},
		{"keygen/segment/x.go", "testing", "only keygen/keygentest, internal/testkit/..., internal/testwait may"},
		{"sharding/x.go", "testing/synctest", "only keygen/keygentest, internal/testkit/..., internal/testwait may"},
		{"sharding/x.go", module + "/gormplugin", "it decides where a key lives"},
		{"sqlxhook/x.go", module + "/gormplugin", "its siblings are alternatives"},
		{"sqlxhook/x.go", "gorm.io/gorm/schema", "only gormplugin, internal/testkit/gormsuite, internal/testkit/shardsuite, cmd/... may"},
		{"gormplugin/x.go", "github.com/jmoiron/sqlx/reflectx", "only sqlxhook, internal/testkit/gatesuite, cmd/... may"},
		{"sqlxhook/x.go", "unsafe", "cannot be measured behind a database (nobody may)"},
		{"schema/x.go", "github.com/go-sql-driver/mysql", "a library takes a *sql.DB"},
		{"schema/x.go", "golang.org/x/sync/errgroup", "a dependency here becomes one of every user"},
		{"internal/dialect/x.go", module + "/keygen", "may import the standard library only"},
		{"internal/attic/x.go", "fmt", "decide to which layer it belongs"},
	} {
		got := complaintsAbout(t, test.file, test.imports)
		if !strings.HasPrefix(got, test.file+": ") || !strings.Contains(got, test.want) {
			t.Errorf("%s imports %s: the report is %q, want the file and %q", test.file, test.imports, got, test.want)
		}
	}
}

func TestPermittedImportIsNotReported(t *testing.T) {
	for _, test := range []struct{ file, imports string }{
		{"keygen/x.go", "database/sql"},
		{"keygen/keygentest/x.go", "testing"},
		{"keygen/segment/x.go", module + "/keygen"},
		{"keygen/sqlstore/x.go", module + "/keygen/segment"},
		{"keygen/sqlstore/x.go", module + "/internal/dialect"},
		{"sharding/x.go", module + "/keygen"},
		{"gormplugin/x.go", "gorm.io/gorm"},
		{"gormplugin/x.go", module + "/internal/keyfield"},
		{"sqlxhook/x.go", "github.com/jmoiron/sqlx"},
		{"cmd/shardid/x.go", module + "/gormplugin"},
		{"cmd/shardid/x.go", "github.com/spf13/cobra"},
		{"cmd/shardid/demo/x.go", "modernc.org/sqlite"},
	} {
		if got := complaintsAbout(t, test.file, test.imports); got != "" {
			t.Errorf("%s imports %s: reported as %q", test.file, test.imports, got)
		}
	}
}

// complaintsAbout checks a synthetic file with one import.
func complaintsAbout(t *testing.T, file, imports string) string {
	t.Helper()
	var found []string
	for _, i := range importsOf(t, "", file, "package x\n\nimport _ \""+imports+"\"\n") {
		if c := complaint(i); c != "" {
			found = append(found, c)
		}
	}
	return strings.Join(found, "\n")
}
