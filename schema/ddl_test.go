package schema

import (
	"strings"
	"testing"
)

func TestDDLHasOneStatementForEachOwnTableInOrder(t *testing.T) {
	for _, name := range []string{"mysql", "mariadb", "sqlite"} {
		text, err := DDL(name)
		if err != nil {
			t.Fatal(err)
		}
		all := statements(text)
		if len(all) != len(ownTables) {
			t.Fatalf("%s: %d statements", name, len(all))
		}
		for i, own := range ownTables {
			if !strings.Contains(all[i], "CREATE TABLE IF NOT EXISTS") || !strings.Contains(all[i], own.name) {
				t.Errorf("%s: statement %d is not for %s:\n%s", name, i, own.name, all[i])
			}
		}
	}
}

func TestDDLOfUnknownDatabaseSaysWhichAreKnown(t *testing.T) {
	if _, err := DDL("oracle"); err == nil || !strings.Contains(err.Error(), "MySQL, MariaDB and SQLite") {
		t.Errorf("error is %v", err)
	}
}
