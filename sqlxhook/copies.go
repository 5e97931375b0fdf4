// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"fmt"
	"reflect"
	"slices"
)

// Converting a struct field to an interface value allocates memory for each field. The
// exception is a struct that is not addressable: nobody can change its fields, so reflection
// lets the interface values point into it. When every field of a row is a parameter, the row
// is therefore copied as a whole, which is one allocation, and its arguments point into the
// copy. The row itself cannot serve, because an argument must not change with the row: a
// tracer or a mock may keep arguments for longer than the call.
//
// copiedRows is how many rows of a slice are copied at once.
const copiedRows = 64

// copiesOf returns the type of an array of rows of type t if the parameters are all the
// fields of t. Otherwise it returns nil, because other goroutines may use the fields that
// are not sent.
func copiesOf(t reflect.Type, fields []field) reflect.Type {
	sent := make(map[string]bool, len(fields))
	for i := range fields {
		sent[fmt.Sprint(fields[i].index)] = true
	}
	if t.Kind() != reflect.Struct || !isSent(t, nil, sent) {
		return nil
	}
	return reflect.ArrayOf(copiedRows, t)
}

// isSent reports whether every field of the struct at this path of a row is sent.
func isSent(t reflect.Type, path []int, sent map[string]bool) bool {
	for i := range t.NumField() {
		at := slices.Concat(path, []int{i})
		f := t.Field(i).Type
		if !sent[fmt.Sprint(at)] && (f.Kind() != reflect.Struct || !isSent(f, at, sent)) {
			return false
		}
	}
	return true
}

// eachRow calls f with each row, or with a copy of the row.
func (p *plan) eachRow(r *rows, f func(i int, row reflect.Value) error) error {
	whole := 0
	if p.copies != nil && r.many && r.v.Kind() == reflect.Slice && r.v.Type().Elem() == r.typ {
		whole = r.n - r.n%copiedRows
	}
	var some reflect.Value
	for i := range r.n {
		var row reflect.Value
		switch {
		case i < whole:
			if i%copiedRows == 0 {
				some = r.v.Slice(i, i+copiedRows).Convert(p.copies)
			}
			row = some.Index(i % copiedRows)
		case p.copies != nil:
			row = reflect.ValueOf(r.at(i).Interface())
		default:
			row = r.at(i)
		}
		if err := f(i, row); err != nil {
			return err
		}
	}
	return nil
}
