// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// A column of sharding.Table.Also leads to the shard of its row: for example, an order's id
// that contains the slot of its user. Unlike other keys, its keys cannot be drawn in advance,
// but only when the rows have their final sharding keys.

// columnCarriesSlot returns true when keys of the column contain the slot of their row.
func columnCarriesSlot(t *sharding.Table, column string) bool {
	return t != nil && len(t.Also) > 0 && t.Leads(column) && !strings.EqualFold(t.Key, column)
}

// drawSlotKeys draws keys that contain the slots of their rows. Before hooks it changes nothing
// if a row has no sharding key yet.
func (fl *filling) drawSlotKeys(stmt *gorm.Statement, p *keyColumn, hooks bool) error {
	empty := slices.Collect(p.emptyRows())
	if len(empty) == 0 {
		return nil
	}
	shardingKeys, err := fl.shardingKeys(stmt, empty)
	switch {
	case err != nil && hooks:
		return nil
	case err != nil:
		return err
	}
	gen, ok := p.field.gen.Bucketed()
	if !ok {
		return p.field.fail(ErrNoBuckets)
	}
	p.keys.Truncate(p.used())
	err = fl.drawLimited(stmt.Context, func(ctx context.Context) error {
		return p.keys.AddIDs(len(empty), func(ids []int64) error {
			return fl.router.FillIDs(ctx, gen, stmt.Table, p.field.DBName, ids, shardingKeys)
		})
	})
	if err == nil {
		err = p.keys.Fit(p.used())
	}
	if err != nil {
		return p.field.fail(noBuckets(err))
	}
	return nil
}

// noBuckets wraps the error of a generator that has the methods for slots, but whose layout has
// no bucket field.
func noBuckets(err error) error {
	if errors.Is(err, keygen.ErrLayout) {
		return fmt.Errorf("%w: %w", ErrNoBuckets, err)
	}
	return err
}

// checkSlots tests whether the field's generator puts slots where the table's rule expects
// them: with an id of the last slot, which the layout may be too narrow for, and one of the
// first.
func (m *managed) checkSlots(ctx context.Context, t *sharding.Table) error {
	gen, ok := m.gen.Bucketed()
	if !ok {
		return m.fail(ErrNoBuckets)
	}
	for _, slot := range [...]int{t.Rule.Slots() - 1, 0} {
		id, err := gen.NextIn(ctx, int64(slot))
		if err != nil {
			return m.fail(noBuckets(err))
		}
		got, err := t.SlotBy(m.DBName, id)
		if err == nil && int(got) != slot {
			err = fmt.Errorf("%w: id %d, made for slot %d, leads to slot %d", sharding.ErrMisplaced, id, slot, got)
		}
		if err != nil {
			return m.fail(fmt.Errorf("%w; the layout's bucket field must have the position that the Rule of Also expects", err))
		}
	}
	return nil
}
