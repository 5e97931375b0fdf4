// SPDX-License-Identifier: Apache-2.0

package keycolumn_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/keycolumn"
	"github.com/shardid/shardid/sharding"
)

// listed gives each argument its own shard, and the texts of one argument the same shard.
func listed(shards ...string) sharding.Rule {
	slots := map[string]sharding.Slot{}
	for slot, texts := range shards {
		for text := range strings.SplitSeq(texts, ",") {
			slots[text] = sharding.Slot(slot)
		}
	}
	return sharding.List(slots)
}

func TestAListLosesRowsOnlyIfTheColumnTreatsTextsOfTwoShardsAsEqual(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE "the orders" (plain TEXT, folds VARCHAR(2) COLLATE NOCASE, "un typed" COLLATE NOCASE, ends TEXT COLLATE RTRIM)`); err != nil {
		t.Fatal(err)
	}
	many := make([]string, 20000)
	for i := range many {
		many[i] = fmt.Sprint("tenant", i%5000, "of", i)
	}
	many[19999] = "TENANT0of0"
	for _, c := range []struct {
		column string
		rule   sharding.Rule
		want   string
	}{
		{"plain", listed("de", "DE"), ""},
		{"folds", listed("de", "fr"), ""},
		{"folds", listed("de,DE,De", "fr,FR"), ""},
		{"folds", listed("fr", "de", "it", "DE"), "'de' and 'DE'"},
		{"folds", listed("de,FR", "fr,at"), "'FR' and 'fr'"},
		{"un typed", listed("de", "fr"), ""},
		{"un typed", listed("de", "DE"), "'de' and 'DE'"},
		{"ends", listed("de", "DE"), ""},
		{"folds", listed(many[:8000]...), ""},
		{"folds", listed(many...), "too many"},
		{"folds", listed("it's", "IT'S"), "'it's' and 'IT'S'"},
	} {
		table := sharding.Table{Name: "orders", Key: c.column, Rule: c.rule}
		faults, err := keycolumn.Inspect(t.Context(), db, dialect.SQLite{}, &table, "the orders")
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case c.want == "" && len(faults) == 0:
		case c.want == "too many" && len(faults) == 1 && faults[0].Severity == keycolumn.Warning && faults[0].Collation:
		case c.want != "" && len(faults) == 1 && faults[0].Severity == keycolumn.Error && faults[0].Collation && strings.Contains(faults[0].Message, c.want):
		default:
			t.Errorf("%s, %d slots: %+v, want %q", c.column, c.rule.Slots(), faults, c.want)
		}
	}
}
