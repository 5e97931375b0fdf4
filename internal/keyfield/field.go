// SPDX-License-Identifier: Apache-2.0

package keyfield

import (
	"cmp"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

var (
	// ErrType: the field's type cannot hold a key of the generator that its tag names.
	ErrType = errors.New("type cannot hold a key of this generator; integers take int64 ids, strings texts or encoded ids, [16]byte takes binary keys, and types with Scan what they scan")
	// ErrOverflow: the id is larger than the field.
	ErrOverflow = errors.New("id does not fit the field; widen the field and its column to 64 bits")
)

// Type is a field's type with the way to fill it. It is immutable and safe for concurrent use.
type Type struct {
	form     form
	depth    int // the number of pointers to follow
	elem     reflect.Type
	overflow bool               // narrower than 63 bits: each id must be checked
	takes    [sources]bool      // the kinds of keys that a scanner accepts, found by a test
	valuer   bool               // a scanner whose value can be read
	encode   func(int64) string // writes an id as a text; nil for numbers
	pad      int
}

type form uint8

const (
	signed form = iota + 1
	unsigned
	text
	binary
	scanner
)

// Source is the kind of keys that a generator issues.
type Source uint8

// The kinds of keys.
const (
	Ints     Source = iota // int64
	Texts                  // string
	Binaries               // [16]byte
	sources
)

var (
	scannerType = reflect.TypeFor[sql.Scanner]()
	valuerType  = reflect.TypeFor[driver.Valuer]()
)

// Of returns how to fill a field of type t with this tag, or an error that wraps ErrType. In strings,
// integer ids become decimal texts unless the tag asks for another form, whose texts are padded with
// leading zeros if they are shorter than tag.Pad.
func Of(t reflect.Type, tag Tag) (Type, error) {
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
	case reflect.String:
		f.form = text
	default:
		if isBinary(f.elem) {
			f.form = binary
			break
		}
		if f.form = scanner; !f.probe() {
			return Type{}, fmt.Errorf("%s: %w", t, ErrType)
		}
	}
	return f.with(tag)
}

// isBinary reports whether t is [16]byte or a type based on it, such as uuid.UUID.
func isBinary(t reflect.Type) bool {
	return t.Kind() == reflect.Array && t.Len() == 16 && t.Elem() == reflect.TypeFor[byte]()
}

// with returns t for fields whose tag asks for a text form of ids. If the type cannot hold a text,
// the error wraps ErrType.
func (t Type) with(tag Tag) (Type, error) {
	if !tag.Text() {
		return t, nil
	}
	if t.form != text && !t.takes[Texts] {
		return Type{}, fmt.Errorf("%s: %w; %s are for text keys", t.elem, ErrType, textOptions)
	}
	t.encode, t.pad = encodings[cmp.Or(tag.Encoding, Dec)].Encode, tag.Pad
	return t, nil
}

func (t *Type) holds(s Source) bool {
	switch t.form {
	case signed, unsigned:
		return s == Ints
	case text:
		return s != Binaries
	case binary:
		return s == Binaries
	}
	return t.takes[s] || s == Ints && t.encode != nil
}

// IsText reports whether ids are stored as texts.
func (t *Type) IsText() bool { return t.form == text || t.encode != nil }

// Narrow reports whether some 63-bit ids do not fit the type.
func (t *Type) Narrow() bool { return t.overflow }

// IsEmpty reports whether the field holds no key yet: zero, a nil pointer, a
// pointer to zero, or a driver.Valuer of NULL or of zero.
func (t *Type) IsEmpty(v reflect.Value) bool {
	for range t.depth {
		if v.IsNil() {
			return true
		}
		v = v.Elem()
	}
	if v.IsZero() {
		return true
	}
	if !t.valuer {
		return false
	}
	value, err := valueOf(v)
	return err == nil && (value == nil || reflect.ValueOf(value).IsZero())
}

// Set stores id in the addressable field v, and allocates nil pointers. It stores nothing if it
// returns an error.
func (t *Type) Set(v reflect.Value, id int64) error {
	if t.IsText() {
		return t.SetText(v, t.encoded(id))
	}
	if err := t.check(id); err != nil {
		return err
	}
	switch t.form {
	case signed:
		t.target(v).SetInt(id)
	case unsigned:
		t.target(v).SetUint(uint64(id))
	case scanner:
		return t.scan(v, id)
	default:
		return fmt.Errorf("%d into %s: %w", id, t.elem, ErrType)
	}
	return nil
}

// SetText stores a text key like Set.
func (t *Type) SetText(v reflect.Value, key string) error {
	switch t.form {
	case text:
		t.target(v).SetString(key)
		return nil
	case scanner:
		return t.scan(v, key)
	}
	return fmt.Errorf("a text into %s: %w", t.elem, ErrType)
}

// SetBinary stores a binary key like Set. Scanners get its 16 bytes.
func (t *Type) SetBinary(v reflect.Value, key [16]byte) error {
	switch t.form {
	case binary:
		reflect.Copy(t.target(v), reflect.ValueOf(key[:]))
		return nil
	case scanner:
		return t.scan(v, key[:])
	}
	return fmt.Errorf("16 bytes into %s: %w", t.elem, ErrType)
}

// target follows v's pointers and allocates those that are nil.
func (t *Type) target(v reflect.Value) reflect.Value {
	for range t.depth {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	return v
}

func (t *Type) encoded(id int64) string {
	var s string
	if t.encode != nil {
		s = t.encode(id)
	} else {
		s = strconv.FormatInt(id, 10)
	}
	if missing := t.pad - len(s); missing > 0 {
		s = strings.Repeat("0", missing) + s
	}
	return s
}

func (t *Type) check(id int64) error {
	switch {
	case t.form == signed && t.overflow && reflect.Zero(t.elem).OverflowInt(id),
		t.form == unsigned && (id < 0 || t.overflow && reflect.Zero(t.elem).OverflowUint(uint64(id))):
		return fmt.Errorf("%d into %s: %w", id, t.elem, ErrOverflow)
	}
	return nil
}
