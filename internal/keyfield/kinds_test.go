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
	"slices"
	"strconv"
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
	v := reflect.ValueOf(p).Elem()
	f, err := keyfield.Of(v.Type())
	if err != nil {
		t.Fatalf("%s: %v", v.Type(), err)
	}
	return f, v
}

func base36(id int64) string { return strconv.FormatInt(id, 36) }

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
			f, v := of(t, p)
			f, err := f.With(c.tag, base36)
			if err != nil || !f.IsEmpty(v) {
				t.Fatalf("%T: %v", p, err)
			}
			if err := f.Set(v, 1295); err != nil || f.IsEmpty(v) || textOf(v) != c.want {
				t.Errorf("%T %+v: %q, %v", p, c.tag, textOf(v), err)
			}
		}
	}
	for _, p := range []any{new(int64), new(raw), new(uuid), new(sql.NullInt64)} {
		f, _ := of(t, p)
		if _, err := f.With(keyfield.Tag{Pad: 5}, base36); !errors.Is(err, keyfield.ErrType) {
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

func TestTheFieldDecidesWhichGeneratorFillsIt(t *testing.T) {
	all := []keyfield.Source{keyfield.Ints, keyfield.Texts, keyfield.Binaries}
	encoded := keyfield.Tag{Encoding: keyfield.Base36}
	for _, c := range []struct {
		field   any
		tag     keyfield.Tag
		offered []keyfield.Source
		want    keyfield.Source
	}{
		{new(int64), keyfield.Tag{}, all, keyfield.Ints},
		{new(string), keyfield.Tag{}, all, keyfield.Texts},
		{new(string), encoded, all, keyfield.Ints},
		{new(string), keyfield.Tag{}, all[:1], keyfield.Ints},
		{new(raw), keyfield.Tag{}, all, keyfield.Binaries},
		{new(sql.NullInt64), keyfield.Tag{}, all, keyfield.Ints},
		{new(sql.NullString), keyfield.Tag{}, all[1:], keyfield.Texts},
		{new(sql.NullString), encoded, all, keyfield.Ints},
		{new(sql.NullString), keyfield.Tag{}, all, keyfield.Texts},
		{new(sql.NullString), keyfield.Tag{}, all[:1], keyfield.Ints},
		{new(nullUUID), keyfield.Tag{}, all, keyfield.Binaries},
	} {
		f, _ := of(t, c.field)
		f, err := f.With(c.tag, base36)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Choose(c.tag, offers(c.offered)); err != nil || got != c.want {
			t.Errorf("%T %+v: %d, %v", c.field, c.tag, got, err)
		}
	}
	for _, c := range []struct {
		field   any
		tag     keyfield.Tag
		offered []keyfield.Source
	}{
		{new(int64), keyfield.Tag{}, all[1:]}, {new(string), encoded, all[1:]}, {new(string), keyfield.Tag{}, all[2:]},
		{new(raw), keyfield.Tag{}, all[:2]}, {new(sql.NullInt64), keyfield.Tag{}, all[1:]},
	} {
		f, _ := of(t, c.field)
		if got, err := f.Choose(c.tag, offers(c.offered)); !errors.Is(err, keyfield.ErrType) {
			t.Errorf("%T %+v of %v: %d, %v", c.field, c.tag, c.offered, got, err)
		}
	}
}

func offers(sources []keyfield.Source) func(keyfield.Source) bool {
	return func(s keyfield.Source) bool { return slices.Contains(sources, s) }
}
