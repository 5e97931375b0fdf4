package sqlxhook

import (
	"database/sql/driver"
	"fmt"
	"reflect"
)

// field is where a row keeps a value.
type field struct {
	name   string        // "Order.ID" or a parameter's name, for messages
	index  []int         // path in a struct; nil for a map
	mapKey reflect.Value // in a map
}

// of returns the field of row, which is addressable when row is.
func (f *field) of(row reflect.Value) (reflect.Value, error) {
	if f.index == nil {
		return f.ofMap(row)
	}
	for i, n := range f.index {
		if i > 0 {
			for row.Kind() == reflect.Pointer {
				if row.IsNil() {
					return reflect.Value{}, fmt.Errorf("embedded *%s: %w", row.Type().Elem(), ErrNil)
				}
				row = row.Elem()
			}
		}
		row = row.Field(n)
	}
	return row, nil
}

func (f *field) ofMap(row reflect.Value) (reflect.Value, error) {
	v := row.MapIndex(f.mapKey)
	if !v.IsValid() {
		return v, ErrParameter
	}
	return v, nil
}

// value returns what the driver is given for row i of r.
func (f *field) value(r *rows, i int) (any, error) {
	v, err := f.of(r.at(i))
	if err != nil {
		return nil, &RowError{Row: i, Field: f.name, Err: err}
	}
	return v.Interface(), nil
}

// asID reads a filled or preset key back, 0 if it is no integer.
func asID(v reflect.Value) int64 {
	v, ok := follow(v)
	switch {
	case !ok:
		return 0
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return int64(v.Uint())
	}
	if valuer, ok := v.Interface().(driver.Valuer); ok {
		if value, err := valuer.Value(); err == nil {
			id, _ := value.(int64)
			return id
		}
	}
	return 0
}
