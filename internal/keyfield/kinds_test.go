// SPDX-License-Identifier: Apache-2.0

package keyfield_test

import (
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/keyfield"
)

type (
	code string
	raw  [16]byte
)

// uuid behaves like those of the usual packages: it scans bytes and text, and returns text.
type uuid [16]byte

func (u *uuid) Scan(src any) error {
	switch src := src.(type) {
	case []byte:
		if len(src) == 16 {
			copy(u[:], src)
			return nil
		}
	case string:
		if b, err := hex.DecodeString(strings.ReplaceAll(src, "-", "")); err == nil && len(b) == 16 {
			copy(u[:], b)
			return nil
		}
	}
	return fmt.Errorf("no uuid: %v", src)
}
func (u uuid) Value() (driver.Value, error) { return hex.EncodeToString(u[:]), nil }

type nullUUID struct {
	UUID  uuid
	Valid bool
}

func (n *nullUUID) Scan(src any) error {
	err := n.UUID.Scan(src)
	n.Valid = err == nil
	return err
}

func (n nullUUID) Value() (driver.Value, error) {
	if !n.Valid {
		return nil, nil
	}
	return n.UUID.Value()
}

// cut is a scanner that silently keeps only 32 bits.
type cut struct{ n int32 }

func (c *cut) Scan(src any) error {
	n, ok := src.(int64)
	if !ok {
		return errors.New("not a number")
	}
	c.n = int32(n)
	return nil
}
func (c cut) Value() (driver.Value, error) { return int64(c.n), nil }

// late is a scanner whose Value has a pointer receiver.
type late struct{ n int64 }

func (l *late) Scan(src any) error           { l.n, _ = src.(int64); return nil }
func (l *late) Value() (driver.Value, error) { return l.n, nil }

var bytes16 = [16]byte{0: 1, 8: 0x80, 15: 0xff}

func of(t *testing.T, p any) (keyfield.Type, reflect.Value) {
	t.Helper()
	return tagged(t, p, keyfield.Tag{})
}

func tagged(t *testing.T, p any, tag keyfield.Tag) (keyfield.Type, reflect.Value) {
	t.Helper()
	v := reflect.ValueOf(p).Elem()
	f, err := keyfield.Of(v.Type(), tag)
	if err != nil {
		t.Fatalf("%s: %v", v.Type(), err)
	}
	return f, v
}

func TestIDsBecomeTextsInTheFormTheTagAsksFor(t *testing.T) {
	for _, c := range []struct {
		tag  keyfield.Tag
		want string
	}{
		{keyfield.Tag{}, "1295"},
		{keyfield.Tag{Encoding: keyfield.Base36}, "zz"},
		{keyfield.Tag{Encoding: keyfield.Base36, Pad: 5}, "000zz"},
		{keyfield.Tag{Encoding: keyfield.Base36, Pad: 1}, "zz"},
	} {
		for _, p := range []any{new(string), new(code), new(*string), new(sql.NullString), new(*sql.Null[string])} {
			f, v := tagged(t, p, c.tag)
			if !f.IsEmpty(v) {
				t.Fatalf("%T: a fresh value is not empty", p)
			}
			if err := f.Set(v, 1295); err != nil || f.IsEmpty(v) || textOf(v) != c.want {
				t.Errorf("%T %+v: %q, %v", p, c.tag, textOf(v), err)
			}
		}
	}
	for _, p := range []any{new(int64), new(raw), new(uuid), new(sql.NullInt64)} {
		if _, err := keyfield.Of(reflect.TypeOf(p).Elem(), keyfield.Tag{Pad: 5}); !errors.Is(err, keyfield.ErrType) {
			t.Errorf("%T: %v", p, err)
		}
	}
}

func textOf(v reflect.Value) string {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if valuer, ok := v.Interface().(driver.Valuer); ok {
		text, _ := valuer.Value()
		return text.(string)
	}
	return v.String()
}

func TestTextKeysAreStoredWhole(t *testing.T) {
	for _, p := range []any{new(string), new(**code), new(sql.NullString)} {
		f, v := of(t, p)
		if err := f.SetText(v, "ord_1"); err != nil || textOf(v) != "ord_1" {
			t.Errorf("%T: %v", p, err)
		}
	}
	for _, p := range []any{new(int64), new(raw), new(sql.NullInt64), new(nullUUID)} {
		f, v := of(t, p)
		if err := f.SetText(v, "ord_1"); err == nil || !f.IsEmpty(v) {
			t.Errorf("%T: %v", p, err)
		}
	}
}

func TestBinaryKeysAreStoredWhole(t *testing.T) {
	for _, p := range []any{new([16]byte), new(raw), new(uuid), new(*uuid), new(nullUUID), new(*sql.Null[uuid])} {
		f, v := of(t, p)
		if !f.IsEmpty(v) {
			t.Errorf("%T: a fresh value is not empty", p)
		}
		if err := f.SetBinary(v, bytes16); err != nil || f.IsEmpty(v) {
			t.Errorf("%T: %v", p, err)
		}
	}
	var id uuid
	f, v := of(t, &id)
	if err := f.SetBinary(v, bytes16); err != nil || id != uuid(bytes16) {
		t.Errorf("%v, %v", id, err)
	}
	for _, p := range []any{new(int64), new(string), new(sql.NullString), new(cut)} {
		f, v := of(t, p)
		if err := f.SetBinary(v, bytes16); err == nil || !f.IsEmpty(v) {
			t.Errorf("%T: %v", p, err)
		}
	}
}

func TestAScannerThatWouldCutTheIDIsRefused(t *testing.T) {
	for _, p := range []any{new(cut), new(sql.NullInt32), new(*sql.NullInt16), new(sql.Null[int8])} {
		f, v := of(t, p)
		if !f.Narrow() {
			t.Errorf("%T is not narrow", p)
		}
		if err := f.Set(v, 1<<40); !errors.Is(err, keyfield.ErrOverflow) || !v.IsZero() {
			t.Errorf("%T: %v, %v", p, err, v)
		}
		if err := f.Set(v, 100); err != nil || f.IsEmpty(v) {
			t.Errorf("%T: 100 fits, got %v", p, err)
		}
	}
	f, v := of(t, new(late))
	if err := f.Set(v, math.MaxInt64); err != nil || f.IsEmpty(v) || f.Narrow() {
		t.Errorf("a Value method on the pointer: %v, narrow %v", err, f.Narrow())
	}
}

func TestANullIsEmptyWhateverElseItHolds(t *testing.T) {
	for _, p := range []any{&sql.NullInt64{Int64: 5}, &sql.NullInt64{Valid: true}, &sql.NullString{String: "x"}} {
		if f, v := of(t, p); !f.IsEmpty(v) {
			t.Errorf("%+v counts as a key", p)
		}
	}
}
