package sharding

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"strconv"
)

// integer is a key in the one form that rules compute with: every int64 and
// every uint64.
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

func signed(v int64) integer    { return integer{uint64(v), v < 0} }
func unsigned(v uint64) integer { return integer{bits: v} }

// toInteger reads a key of any kind that a database takes as an integer.
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
	case []byte:
		if v == nil { // the driver sends NULL
			return integer{}, fmt.Errorf("NULL: %w", ErrKeyType)
		}
		return fromText(string(v))
	case nil:
		return integer{}, fmt.Errorf("NULL: %w", ErrKeyType)
	case driver.Valuer:
		return fromValuer(v)
	}
	return fromReflect(reflect.ValueOf(key))
}

// fromText parses a decimal integer.
func fromText(s string) (integer, error) {
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return signed(v), nil
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return integer{}, fmt.Errorf("%q: %w", s, ErrKeyType)
	}
	return unsigned(v), nil
}

// fromValuer asks v what the database will be given.
func fromValuer(v driver.Valuer) (integer, error) {
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && rv.IsNil() {
		return integer{}, fmt.Errorf("nil %T: %w", v, ErrKeyType)
	}
	value, err := v.Value()
	if err != nil {
		return integer{}, fmt.Errorf("%T: %w: %w", v, ErrKeyType, err)
	}
	if _, again := value.(driver.Valuer); again {
		return integer{}, fmt.Errorf("%T yields another driver.Valuer: %w", v, ErrKeyType)
	}
	return toInteger(value)
}

// fromReflect reads named types, pointers and the rarer integer kinds.
func fromReflect(v reflect.Value) (integer, error) {
	switch {
	case v.CanInt():
		return signed(v.Int()), nil
	case v.CanUint():
		return unsigned(v.Uint()), nil
	case v.Kind() == reflect.String:
		return fromText(v.String())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 && !v.IsNil():
		return fromText(string(v.Bytes()))
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return toInteger(v.Elem().Interface())
	case v.Kind() == reflect.Pointer:
		return integer{}, fmt.Errorf("nil %s: %w", v.Type(), ErrKeyType)
	}
	return integer{}, fmt.Errorf("%s: %w", v.Type(), ErrKeyType)
}
