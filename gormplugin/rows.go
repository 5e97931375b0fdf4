// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"database/sql/driver"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// rows are the rows of one create statement, in any form. Either structs or maps is set.
type rows struct {
	structs reflect.Value // a struct, or a slice or an array of structs or pointers to them
	maps    []map[string]any
	many    bool // maps came as a slice
}

// rowsOf returns the rows of a create. It refuses values on which gorm would panic or that it
// would write wrongly.
func rowsOf(stmt *gorm.Statement) (rows, error) {
	if r, ok := mapsOf(stmt.Dest); ok {
		return r, nil
	}
	r := rows{structs: stmt.ReflectValue}
	return r, r.check(stmt)
}

// mapsOf returns the rows of a destination that consists of maps.
func mapsOf(dest any) (rows, bool) {
	switch dest := dest.(type) {
	case map[string]any:
		return rows{maps: []map[string]any{dest}}, true
	case *map[string]any:
		if *dest == nil {
			*dest = map[string]any{}
		}
		return rows{maps: []map[string]any{*dest}}, true
	case []map[string]any:
		return rows{maps: dest, many: true}, true
	case *[]map[string]any:
		return rows{maps: *dest, many: true}, true
	}
	return rows{}, false
}

func (r rows) check(stmt *gorm.Statement) error {
	v := r.structs
	if !v.IsValid() {
		return gorm.ErrInvalidValue
	}
	row, pointers := v.Type(), false
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
		row = row.Elem()
		if pointers = row.Kind() == reflect.Pointer; pointers {
			row = row.Elem()
		}
	}
	if row != stmt.Schema.ModelType {
		return fmt.Errorf("gormplugin: rows of type %s for model %s: %w", row, stmt.Schema.Name, ErrModelMismatch)
	}
	for i := 0; pointers && i < v.Len(); i++ {
		if v.Index(i).IsNil() {
			return fmt.Errorf("gormplugin: row %d is nil: %w", i, gorm.ErrInvalidData)
		}
	}
	return nil
}

// byValue returns true when the rows are a struct or an array to which the caller has no pointer.
func (r rows) byValue() bool {
	return r.structs.IsValid() && r.structs.Kind() != reflect.Slice && !r.structs.CanAddr()
}

func (r rows) len() int {
	switch {
	case !r.structs.IsValid():
		return len(r.maps)
	case r.structs.Kind() == reflect.Struct:
		return 1
	}
	return r.structs.Len()
}

// at returns the i-th struct.
func (r rows) at(i int) reflect.Value {
	if r.structs.Kind() == reflect.Struct {
		return r.structs
	}
	return reflect.Indirect(r.structs.Index(i))
}

// empty returns true when row i has no value for the field. A nil row returns false, because it
// cannot hold a value.
func (r rows) empty(i int, f *managed) bool {
	if !r.structs.IsValid() {
		_, value, _ := inMap(r.maps[i], f.Field)
		return isEmpty(value)
	}
	row := r.at(i)
	if !row.IsValid() {
		return false
	}
	v, ok := fieldAt(row, f.Field)
	return !ok || f.kind.IsEmpty(v)
}

// fieldAt returns the field of a struct, or false when it is in an embedded struct whose
// pointer is nil. gorm's own function would allocate that struct.
func fieldAt(row reflect.Value, f *schema.Field) (reflect.Value, bool) {
	for _, i := range f.StructField.Index {
		if i >= 0 {
			row = row.Field(i)
			continue
		}
		if row = row.Field(-i - 1); row.IsNil() {
			return row, false
		}
		row = row.Elem()
	}
	return row, true
}

// isEmpty returns true when a map's value is not a key: missing, nil or zero.
func isEmpty(value any) bool {
	v := dereference(value)
	return !v.IsValid() || v.IsZero()
}

// dereference follows all pointers.
func dereference(value any) reflect.Value {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	return v
}

// set sets the field of row i to the key that put stores.
func (r rows) set(ctx context.Context, i int, f *managed, put func(reflect.Value) error) error {
	if r.structs.IsValid() {
		return put(f.ReflectValueOf(ctx, r.at(i)))
	}
	m := r.maps[i]
	if m == nil {
		return fmt.Errorf("row %d is a nil map: %w", i, gorm.ErrInvalidData)
	}
	value, err := f.valueWith(ctx, put)
	if valuer, ok := value.(driver.Valuer); err == nil && ok && f.Serializer != nil {
		value, err = valuer.Value() // gorm sends the values of maps as they are
	}
	if err != nil {
		return err
	}
	if isInteger(f.Field) {
		value = canonical(value) // an int64
	}
	name, _, _ := inMap(m, f.Field)
	m[name] = value
	return nil
}

// get returns the value that row i has for the field, and whether it has none: a struct has none
// if it is zero.
func (r rows) get(ctx context.Context, i int, f *schema.Field) (value any, missing bool) {
	if r.structs.IsValid() {
		return f.ValueOf(ctx, r.at(i))
	}
	_, value, _ = inMap(r.maps[i], f)
	return value, value == nil
}

// clear removes the key of row i.
func (r rows) clear(ctx context.Context, i int, f *managed) {
	if i >= r.len() {
		return // a hook or RETURNING made the slice shorter
	}
	if r.structs.IsValid() {
		f.ReflectValueOf(ctx, r.at(i)).SetZero()
		return
	}
	name, _, _ := inMap(r.maps[i], f.Field)
	delete(r.maps[i], name)
}

// inMap finds the field in a map of column values. gorm accepts the column's name and the
// field's name; if several fields have the name, the last one counts. The returned name is the
// one in the map, or the column's name if the map has neither. If the map has both, the one
// with a value counts.
func inMap(m map[string]any, f *schema.Field) (name string, value any, ok bool) {
	value, ok = m[f.DBName]
	if ok && !isEmpty(value) {
		return f.DBName, value, true
	}
	if other, there := m[f.Name]; there && (!ok || !isEmpty(other)) && f.Schema.FieldsByName[f.Name].DBName == f.DBName {
		return f.Name, other, true
	}
	return f.DBName, value, ok
}
