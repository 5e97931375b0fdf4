package sqlxhook

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"time"
)

// field is where a row keeps a value.
type field struct {
	name   string        // "Order.ID" or a parameter's name, for messages
	index  []int         // path in a struct; nil for a map
	mapKey reflect.Value // in a map
	cell   cell
	size   size
}

// size is how the bytes of a field's value are counted.
type size uint8

const (
	unlike   size = iota // by each value
	fixed                // as numbers, times and the like are
	lengthOf             // by the length of the string or slice of bytes in the cell
)

// fixedSize is above what a number or a time takes in a packet or in a text.
const fixedSize = 32

// structField returns the field of a struct type at a path.
func structField(name string, t reflect.Type, index []int) field {
	f := field{name: name, index: index, cell: cellOf(t, index)}
	f.size = sizeOf(t.FieldByIndex(index).Type, f.cell.typ != nil)
	return f
}

func sizeOf(t reflect.Type, inCell bool) size {
	switch k := t.Kind(); {
	case t == timeType, k >= reflect.Bool && k <= reflect.Complex128 && !isValuer(t):
		return fixed
	case inCell && !isValuer(t) && (k == reflect.String || k == reflect.Slice && t.Elem().Kind() == reflect.Uint8):
		return lengthOf
	}
	return unlike
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

// in returns the field of row i of r.
func (f *field) in(r *rows, i int) (reflect.Value, error) {
	v, err := f.of(r.at(i))
	if err != nil {
		return v, &RowError{Row: i, Field: f.name, Err: err}
	}
	return v, nil
}

// value returns what the driver is given for row i of r.
func (f *field) value(r *rows, i int) (value any, err error) {
	if f.cell.typ != nil && r.memory.first != nil {
		f.cell.put(&value, r.memory.row(i))
		return value, nil
	}
	v, err := f.in(r, i)
	if err != nil {
		return nil, err
	}
	return v.Interface(), nil
}

// asID reads a filled or preset key back; false if it is no integer.
func asID(v reflect.Value) (int64, bool) {
	v, ok := follow(v)
	switch {
	case !ok:
		return 0, true
	case v.CanInt():
		return v.Int(), true
	case v.CanUint():
		return int64(v.Uint()), true
	}
	if valuer, ok := v.Interface().(driver.Valuer); ok {
		value, err := valuer.Value()
		id, isInt := value.(int64)
		return id, err == nil && (isInt || value == nil)
	}
	return 0, false
}

var (
	valuerType = reflect.TypeFor[driver.Valuer]()
	timeType   = reflect.TypeFor[time.Time]()
)

func isValuer(t reflect.Type) bool { return t.Implements(valuerType) }
