package gormplugin

import (
	"context"
	"fmt"
	"reflect"

	"gorm.io/gorm"
)

// rows are the rows of one create statement, whatever form they were given in.
// Exactly one of the two is set.
type rows struct {
	structs reflect.Value // a struct, or a slice or an array of structs or pointers to them
	maps    []map[string]any
	many    bool // maps came as a slice
}

// rowsOf returns the rows of a create. It refuses what gorm would crash on or
// write wrongly.
func rowsOf(stmt *gorm.Statement) (rows, error) {
	switch dest := stmt.Dest.(type) {
	case map[string]any:
		return rows{maps: []map[string]any{dest}}, nil
	case *map[string]any:
		return rows{maps: []map[string]any{*dest}}, nil
	case []map[string]any:
		return rows{maps: dest, many: true}, nil
	case *[]map[string]any:
		return rows{maps: *dest, many: true}, nil
	}
	if stmt.Schema == nil {
		return rows{}, fmt.Errorf("gormplugin: rows of type %T: %w", stmt.Dest, ErrModelMismatch)
	}
	r := rows{structs: stmt.ReflectValue}
	return r, r.check(stmt)
}

func (r rows) check(stmt *gorm.Statement) error {
	v := r.structs
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() != stmt.Schema.ModelType {
			return mismatch(v.Type(), stmt)
		}
		if !v.CanAddr() {
			return fmt.Errorf("gormplugin: %s by value: %w", v.Type(), ErrNotAddressable)
		}
		return nil
	case reflect.Slice, reflect.Array:
		return r.checkElements(stmt)
	}
	return mismatch(v.Type(), stmt)
}

func (r rows) checkElements(stmt *gorm.Statement) error {
	elem := r.structs.Type().Elem()
	pointers := elem.Kind() == reflect.Pointer
	if pointers {
		elem = elem.Elem()
	}
	if elem != stmt.Schema.ModelType {
		return mismatch(elem, stmt)
	}
	for i := range r.structs.Len() {
		e := r.structs.Index(i)
		if pointers && e.IsNil() {
			return fmt.Errorf("gormplugin: row %d is nil: %w", i, gorm.ErrInvalidData)
		}
		if !pointers && !e.CanAddr() {
			return fmt.Errorf("gormplugin: %s by value: %w", r.structs.Type(), ErrNotAddressable)
		}
	}
	return nil
}

func mismatch(t reflect.Type, stmt *gorm.Statement) error {
	return fmt.Errorf("gormplugin: rows of type %s for model %s: %w", t, stmt.Schema.Name, ErrModelMismatch)
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

// empty reports whether row i has no value for the field yet.
func (r rows) empty(ctx context.Context, i int, f managed) bool {
	if r.structs.IsValid() {
		return f.kind.IsEmpty(f.ReflectValueOf(ctx, r.at(i)))
	}
	_, value, _ := inMap(r.maps[i], f.Field)
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	return v.IsZero()
}

// set gives row i the id.
func (r rows) set(ctx context.Context, i int, f managed, id int64) error {
	if r.structs.IsValid() {
		return f.kind.Set(f.ReflectValueOf(ctx, r.at(i)), id)
	}
	m := r.maps[i]
	if m == nil {
		return fmt.Errorf("row %d is a nil map: %w", i, gorm.ErrInvalidData)
	}
	name, _, _ := inMap(m, f.Field)
	m[name] = id
	return nil
}

// clear takes the id away again.
func (r rows) clear(ctx context.Context, i int, f managed) {
	if r.structs.IsValid() {
		f.ReflectValueOf(ctx, r.at(i)).SetZero()
		return
	}
	name, _, _ := inMap(r.maps[i], f.Field)
	delete(r.maps[i], name)
}
