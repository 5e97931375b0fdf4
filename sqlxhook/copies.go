// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"fmt"
	"reflect"
	"slices"
)

// Making an interface value of a field takes memory of its own, unless the struct
// cannot be addressed: nobody can change its fields then, and reflection has the
// interface values point into it. So a row of which every field is sent is copied as
// a whole, and its arguments share the copy. It has to be a copy, as an argument may
// not change when its row does: a tracer or a mock may have it for longer.

// copiedRows is how many rows of a slice are copied at once.
const copiedRows = 64

// copiesOf returns the type of an array of rows of type t if the parameters are all
// the fields that t has, and nil otherwise: other goroutines may use the rest of a row.
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

// isSent reports whether all that a struct at this path of a row holds is sent.
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

// copied calls f with each row, or a copy of it.
func (p *plan) copied(r *rows, f func(i int, row reflect.Value) error) error {
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
