// SPDX-License-Identifier: Apache-2.0

package keyfield

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math"
	"reflect"
)

// probe finds the kinds of keys that a scanner accepts, by scanning a key of each kind into new
// values. It returns false if the scanner accepts none or t is no scanner.
func (t *Type) probe() bool {
	if !reflect.PointerTo(t.elem).Implements(scannerType) {
		return false
	}
	t.valuer = reflect.PointerTo(t.elem).Implements(valuerType)
	t.takes[Ints] = t.try(int64(1))
	t.overflow = t.takes[Ints] && !t.try(int64(math.MaxInt64))
	t.takes[Texts] = t.try("01HZX5K2Q8M4T7V9W3Y6R1P0NB") || t.try("018fff10-2030-7abc-8001-020304f50607")
	t.takes[Binaries] = t.try([]byte("\x01\x8f\xff\x10\x20\x30\x7a\xbc\x80\x01\x02\x03\x04\xf5\x06\x07"))
	return t.takes[Ints] || t.takes[Texts] || t.takes[Binaries]
}

func (t *Type) try(key any) bool {
	_, err := t.scanned(key)
	return err == nil
}

// scan stores key with the type's own Scan.
func (t *Type) scan(v reflect.Value, key any) error {
	fresh, err := t.scanned(key)
	if err != nil {
		if t.overflow {
			return fmt.Errorf("%v into %s: %w (%w)", key, t.elem, ErrOverflow, err)
		}
		return fmt.Errorf("%v into %s: %w", key, t.elem, err)
	}
	t.target(v).Set(fresh)
	return nil
}

// scanned returns a new value that has scanned key. If the value can be read, it holds all of the
// key.
func (t *Type) scanned(key any) (fresh reflect.Value, err error) {
	fresh = reflect.New(t.elem)
	if err := fresh.Interface().(sql.Scanner).Scan(key); err != nil {
		return reflect.Value{}, err
	}
	if t.valuer && !t.whole(fresh.Elem(), key) {
		return reflect.Value{}, fmt.Errorf("the scanned value is not the value that it returns: %w", ErrType)
	}
	return fresh.Elem(), nil
}

// whole reports whether v returns the key that it scanned. A number must be returned as itself or
// as some text, which may have any form, but not as a float or a boolean, which hold less. Bytes
// must not be returned as the letters of a text.
func (t *Type) whole(v reflect.Value, key any) bool {
	value, err := valueOf(v)
	if err != nil {
		return false
	}
	switch value := value.(type) {
	case int64:
		return value == key
	case string:
		raw, isBytes := key.([]byte)
		return !isBytes || value != string(raw)
	case []byte:
		return true
	}
	return false
}

// valueOf reads a driver.Valuer that may have its method on the pointer.
func valueOf(v reflect.Value) (driver.Value, error) {
	if valuer, ok := v.Interface().(driver.Valuer); ok {
		return valuer.Value()
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.Interface().(driver.Valuer).Value()
}
