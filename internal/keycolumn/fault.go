// SPDX-License-Identifier: Apache-2.0

package keycolumn

import (
	"context"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// Severity is the consequence of a fault.
type Severity int

const (
	// Notice affects only keys of a form that may never occur.
	Notice Severity = iota
	// Warning affects some keys, unless the application normalizes them.
	Warning
	// Error means rows that cannot be found, or keys that cannot be searched for.
	Error
)

// Fault is a mismatch of a rule and a column.
type Fault struct {
	Column    string
	Severity  Severity
	Collation bool   // it concerns the collation
	Refuses   bool   // the rule refuses keys that the column may hold
	Message   string // begins with the column
	Fix       string
}

// Inspect checks the columns of a physical table that lead to a shard of the sharded table t. It
// ignores a column that does not exist. db should be one connection with the settings of the
// application.
func Inspect(ctx context.Context, db dialect.Querier, d dialect.Dialect, t *sharding.Table, physical string) ([]Fault, error) {
	var all []Fault
	for _, leading := range append([]sharding.Alt{{Column: t.Key, Rule: t.Rule}}, t.Also...) {
		if leading.Rule == nil {
			continue // a table that only a migration knows has one
		}
		c, found, err := dialect.ReadColumn(ctx, db, d, physical, leading.Column)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		j := columnCheck{name: leading.Column, rule: leading.Rule, is: sharding.Describe(leading.Rule), column: c}
		if j.needsClocks(d) {
			if j.clocks, err = readClocks(ctx, db, leading.Rule); err != nil {
				return nil, err
			}
		}
		if j.equalTexts, err = readEqualTexts(ctx, db, d, physical, j); err != nil {
			return nil, err
		}
		all = append(all, j.faults()...)
	}
	return all, nil
}
