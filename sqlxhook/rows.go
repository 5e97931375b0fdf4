// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"fmt"
	"reflect"
)

// rows is the argument of a call: one row or a slice of rows. Each row is a struct or a map,
// and all have the same type.
type rows struct {
	v    reflect.Value // the single row, or the slice or array
	many bool
	n    int
	typ  reflect.Type // the type of a row, without pointers
}

// read sets r from the argument of a call. After it, no row is nil.
func (r *rows) read(arg any) error {
	v := reflect.ValueOf(arg)
	if v.Kind() == reflect.Pointer {
		if row := v.Elem(); row.Kind() == reflect.Struct { // the most frequent argument
			r.v, r.n, r.typ = row, 1, row.Type()
			return nil
		}
	}
	v, ok := follow(v)
	if !ok {
		return fmt.Errorf("%T: %w", arg, ErrNil)
	}
	r.v, r.n, r.typ = v, 1, v.Type()
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
		r.many, r.n = true, v.Len()
		if r.n == 0 {
			return fmt.Errorf("%T is empty: %w", arg, ErrArgument)
		}
		if err := r.checkElements(); err != nil {
			return err
		}
	}
	if r.typ.Kind() != reflect.Struct && !isMap(r.typ) {
		return fmt.Errorf("%T: %w", arg, ErrArgument)
	}
	return nil
}

// checkElements sets r.typ. It fails if an element is nil or has another type than the
// first.
func (r *rows) checkElements() error {
	r.typ = r.v.Type().Elem()
	if k := r.typ.Kind(); k != reflect.Pointer && k != reflect.Interface {
		return nil
	}
	for i := range r.n {
		row, ok := follow(r.v.Index(i))
		switch {
		case !ok:
			return &RowError{Row: i, Err: ErrNil}
		case i == 0:
			r.typ = row.Type()
		case row.Type() != r.typ:
			return &RowError{Row: i, Err: fmt.Errorf("%s among %s: %w", row.Type(), r.typ, ErrArgument)}
		}
	}
	return nil
}

// at returns row i, a struct or a map.
func (r *rows) at(i int) reflect.Value {
	if !r.many {
		return r.v
	}
	row := r.v.Index(i)
	if row.Kind() != reflect.Struct {
		row, _ = follow(row)
	}
	return row
}

func isMap(t reflect.Type) bool {
	return t.Kind() == reflect.Map && t.Key().Kind() == reflect.String
}

// follow dereferences pointers and interfaces. It returns false if one of them is nil.
func follow(v reflect.Value) (reflect.Value, bool) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v, v.IsValid()
}
