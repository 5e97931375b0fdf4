// SPDX-License-Identifier: Apache-2.0

package keycolumn_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/keycolumn"
	"github.com/shardid/shardid/sharding"
)

// SQLite stores nanoseconds, and a rule without WithPrecision assumes a second.
func TestNoTimeIsLostInAColumnWithAHigherPrecisionThanItsRuleAssumes(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rule := sharding.Interval(start, start.Add(4*time.Hour), time.Hour)
	table := sharding.Table{Name: "orders", Key: "at", Rule: rule}
	for slot := range rule.Slots() {
		if _, err := db.ExecContext(t.Context(), fmt.Sprintf("CREATE TABLE orders_%d (at DATETIME)", slot)); err != nil {
			t.Fatal(err)
		}
	}
	faults, err := keycolumn.Inspect(t.Context(), db, dialect.SQLite{}, &table, "orders_0")
	if err != nil || len(faults) != 1 || faults[0].Severity != keycolumn.Notice || !faults[0].Refuses {
		t.Fatalf("%+v, %v", faults, err)
	}
	written := 0
	for range 500 { // around the borders
		at := start.Add(time.Duration(rand.IntN(5))*time.Hour + time.Duration(rand.Int64N(int64(6*time.Second))) - 3*time.Second)
		slot, err := rule.Slot(at)
		if err != nil {
			continue
		}
		var stored time.Time
		err = db.QueryRowContext(t.Context(), fmt.Sprintf("INSERT INTO orders_%d (at) VALUES (?) RETURNING at", slot), at).Scan(&stored)
		if got, errStored := rule.Slot(stored); err != nil || errStored != nil || got != slot {
			t.Errorf("%v is in slot %d, and stored as %v in %d: %v, %v", at, slot, stored, got, errStored, err)
		}
		written++
	}
	if written == 0 {
		t.Error("all times were refused")
	}
}
