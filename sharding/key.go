// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// integer is a key in the form in which rules compute: any int64 or uint64.
type integer struct {
	bits     uint64 // two's complement
	negative bool
}

// floorMod returns the key modulo n, from 0 to n-1 also for negative keys.
func (k integer) floorMod(n uint64) uint64 {
	if !k.negative {
		return k.bits % n
	}
	// -(bits+1) is the distance below -1 and cannot overflow, unlike -bits.
	return n - 1 - ^k.bits%n
}

// less reports whether k < bound.
func (k integer) less(bound int64) bool {
	if k.huge() {
		return false
	}
	return int64(k.bits) < bound
}

// huge reports whether k is above every int64.
func (k integer) huge() bool { return !k.negative && int64(k.bits) < 0 }

// appendTo appends the decimal text of k.
func (k integer) appendTo(text []byte) []byte {
	if k.negative {
		return strconv.AppendInt(text, int64(k.bits), 10)
	}
	return strconv.AppendUint(text, k.bits, 10)
}

func signed(v int64) integer    { return integer{uint64(v), v < 0} }
func unsigned(v uint64) integer { return integer{bits: v} }

// toInteger reads a key of any type that a database accepts as an integer.
func toInteger(key any) (integer, error) {
	switch v := key.(type) {
	case int64:
		return signed(v), nil
	case int:
		return signed(int64(v)), nil
	case uint64:
		return unsigned(v), nil
	case string:
		return fromText(v)
	}
	s, err := read(key)
	switch {
	case err != nil:
		return integer{}, err
	case s.kind == isInteger:
		return s.integer, nil
	case s.kind == isText:
		return fromText(s.text)
	}
	return integer{}, s.mistaken("an integer is expected")
}

// fromText parses a decimal integer.
func fromText(s string) (integer, error) {
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return signed(v), nil
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return integer{}, fmt.Errorf("%q: %w; an integer is expected", s, ErrKeyType)
	}
	return unsigned(v), nil
}

// kind is the type of a scalar.
type kind int

const (
	isOther kind = iota
	isInteger
	isText
	isTime
)

// scalar is a key in the form in which the database gets it, without the Go types around it.
type scalar struct {
	kind    kind
	bytes   bool // the text was a []byte
	integer integer
	text    string
	time    time.Time
	other   any
}

// mistaken returns the error of a rule that does not accept s.
func (s scalar) mistaken(expected string) error {
	return fmt.Errorf("%s: %w; %s", s.shown(), ErrKeyType, expected)
}

func (s scalar) shown() string {
	switch s.kind {
	case isInteger:
		return string(s.integer.appendTo(nil))
	case isText:
		return strconv.Quote(s.text)
	case isTime:
		return s.time.String()
	}
	return fmt.Sprintf("%T", s.other)
}

// value returns s as a Go value: int64, or uint64 above int64, string, time.Time, or the original
// value.
func (s scalar) value() any {
	switch s.kind {
	case isInteger:
		if s.integer.huge() {
			return s.integer.bits
		}
		return int64(s.integer.bits)
	case isText:
		return s.text
	case isTime:
		return s.time
	}
	return s.other
}

// read unwraps a key from named types, pointers and driver.Valuers. NULL is an error that wraps
// ErrKeyType, because NULL has no slot.
func read(key any) (scalar, error) {
	switch v := key.(type) {
	case int64:
		return scalar{kind: isInteger, integer: signed(v)}, nil
	case string:
		return scalar{kind: isText, text: v}, nil
	case []byte:
		if v == nil { // the driver sends NULL
			return scalar{}, fmt.Errorf("NULL: %w", ErrKeyType)
		}
		return scalar{kind: isText, bytes: true, text: string(v)}, nil
	case nil:
		return scalar{}, fmt.Errorf("NULL: %w", ErrKeyType)
	case time.Time:
		return scalar{kind: isTime, time: v}, nil
	case driver.Valuer:
		return readValuer(v)
	}
	return readReflect(reflect.ValueOf(key))
}

// readValuer calls Value, as the database's driver will.
func readValuer(v driver.Valuer) (scalar, error) {
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && rv.IsNil() {
		return scalar{}, fmt.Errorf("nil %T: %w", v, ErrKeyType)
	}
	value, err := v.Value()
	if err != nil {
		return scalar{}, fmt.Errorf("%T: %w: %w", v, ErrKeyType, err)
	}
	if _, again := value.(driver.Valuer); again {
		return scalar{}, fmt.Errorf("%T yields another driver.Valuer: %w", v, ErrKeyType)
	}
	return read(value)
}

// readReflect reads named types, pointers and the less frequent integer types.
func readReflect(v reflect.Value) (scalar, error) {
	switch {
	case v.CanInt():
		return scalar{kind: isInteger, integer: signed(v.Int())}, nil
	case v.CanUint():
		return scalar{kind: isInteger, integer: unsigned(v.Uint())}, nil
	case v.Kind() == reflect.String:
		return scalar{kind: isText, text: v.String()}, nil
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return read(v.Bytes())
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return read(v.Elem().Interface())
	case v.Kind() == reflect.Pointer:
		return scalar{}, fmt.Errorf("nil %s: %w", v.Type(), ErrKeyType)
	}
	return scalar{other: v.Interface()}, nil
}
