// SPDX-License-Identifier: Apache-2.0

package main

import (
	"database/sql"
	"testing"
)

func TestTheProgramStoresAnOrderOfEachUserInItsShard(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for file, table := range map[string]string{"east.db": "orders_2", "west.db": "orders_5"} {
		db, err := sql.Open("sqlite", file)
		if err != nil {
			t.Fatal(err)
		}
		var rows int
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&rows); err != nil || rows != 1 {
			t.Errorf("%s of %s has %d rows, %v", table, file, rows, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
