// SPDX-License-Identifier: Apache-2.0

package keycolumn

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// InspectUnique returns a warning for each unique key of a physical table whose values two shards of the sharded table t
// may both hold. It omits the primary key and keys that contain it, because generators make the ids.
func InspectUnique(ctx context.Context, db dialect.Lister, d dialect.Dialect, t *sharding.Table, physical string) ([]Fault, error) {
	if len(t.Map.Targets()) < 2 {
		return nil, nil
	}
	keys, err := dialect.UniqueKeys(ctx, db, d, physical)
	var all []Fault
	for _, key := range keys {
		if key.Primary || containsPrimary(keys, key) || slices.ContainsFunc(key.Columns, func(c string) bool { return spansShards(t, c) }) {
			continue
		}
		columns, fix := slices.Clone(key.Columns), "add "+t.Key+" to the key"
		for i, c := range columns {
			columns[i] = cmp.Or(c, "an expression")
		}
		if len(key.Columns) == 1 && key.Columns[0] != "" {
			fix = "declare a unique lookup of " + key.Columns[0] + " (docs/lookups.md), or " + fix
		}
		all = append(all, Fault{
			Column: key.Columns[0], Severity: Warning, Fix: fix,
			Message: "the unique key on (" + strings.Join(columns, ", ") + ") holds within each shard, not across them",
		})
	}
	return all, err
}

// containsPrimary reports whether a key has all columns of the primary key.
func containsPrimary(keys []dialect.Key, key dialect.Key) bool {
	return keys[0].Primary && !slices.ContainsFunc(keys[0].Columns, func(c string) bool { return !slices.Contains(key.Columns, c) })
}

// spansShards reports whether equal values of a column, in lower case, are on one shard.
func spansShards(t *sharding.Table, column string) bool {
	return t.Leads(column) || t.Kin()[column] != "" ||
		slices.ContainsFunc(t.Lookups, func(l sharding.Lookup) bool { return l.Unique && strings.EqualFold(l.Column, column) })
}
