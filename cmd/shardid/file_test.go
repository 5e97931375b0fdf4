// SPDX-License-Identifier: Apache-2.0

package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/database"
)

// openFile opens a SQLite file for writing, and makes it if need be.
func openFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	uri, err := database.SQLiteURI(path, "mode=rwc&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", uri)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// newFile makes a SQLite file whose name needs escaping.
func newFile(t *testing.T, statements string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "it's 100% of a #shop?.db")
	db := openFile(t, path)
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
	return path
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Published AUTO_INCREMENT databases: the sample database of many tutorials,
// where it lies beside the checkout, and a small one of our own.
const (
	chinook  = "../../../shared/data/chinook/Chinook_Sqlite_AutoIncrementPKs.sql"
	shop     = "../../schema/testdata/shop.sqlite.sql"
	expected = "../../schema/testdata/"
)

// sample is a database to try commands on.
type sample struct {
	name, script, table, child string
	rows                       int64
}

func samples() []sample {
	all := []sample{{"shop", shop, "customer", "order.customer_id", 4}}
	if _, err := os.Stat(chinook); err == nil {
		all = append(all, sample{"chinook", chinook, "Invoice", "InvoiceLine.InvoiceId", 2652})
	}
	return all
}
