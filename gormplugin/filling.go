// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/sharding"
)

// filling is the state of one create statement, from the reservation of its keys to its end. It
// is stored among the statement's clauses, under a name for which gorm builds nothing. Unlike
// settings, clauses are not copied into the statements of associations, and storing one there
// allocates nothing.
type filling struct {
	plan       *plan
	rows       rows
	keyColumns []*keyColumn
	router     *sharding.Router // nil: no table is sharded
	table      *sharding.Table  // as it was when the plugin decided which fields to fill; nil for one that is not sharded
	inTx       bool             // the statement runs in a transaction that the caller began
	sent       bool             // the INSERT may have reached the database
	refused    bool             // the error proves that no row was written
	failure    error            // the error before ROLLBACK of the transaction that gorm began for the statement

	// The statement's own, to be put back.
	schema  *schema.Schema
	selects []string
	context context.Context //nolint:containedctx // nil unless it was replaced

	createScope *createScope // set when this statement opened the scope
	conflict    *conflict    // nil when no conflict is possible
}

var _ clause.Expression = (*filling)(nil)

// Build writes nothing.
func (*filling) Build(clause.Builder) {}

// stateName is the name of a statement's filling among its clauses.
const stateName = "shardid:filling"

func stateOf(stmt *gorm.Statement) *filling {
	fl, _ := stmt.Clauses[stateName].Expression.(*filling)
	return fl
}

// fillingOf returns the state of a statement that creates rows. Its memory may be that of an earlier
// statement.
func (p *plan) fillingOf(r rows) *filling {
	fl, _ := p.free.Get().(*filling)
	if fl == nil {
		fl = &filling{plan: p}
		for _, m := range p.fields {
			fl.keyColumns = append(fl.keyColumns, &keyColumn{filling: fl, field: m, keys: m.gen.NewKeys()})
		}
	}
	fl.rows = r
	return fl
}

// release ends the use of fl and removes all its references to the statement.
func (fl *filling) release() {
	for _, p := range fl.keyColumns {
		p.forget()
	}
	*fl = filling{plan: fl.plan, keyColumns: fl.keyColumns}
	fl.plan.free.Put(fl)
}

// reserve draws keys for all rows without one, once per field.
func (fl *filling) reserve(stmt *gorm.Statement) error {
	from := scopeOf(stmt)
	for _, p := range fl.keyColumns {
		p.follow(stmt, fl.table)
		need := 0
		for range p.emptyRows() {
			need++
		}
		if need > 0 && fl.rows.byValue() {
			return fmt.Errorf("gormplugin: %s by value: %w", fl.rows.structs.Type(), ErrNotAddressable)
		}
		if p.omits() || p.carriesSlot { // keys with slots are drawn when the rows have their sharding keys
			continue
		}
		from.give(p.field, p.keys, need)
		if err := fl.draw(stmt.Context, p, need-p.keys.Len()); err != nil {
			return err
		}
	}
	return nil
}

// draw takes n more keys from the field's generator.
func (fl *filling) draw(ctx context.Context, p *keyColumn, n int) error {
	if n <= 0 {
		return nil
	}
	return fl.drawLimited(ctx, func(ctx context.Context) error { return p.field.draw(ctx, p.keys, n) })
}

// drawLimited draws keys. Inside a transaction it limits the wait.
func (fl *filling) drawLimited(ctx context.Context, draw func(context.Context) error) error {
	if !fl.inTx {
		return draw(ctx)
	}
	limited := &lazyTimeout{Context: ctx}
	defer limited.end()
	err := draw(limited)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrInTransaction, err)
	}
	return err
}

// assign assigns keys to the rows of all fields, or only of the fields that are filled before
// hooks.
func (fl *filling) assign(stmt *gorm.Statement, hooks bool) error {
	for _, p := range fl.keyColumns {
		if p.omits() || hooks && !p.field.hooks {
			continue
		}
		if _, named, restricted := chosen(stmt, p.field.DBName); restricted && !named && !hooks {
			// gorm would leave out the key, and the database would number the row itself
			stmt.Selects = append(slices.Clip(stmt.Selects), p.field.DBName)
		}
		if p.carriesSlot {
			if err := fl.drawSlotKeys(stmt, p, hooks); err != nil {
				return err
			}
		}
		missing, err := p.assign(stmt.Context)
		if err == nil && !p.carriesSlot && missing > 0 { // a hook emptied or added rows
			if err = fl.draw(stmt.Context, p, missing); err == nil {
				_, err = p.assign(stmt.Context)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clearKeys empties the fields that were filled, so that the value is as before the call of
// Create.
func (fl *filling) clearKeys(ctx context.Context) {
	for _, p := range fl.keyColumns {
		p.clearKeys(ctx, nil)
		p.forget()
	}
}

// assignedAny returns true when a row was given a key.
func (fl *filling) assignedAny() bool {
	return slices.ContainsFunc(fl.keyColumns, func(p *keyColumn) bool { return p.used() > 0 })
}

// followMove updates which fields are filled, because the table may have moved since the statement
// began.
func (fl *filling) followMove(stmt *gorm.Statement) {
	if fl.router == nil {
		return
	}
	fl.table, _ = fl.router.Snapshot().Lookup(stmt.Table)
	for _, p := range fl.keyColumns {
		p.follow(stmt, fl.table)
		if p.omits() {
			p.clearKeys(stmt.Context, func(k int) bool { return !p.isOwn(stmt.Context, k) })
			p.assignedRows = p.assignedRows[:0]
		}
	}
}

// restore reverts the changes of the statement that were made for the INSERT.
func (fl *filling) restore(stmt *gorm.Statement) {
	stmt.Schema, stmt.Selects = fl.schema, fl.selects
	if fl.conflict != nil {
		fl.conflict.restore(stmt)
	}
}
