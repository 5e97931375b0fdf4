// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"maps"
	"os"
	"regexp"
	"testing"
)

// Programs compare codes with texts, so the documentation has these.
func TestTheDocumentedTextsOfCodesAreThoseOfFindings(t *testing.T) {
	t.Parallel()
	documented := constants(t, "finding.go", `(?m)^\t\w+ +(?:Code|Severity) += preflight\.(\w+) *// "(\w+)": `)
	found := constants(t, "../internal/preflight/finding.go", `(?m)^\t(\w+) += "(\w+)"$`)
	if len(found) == 0 || !maps.Equal(documented, found) {
		t.Errorf("documented are %v, and findings have %v", documented, found)
	}
}

// constants returns what the expression finds in a file: names, and the texts of them.
func constants(t *testing.T, file, expression string) map[string]string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(string(source), -1) {
		all[m[1]] = m[2]
	}
	return all
}
