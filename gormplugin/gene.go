package gormplugin

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// A column of sharding.Table.Also leads to the shard of its row, as an order's id
// does that carries the slot of its user (gene ids). Its keys cannot be drawn in
// advance, like all others, but only when the rows have their final sharding keys.

// carries reports whether keys of the column carry the slot of their row.
func carries(t *sharding.Table, column string) bool {
	return t != nil && len(t.Also) > 0 && t.Leads(column) && !strings.EqualFold(t.Key, column)
}

// carry draws the keys of a part whose rows' slots they carry. Before hooks it
// leaves the rows alone when one of them has no sharding key yet.
func (fl *filling) carry(stmt *gorm.Statement, p *part, hooks bool) error {
	empty := p.emptyRows()
	if len(empty) == 0 {
		return nil
	}
	slotted, err := fl.shardingKeys(stmt, empty)
	switch {
	case err != nil && hooks:
		return nil
	case err != nil:
		return err
	}
	gen, ok := p.field.gen.ints.(keygen.Bucketed)
	if !ok {
		return p.field.fail(ErrNoBuckets)
	}
	first := p.used()
	ids := slices.Grow(p.keys.ints[:first], len(empty))[:first+len(empty)]
	err = fl.patiently(stmt.Context, func(ctx context.Context) error {
		return fl.router.FillIDs(ctx, gen, stmt.Table, p.field.DBName, ids[first:], slotted)
	})
	if err == nil && slices.Contains(ids[first:], 0) {
		err = errZeroKey
	}
	if err != nil {
		return p.field.fail(noBuckets(err))
	}
	p.keys.ints = ids
	return p.field.fits(&p.keys, first)
}

// noBuckets is the error of a generator that has the method for slots, but a layout
// without the room.
func noBuckets(err error) error {
	if errors.Is(err, keygen.ErrLayout) {
		return fmt.Errorf("%w: %w", ErrNoBuckets, err)
	}
	return err
}

// shardingKeys returns the sharding keys of the rows with these numbers.
func (fl *filling) shardingKeys(stmt *gorm.Statement, numbers []int) ([]any, error) {
	t := fl.table
	field := columnField(fl.plan.schema, t.Key)
	keys := make([]any, len(numbers))
	for n, i := range numbers {
		key, ok := fl.rows.shardingKey(stmt.Context, i, t, field)
		if !ok {
			return nil, missingKey("create", t, i, field)
		}
		keys[n] = key
	}
	return keys, nil
}

// shardingKey returns the sharding key of a new row.
func (r rows) shardingKey(ctx context.Context, i int, t *sharding.Table, field *schema.Field) (any, bool) {
	if !r.structs.IsValid() {
		value, ok := mapKey(r.maps[i], t.Key, field)
		return value, ok && bound(value)
	}
	if field == nil {
		return nil, false
	}
	value, zero := field.ValueOf(ctx, r.at(i))
	return value, !zero
}

func mapKey(m map[string]any, column string, field *schema.Field) (any, bool) {
	if field != nil {
		_, value, ok := inMap(m, field)
		return value, ok
	}
	value, ok := m[column]
	return value, ok
}

// bound reports whether gorm sends v as one bind variable and nothing else:
// then the database compares with the very value that is routed by. Expressions
// and subqueries, which gorm writes out as text, are not bound.
func bound(v any) bool {
	switch v.(type) {
	case int64, int, string, uint64, uint, int32, uint32, bool, float64, []byte, time.Time:
		return true
	case nil, gorm.Valuer, clause.Expression, clause.Column, clause.Table:
		return false
	case driver.Valuer:
		return true
	}
	return scalar(reflect.TypeOf(v))
}

func scalar(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return true
	}
	return false
}

// missingKey is the refusal of a row without its sharding key.
func missingKey(op string, t *sharding.Table, row int, field *schema.Field) error {
	name := t.Key
	if field != nil {
		name = "the field " + field.Name
	}
	return &sharding.RouteError{Op: op, Table: t.Name, Column: t.Key, Err: sharding.ErrMissingKey, Hint: fmt.Sprintf("row %d: set %s before Create", row, name)}
}

// columnField returns the model's field of a column, nil if it has none.
func columnField(s *schema.Schema, column string) *schema.Field {
	if s == nil {
		return nil
	}
	if f, ok := s.FieldsByDBName[column]; ok {
		return f
	}
	for name, f := range s.FieldsByDBName {
		if strings.EqualFold(name, column) {
			return f
		}
	}
	return nil
}

// checkSlots tries whether the field's generator puts slots where the table's
// rule looks for them, by an id of the last slot, which the layout may
// have no room for, and one of the first.
func (m *managed) checkSlots(ctx context.Context, t *sharding.Table) error {
	gen, ok := m.gen.ints.(keygen.Bucketed)
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
			return m.fail(fmt.Errorf("%w; the layout's bucket field must stand where the Rule of Also looks for it", err))
		}
	}
	return nil
}
