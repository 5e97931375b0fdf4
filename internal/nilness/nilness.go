// SPDX-License-Identifier: Apache-2.0

// Package nilness reports whether an interface holds a value whose methods can be called.
//
// All constructors use it: an interface without a value, and one with a nil pointer, function, map,
// slice or channel, are both nil. Go's own comparison with nil finds only the first.
package nilness

import "reflect"

// Is reports whether v is nil, or holds a nil pointer, function, map, slice or channel.
func Is(v any) bool {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan, reflect.UnsafePointer:
		return r.IsNil()
	}
	return false
}
