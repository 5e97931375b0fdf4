// SPDX-License-Identifier: Apache-2.0

package keycolumn_test

import (
	"database/sql"
	"slices"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/keycolumn"
	"github.com/shardid/shardid/sharding"
)

func TestInspectChecksTheKeyAndEveryColumnOfAlso(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders_0 (id REAL, tenant TEXT COLLATE NOCASE, code INTEGER, at DATETIME, good TEXT)"); err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	table := sharding.Table{Name: "orders", Key: "tenant", Rule: sharding.HashText(4), Also: []sharding.Alt{
		{Column: "id", Rule: sharding.Low(2)},
		{Column: "code", Rule: sharding.HashText(4)},
		{Column: "at", Rule: sharding.Interval(start, start.Add(4*time.Hour), time.Hour)},
		{Column: "good", Rule: sharding.HashText(4)},
		{Column: "missing", Rule: sharding.Low(2)},
	}}
	inspect := func(physical string) (columns []string) {
		faults, err := keycolumn.Inspect(t.Context(), db, dialect.SQLite{}, &table, physical)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range faults {
			columns = append(columns, f.Column)
		}
		return columns
	}
	if got := inspect("orders_0"); !slices.Equal(got, []string{"tenant", "id", "code", "at"}) {
		t.Errorf("%q", got)
	}
	if got := inspect("orders_1"); got != nil {
		t.Errorf("of a table that is none: %q", got)
	}
}
