// SPDX-License-Identifier: Apache-2.0

package keycolumn

import (
	"context"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// Severity says what a fault costs.
type Severity int

const (
	// Notice costs something only for keys of a form that may never come.
	Notice Severity = iota
	// Warning costs some keys, unless the application brings them into one form.
	Warning
	// Error costs rows that nobody finds, or keys that cannot be looked for.
	Error
)

// Fault is what does not fit between a rule and a column.
type Fault struct {
	Column    string
	Severity  Severity
	Collation bool   // it is the collation's
	Refuses   bool   // the rule refuses keys that the column may hold
	Message   string // begins with the column
	Fix       string
}

// Inspect checks the columns of a physical table that lead to a shard of the sharded
// table t. A column that does not exist is nobody's fault here. db is best one
// connection, and one whose settings are those of the application.
func Inspect(ctx context.Context, db dialect.Querier, d dialect.Dialect, t *sharding.Table, physical string) ([]Fault, error) {
	var all []Fault
	for _, leading := range append([]sharding.Alt{{Column: t.Key, Rule: t.Rule}}, t.Also...) {
		if leading.Rule == nil {
			continue // which a table has that a migration alone knows
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
