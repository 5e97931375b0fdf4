// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"testing"
)

func TestDDLCreatesEachOwnTableInOrder(t *testing.T) {
	for _, name := range []string{"mysql", "mariadb", "postgres", "sqlite"} {
		text, err := DDL(name)
		if err != nil {
			t.Fatal(err)
		}
		steps := plan(text)
		if len(steps) != len(ownTables) {
			t.Fatalf("%s creates %d tables", name, len(steps))
		}
		for _, step := range steps {
			if !strings.Contains(step.create, "CREATE TABLE IF NOT EXISTS") || !strings.Contains(step.create, step.own.name) {
				t.Errorf("%s: not for %s:\n%s", name, step.own.name, step.create)
			}
			for _, statement := range step.fill {
				if !strings.Contains(statement, "INTO") || !strings.Contains(statement, step.own.name) {
					t.Errorf("%s: not for %s:\n%s", name, step.own.name, statement)
				}
			}
		}
	}
}

func TestDDLOfUnknownDatabaseSaysWhichAreKnown(t *testing.T) {
	if _, err := DDL("oracle"); err == nil || !strings.Contains(err.Error(), "MySQL, MariaDB, PostgreSQL and SQLite") {
		t.Errorf("error is %v", err)
	}
}
