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

// field is the place of a value in a row: a struct field or a map key.
type field struct {
	name   string        // "Order.ID" or a parameter's name, for messages
	index  []int         // path in a struct; nil for a map
	own    int           // index in the row's own struct; -1 for fields of nested structs and for maps
	mapKey reflect.Value // in a map
	typ    reflect.Type  // nil in a map
	fixed  bool          // its value never has more than fixedSize bytes

	numbered *keyfield.Type // set if the database numbers the row: NULL is sent when the field is empty
}

// fixedSize is more bytes than any number or time needs, in a packet or in a text.
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

// of returns the field of row. The field is addressable if the row is.
func (f *field) of(row reflect.Value) (reflect.Value, error) {
	switch {
	case f.own >= 0:
		return row.Field(f.own), nil
	case f.index == nil:
		return f.ofMap(row)
	}
	v, err := row.FieldByIndexErr(f.index)
	if err != nil {
		return v, fmt.Errorf("%w: %w", ErrNil, err)
	}
	return v, nil
}

func (f *field) ofMap(row reflect.Value) (reflect.Value, error) {
	v := row.MapIndex(f.mapKey)
	if !v.IsValid() {
		return v, fmt.Errorf("%w; set it in the map, or pass a struct with a keygen tag: ids of maps are not generated", ErrParameter)
	}
	return v, nil
}

// fail returns an error about the field of a row.
func (f *field) fail(row int, err error) error { return &RowError{Row: row, Field: f.name, Err: err} }

// value returns the argument that the driver gets for row.
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

// valueIn returns the argument that the driver gets for row i of r.
func (f *field) valueIn(r *rows, i int) (any, error) {
	v, err := f.value(r.at(i))
	if err != nil {
		return nil, f.fail(i, err)
	}
	return v, nil
}

// asID returns the id that a filled or preset key holds, and false if the key is no integer.
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
