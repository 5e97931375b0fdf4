package keyfield

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
)

var (
	// ErrType: the field's type cannot hold a generated integer id.
	ErrType = errors.New("type cannot hold a generated id; use int64, uint64, keygen.ID or a type that scans an int64")
	// ErrOverflow: the id is larger than the field.
	ErrOverflow = errors.New("id does not fit the field; widen the field and its column to 64 bits")
)

// Type is a field's type, ready to be filled. It is immutable and safe for
// concurrent use.
type Type struct {
	form     form
	depth    int // pointers to follow
	elem     reflect.Type
	overflow bool // narrower than 63 bits: each id must be checked
}

type form uint8

const (
	signed form = iota + 1
	unsigned
	scanner
)

var scannerType = reflect.TypeFor[sql.Scanner]()

// Of returns how to fill a field of type t, or an error that wraps ErrType.
func Of(t reflect.Type) (Type, error) {
	f := Type{elem: t}
	for f.elem.Kind() == reflect.Pointer {
		f.elem = f.elem.Elem()
		f.depth++
	}
	switch f.elem.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		f.form, f.overflow = signed, f.elem.Bits() < 64
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		f.form, f.overflow = unsigned, f.elem.Bits() < 64
	default:
		if !reflect.PointerTo(f.elem).Implements(scannerType) {
			return Type{}, fmt.Errorf("%s: %w", t, ErrType)
		}
		f.form = scanner
	}
	return f, nil
}

// Narrow reports whether some 63-bit ids do not fit the type.
func (t Type) Narrow() bool { return t.overflow }

// IsEmpty reports whether the field holds no key yet: zero, or a nil pointer,
// or a pointer to zero.
func (t Type) IsEmpty(v reflect.Value) bool {
	for range t.depth {
		if v.IsNil() {
			return true
		}
		v = v.Elem()
	}
	return v.IsZero()
}

// Set stores id in the addressable field v, allocating pointers on the way.
// Nothing is stored when it returns an error.
func (t Type) Set(v reflect.Value, id int64) error {
	if err := t.check(id); err != nil {
		return err
	}
	for range t.depth {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	switch t.form {
	case signed:
		v.SetInt(id)
	case unsigned:
		v.SetUint(uint64(id))
	default:
		return v.Addr().Interface().(sql.Scanner).Scan(id)
	}
	return nil
}

func (t Type) check(id int64) error {
	switch {
	case t.form == signed && t.overflow && reflect.Zero(t.elem).OverflowInt(id),
		t.form == unsigned && (id < 0 || t.overflow && reflect.Zero(t.elem).OverflowUint(uint64(id))):
		return fmt.Errorf("%d into %s: %w", id, t.elem, ErrOverflow)
	}
	return nil
}
