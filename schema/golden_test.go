// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/shardid/shardid/schema"
)

// chinook is a published sample database with AUTO_INCREMENT keys. Where it
// lies beside the checkout it is inspected too.
const chinook = "../../shared/data/chinook/Chinook_Sqlite_AutoIncrementPKs.sql"

func TestInspectOfSampleDatabasesEqualsTheGoldenReports(t *testing.T) {
	t.Run("shop", func(t *testing.T) { inspectScript(t, "testdata/shop.sqlite.sql", "testdata/shop.sqlite.json") })
	if _, err := os.Stat(chinook); err == nil {
		t.Run("chinook", func(t *testing.T) { inspectScript(t, chinook, "testdata/chinook.sqlite.json") })
	}
}

func inspectScript(t *testing.T, script, expected string) {
	t.Helper()
	db := newDB(t)
	exec(t, db, readFile(t, script))
	if err := schema.Apply(t.Context(), db); err != nil { // our tables are left out
		t.Fatal(err)
	}
	report, err := schema.Inspect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if report.Server.Version == "" {
		t.Error("no server version")
	}
	report.Server.Version = "any"
	got, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if want := readFile(t, expected); string(got)+"\n" != want {
		t.Errorf("%s differs; got\n%s", filepath.Base(expected), got)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
