// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"database/sql/driver"
	"iter"
	"reflect"

	"gorm.io/gorm"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/sharding"
)

// keyColumn is one managed field of the rows of one statement, with the keys drawn for it.
type keyColumn struct {
	filling      *filling
	field        *managed
	keys         keyfield.Keys
	assignedRows []int // the index of the row that got each key, in the order of the keys
	carriesSlot  bool  // the keys contain the slots of their rows
	numbered     bool  // the source of a migration serves the table and numbers the column
	leftOut      bool  // the caller leaves the field out
}

// follow updates what depends on the state of the table.
func (p *keyColumn) follow(stmt *gorm.Statement, t *sharding.Table) {
	p.carriesSlot = columnCarriesSlot(t, p.field.DBName)
	p.numbered = isNumbered(t, p.field.DBName)
	selected, named, _ := chosen(stmt, p.field.DBName)
	p.leftOut = named && !selected
}

// omits returns true when the field must not be filled.
func (p *keyColumn) omits() bool { return p.numbered || p.leftOut }

// forget removes all keys, and keeps the memory.
func (p *keyColumn) forget() {
	p.assignedRows = p.assignedRows[:0]
	p.keys.Truncate(0)
}

// emptyRows yields the indexes of the rows without a key.
func (p *keyColumn) emptyRows() iter.Seq[int] {
	return func(yield func(int) bool) {
		all := p.filling.rows
		for i := range all.len() {
			if all.empty(i, p.field) && !yield(i) {
				return
			}
		}
	}
}

// used returns the number of keys that were assigned.
func (p *keyColumn) used() int { return len(p.assignedRows) }

// assign assigns keys to the rows without one, as long as there are keys. It returns how many
// rows still lack one.
func (p *keyColumn) assign(ctx context.Context) (missing int, err error) {
	for i := range p.emptyRows() {
		if p.used() == p.keys.Len() {
			missing++
			continue
		}
		if err := p.set(ctx, i, func(v reflect.Value) error { return p.keys.Put(p.used(), v) }); err != nil {
			return 0, err
		}
		p.assignedRows = append(p.assignedRows, i)
	}
	return missing, nil
}

// set sets the key of row i to the one that put stores.
func (p *keyColumn) set(ctx context.Context, i int, put func(reflect.Value) error) error {
	if err := p.filling.rows.set(ctx, i, p.field, put); err != nil {
		return p.field.fail(err)
	}
	return nil
}

// clearKeys empties the fields that were given a key, except those for which keep returns true;
// a nil keep returns false.
func (p *keyColumn) clearKeys(ctx context.Context, keep func(k int) bool) (taken int) {
	for k := range p.used() {
		if keep == nil || !keep(k) {
			p.filling.rows.clear(ctx, p.assignedRows[k], p.field)
			taken++
		}
	}
	return taken
}

// value returns the present value of the row with the k-th key.
func (p *keyColumn) value(ctx context.Context, k int) any {
	value, _ := p.filling.rows.get(ctx, p.assignedRows[k], p.field.Field)
	return value
}

// isOwn returns true when the row with the k-th key still has that key.
func (p *keyColumn) isOwn(ctx context.Context, k int) bool {
	own, err := p.field.valueWith(ctx, func(v reflect.Value) error { return p.keys.Put(k, v) })
	return err == nil && p.field.canonical(p.value(ctx, k)) == p.field.canonical(own)
}

// canonical returns a key in a comparable form, the same for a struct field and a map.
func canonical(value any) any {
	v := dereference(value)
	switch {
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return int64(v.Uint())
	case v.Kind() == reflect.String:
		return v.String()
	case v.IsValid() && v.Comparable():
		return v.Interface()
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return string(v.Bytes())
	}
	if valuer, ok := value.(driver.Valuer); ok {
		if stored, err := valuer.Value(); err == nil && stored != nil {
			return canonical(stored) // a driver.Value is no driver.Valuer
		}
	}
	return nil
}
