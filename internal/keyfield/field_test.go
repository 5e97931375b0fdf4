// SPDX-License-Identifier: Apache-2.0

package keyfield_test

import (
	"database/sql"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/shardid/shardid/internal/keyfield"
)

type named int64

func TestEveryIntegerKindReceivesTheWholeID(t *testing.T) {
	for _, p := range []any{
		new(int64), new(int), new(uint64), new(uint), new(named), new(*int64), new(**uint64), new(sql.NullInt64),
	} {
		v := reflect.ValueOf(p).Elem()
		f, err := keyfield.Of(v.Type(), keyfield.Tag{})
		if err != nil {
			t.Fatalf("%s: %v", v.Type(), err)
		}
		if !f.IsEmpty(v) {
			t.Errorf("%s: a fresh value is not empty", v.Type())
		}
		if err := f.Set(v, math.MaxInt64); err != nil {
			t.Errorf("%s: %v", v.Type(), err)
		}
		if f.IsEmpty(v) || f.Narrow() {
			t.Errorf("%s: empty or narrow after Set", v.Type())
		}
		for v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if n, ok := v.Interface().(sql.NullInt64); ok && (n.Int64 != math.MaxInt64 || !n.Valid) {
			t.Errorf("NullInt64 holds %v", n)
		}
		if v.CanInt() && v.Int() != math.MaxInt64 || v.CanUint() && v.Uint() != math.MaxInt64 {
			t.Errorf("%s holds %v", v.Type(), v)
		}
	}
}

func TestAnIDTooLargeForTheFieldIsRefusedAndNotStored(t *testing.T) {
	for _, p := range []any{new(int32), new(uint32), new(int8), new(*uint16)} {
		v := reflect.ValueOf(p).Elem()
		f, err := keyfield.Of(v.Type(), keyfield.Tag{})
		if err != nil || !f.Narrow() {
			t.Fatalf("%s: narrow=%v, %v", v.Type(), f.Narrow(), err)
		}
		if err := f.Set(v, 1<<33); !errors.Is(err, keyfield.ErrOverflow) {
			t.Errorf("%s: got %v, want ErrOverflow", v.Type(), err)
		}
		if !f.IsEmpty(v) {
			t.Errorf("%s: something was stored", v.Type())
		}
		if err := f.Set(v, 100); err != nil {
			t.Errorf("%s: 100 fits, got %v", v.Type(), err)
		}
	}
	v := reflect.ValueOf(new(uint64)).Elem()
	f, _ := keyfield.Of(v.Type(), keyfield.Tag{})
	if err := f.Set(v, -1); !errors.Is(err, keyfield.ErrOverflow) {
		t.Errorf("-1 into uint64: %v", err)
	}
}

func TestAPointerToZeroIsEmpty(t *testing.T) {
	p := new(int64)
	v := reflect.ValueOf(&p).Elem()
	f, err := keyfield.Of(v.Type(), keyfield.Tag{})
	if err != nil || !f.IsEmpty(v) {
		t.Fatal("pointer to 0 counts as a key", err)
	}
}

func TestOtherTypesAreRefused(t *testing.T) {
	for _, x := range []any{1.5, struct{}{}, []int64{}, [15]byte{}, [16]int8{}, sql.NullBool{}, sql.NullFloat64{}, sql.NullTime{}} {
		if _, err := keyfield.Of(reflect.TypeOf(x), keyfield.Tag{}); !errors.Is(err, keyfield.ErrType) {
			t.Errorf("%T: %v", x, err)
		}
	}
}
