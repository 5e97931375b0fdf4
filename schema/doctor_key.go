// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"

	"github.com/shardid/shardid/internal/keycolumn"
)

// judgeKeys looks at whether the columns that lead to a shard keep and compare keys as
// their rules take them.
func (p *patient) judgeKeys(ctx context.Context, s session) error {
	if p.table == nil {
		return nil
	}
	faults, err := keycolumn.Inspect(ctx, s, s, p.table, p.facts.name)
	for _, f := range faults {
		code := KeyColumn
		if f.Collation {
			code = Collation
		}
		p.find(code, keySeverities[f.Severity], f.Message, f.Fix)
	}
	return err
}

var keySeverities = map[keycolumn.Severity]Severity{keycolumn.Error: Error, keycolumn.Warning: Warning, keycolumn.Notice: Info}
