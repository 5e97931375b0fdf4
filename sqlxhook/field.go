// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"database/sql/driver"
	"encoding"
	"fmt"
	"reflect"
	"time"

	"github.com/shardid/shardid/internal/keyfield"
)

// field is where a row keeps a value.
type field struct {
	name   string        // "Order.ID" or a parameter's name, for messages
	index  []int         // path in a struct; nil for a map
	own    int           // index in the row itself, -1 behind others and in a map
	mapKey reflect.Value // in a map
	typ    reflect.Type  // nil in a map
	fixed  bool          // its value never takes more than fixedSize bytes

	numbered *keyfield.Type // NULL is stored when it is empty, and the database numbers the row; nil for all others
}

// fixedSize is above what a number or a time takes in a packet or in a text.
const fixedSize = 32

// structField returns the field of a struct type at a path.
func structField(name string, t reflect.Type, index []int) field {
	f := field{name: name, index: index, own: -1, typ: t.FieldByIndex(index).Type}
	if len(index) == 1 {
		f.own = index[0]
	}
	k := f.typ.Kind()
	f.fixed = f.typ == timeType || k >= reflect.Bool && k <= reflect.Complex128 && !isValuer(f.typ)
	return f
}

// of returns the field of row, which is addressable when row is.
func (f *field) of(row reflect.Value) (reflect.Value, error) {
	switch {
	case f.own >= 0:
		return row.Field(f.own), nil
	case f.index == nil:
		return f.ofMap(row)
	}
	return f.nested(row)
}

func (f *field) nested(row reflect.Value) (reflect.Value, error) {
	for i, n := range f.index {
		for i > 0 && row.Kind() == reflect.Pointer {
			if row.IsNil() {
				return reflect.Value{}, fmt.Errorf("embedded *%s: %w", row.Type().Elem(), ErrNil)
			}
			row = row.Elem()
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

// value returns what the driver is given of row.
func (f *field) value(row reflect.Value) (any, error) {
	v, err := f.of(row)
	if err != nil {
		return nil, err
	}
	if f.numbered != nil && f.numbered.IsEmpty(v) {
		return nil, nil
	}
	return v.Interface(), nil
}

// valueIn returns what the driver is given of row i of r.
func (f *field) valueIn(r *rows, i int) (any, error) {
	v, err := f.value(r.at(i))
	if err != nil {
		return nil, &RowError{Row: i, Field: f.name, Err: err}
	}
	return v, nil
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
	textType   = reflect.TypeFor[encoding.TextMarshaler]()
	timeType   = reflect.TypeFor[time.Time]()
)

// isInteger reports whether an id is stored in the field as a number.
func isInteger(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Uint64 }

func isValuer(t reflect.Type) bool { return t.Implements(valuerType) }
