// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"

	"github.com/shardid/shardid/internal/keycolumn"
)

// checkKeys checks whether the columns that lead to a shard keep and compare keys as their
// rules require.
func (scan *tableScan) checkKeys(ctx context.Context, s session) error {
	if scan.table == nil {
		return nil
	}
	faults, err := keycolumn.Inspect(ctx, s, s, scan.table, scan.facts.name)
	for _, f := range faults {
		code := KeyColumn
		if f.Collation {
			code = Collation
		}
		scan.find(code, keySeverities[f.Severity], f.Message, f.Fix)
	}
	return err
}

// checkUnique finds unique keys that hold within each shard only.
func (scan *tableScan) checkUnique(ctx context.Context, s session) error {
	faults, err := keycolumn.InspectUnique(ctx, s, s, scan.table, scan.facts.name)
	for _, f := range faults {
		scan.find(UniqueKey, keySeverities[f.Severity], f.Message, f.Fix)
	}
	return err
}

var keySeverities = map[keycolumn.Severity]Severity{keycolumn.Error: Error, keycolumn.Warning: Warning, keycolumn.Notice: Info}
