// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// keyFindings are the findings that follow from the table's definition.
func keyFindings(d dialect.Dialect, t table) []Finding {
	found := []Finding{} // [] in JSON
	if t.engine != "" && !strings.EqualFold(t.engine, "InnoDB") {
		found = append(found, Finding{NotInnoDB, Error,
			fmt.Sprintf("the engine is %s, without transactions", t.engine),
			"ALTER TABLE " + d.Quote(t.name) + " ENGINE=InnoDB"})
	}
	col, single := t.key()
	switch {
	case len(t.primaryKey) == 0:
		found = append(found, Finding{NoPrimaryKey, Error,
			"there is no primary key",
			"add a single BIGINT primary key"})
	case t.isLookup():
		found = append(found, Finding{LookupTable, Info,
			"it has the columns of a lookup table (sharding.Lookup)",
			"leave it as it is, if shardid lookup or gormplugin.Migrate created it"})
	case !single:
		found = append(found, compositeKey(t))
	case col.max == 0:
		found = append(found, nonInteger(col))
	}
	return append(found, uniqueFindings(t)...)
}

// uniqueFindings leaves out unique keys that contain the whole primary key: they hold
// across shards, too.
func uniqueFindings(t table) []Finding {
	var found []Finding
	for _, key := range t.uniqueKeys {
		if col, single := t.key(); single && slices.Contains(key.columns, col.name) {
			continue
		}
		name := "the unique key "
		if key.name != "" {
			name += key.name + " "
		}
		found = append(found, Finding{UniqueKey, Warning,
			name + "on (" + strings.Join(key.columns, ", ") + ") cannot be checked across shards",
			"shard by one of its columns, or declare a unique lookup of its column (sharding.Lookup), which checks all shards"})
	}
	return found
}

func compositeKey(t table) Finding {
	fix := "add a single BIGINT primary key, and make this one a unique key"
	if len(t.foreignKeys) > 0 {
		fix = "move it as a child of a table it refers to, by that table's key; or " + fix
	}
	return Finding{CompositeKey, Error, "the primary key is (" + strings.Join(t.primaryKey, ", ") + ")", fix}
}

func nonInteger(col column) Finding {
	if col.max != 0 {
		return Finding{NonIntegerKey, Error,
			fmt.Sprintf("%s is declared %s but holds values that are not integers", col.name, col.typ),
			"correct those values"}
	}
	return Finding{NonIntegerKey, Error,
		fmt.Sprintf("the primary key %s is of type %s", col.name, col.typ),
		"shard by a rule for this type, or add a single BIGINT primary key"}
}

// useFindings are the findings that follow from the key's type and its ids.
func useFindings(k Key, col column, e extent) []Finding {
	var found []Finding
	if k.Max < math.MaxInt64 {
		found = append(found, Finding{NarrowKey, Warning,
			fmt.Sprintf("%s %s ends at %d; generated ids take up to 63 bits", typeName(k), k.Column, k.Max),
			"make the key, and every column that refers to it, BIGINT in the shard tables"})
	}
	found = append(found, rangeUsed(k)...)
	found = append(found, sequenceEnd(k, col)...)
	if !e.empty && e.lowest <= 0 {
		found = append(found, Finding{NonPositiveID, Warning,
			fmt.Sprintf("ids of 0 or below exist; the lowest is %d", e.lowest),
			"give those rows ids of 1 or above, together with what refers to them"})
	}
	if e.beyond {
		found = append(found, Finding{BeyondInt64, Error,
			fmt.Sprintf("ids above %d exist, which do not fit an int64", int64(math.MaxInt64)),
			"give those rows lower ids, together with what refers to them"})
	}
	return append(found, numbering(col)...)
}

func rangeUsed(k Key) []Finding {
	used := percentUsed(k)
	if used < 50 {
		return nil
	}
	severity := Warning
	if used >= 80 {
		severity = Error
	}
	return []Finding{{RangeUsed, severity,
		fmt.Sprintf("%.2f %% of the range of %s is used; %s left", k.PercentUsed, typeName(k), idsAre(k.Max-min(k.Max, k.Next-1))),
		"widen the key before inserts fail, and every column that refers to it"}}
}

func idsAre(n uint64) string {
	switch n {
	case 0:
		return "no id is"
	case 1:
		return "1 id is"
	}
	return fmt.Sprintf("%d ids are", n)
}

// sequenceEnd finds a SERIAL column that was widened: its sequence keeps the narrow range.
func sequenceEnd(k Key, col column) []Finding {
	if col.sequence == "" || col.end >= k.Max {
		return nil
	}
	severity := Warning
	if k.Next-1 >= col.end/5*4 {
		severity = Error
	}
	return []Finding{{NarrowSequence, severity,
		fmt.Sprintf("the sequence %s ends at %d, the type %s at %d", col.sequence, col.end, k.Type, k.Max),
		"ALTER SEQUENCE " + col.sequence + " AS " + k.Type + " NO MAXVALUE"}}
}

func numbering(col column) []Finding {
	switch {
	case !col.auto:
		return []Finding{{NoAutoIncrement, Info,
			"the table does not number its rows; the application gives the ids",
			"find the code that gives them, and replace it by a generator"}}
	case col.reuses:
		return []Finding{{ReusesIDs, Info,
			"without AUTOINCREMENT, SQLite reuses the ids of deleted rows at the end",
			"seed above every id that was ever given, including those of deleted rows"}}
	}
	return nil
}

func typeName(k Key) string {
	if k.Unsigned {
		return k.Type + " unsigned"
	}
	return k.Type
}
