// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/keygen"
)

func TestASetKeepsGeneratorsOfEachKindApart(t *testing.T) {
	s := keygen.Set{
		Named: map[string]keygen.Generator[int64]{"order": keygen.Counting(7, 1)},
		Text: map[string]keygen.Generator[string]{
			"order": keygen.Func[string](func(context.Context) (string, error) { return "text", nil }),
			"":      keygen.Func[string](func(context.Context) (string, error) { return "default", nil }),
		},
		Binary: map[string]keygen.Generator[[16]byte]{
			"order": keygen.Func[[16]byte](func(context.Context) ([16]byte, error) { return [16]byte{1}, nil }),
			"item":  keygen.Func[[16]byte](func(context.Context) ([16]byte, error) { return [16]byte{2}, nil }),
		},
	}
	if g, err := s.LookupText("order"); err != nil || first(t, g) != "text" {
		t.Error(err)
	}
	if g, err := s.LookupText(""); err != nil || first(t, g) != "default" {
		t.Error(err)
	}
	if g, err := s.LookupBinary("order"); err != nil || first(t, g) != [16]byte{1} {
		t.Error(err)
	}
	if g, err := s.Lookup("order"); err != nil || first(t, g) != 7 {
		t.Error(err)
	}
	if _, err := s.LookupText("item"); !errors.Is(err, keygen.ErrUnknownGenerator) || !strings.Contains(err.Error(), "string [, order]") {
		t.Error(err)
	}
	if _, err := s.LookupBinary("other"); !errors.Is(err, keygen.ErrUnknownGenerator) || !strings.Contains(err.Error(), `"other"; the set has [16]byte [item, order]`) {
		t.Error(err)
	}
}

func TestAGeneratorThatIsListedButNilIsSaidToBeNil(t *testing.T) {
	s := keygen.Set{
		Named:  map[string]keygen.Generator[int64]{"order": nil},
		Binary: map[string]keygen.Generator[[16]byte]{"": nil},
	}
	if g, err := s.Lookup("order"); g != nil || !errors.Is(err, keygen.ErrUnknownGenerator) || !strings.Contains(err.Error(), `"order" is nil`) {
		t.Error(err)
	}
	if g, err := s.LookupBinary(""); g != nil || !errors.Is(err, keygen.ErrUnknownGenerator) || !strings.Contains(err.Error(), `[16]byte "" is nil`) {
		t.Error(err)
	}
}

// never is a generator that needs its receiver.
type never struct{ ids []int64 }

func (n *never) Next(context.Context) (int64, error)       { return n.ids[0], nil }
func (n *never) Fill(_ context.Context, dst []int64) error { copy(dst, n.ids); return nil }

func TestANilPointerIsNoGenerator(t *testing.T) {
	for says, s := range map[string]keygen.Set{
		"Default is a nil *keygen_test.never": {Default: (*never)(nil)},
		`Named["order"] is nil`:               {Named: map[string]keygen.Generator[int64]{"order": (*never)(nil), "z": &never{}}},
		`Text[""] is nil`:                     {Text: map[string]keygen.Generator[string]{"": keygen.Func[string](nil)}},
		`Binary["b"] is nil`:                  {Binary: map[string]keygen.Generator[[16]byte]{"b": nil}},
	} {
		if err := s.Check(); !errors.Is(err, keygen.ErrUnknownGenerator) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	for _, s := range []keygen.Set{{}, {Default: &never{}}, {Named: map[string]keygen.Generator[int64]{"order": keygen.Counting(1, 1)}}} {
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
	s := keygen.Set{Default: (*never)(nil), Named: map[string]keygen.Generator[int64]{"order": (*never)(nil)}}
	for _, name := range []string{"", "order"} {
		if g, err := s.Lookup(name); g != nil || !errors.Is(err, keygen.ErrUnknownGenerator) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestASetWithoutADefaultNamesWhatItHas(t *testing.T) {
	for want, s := range map[string]keygen.Set{
		"the set has no Default; set it":                                   {},
		"the set has no Default; set it, or name one of [a, b] in the tag": {Named: map[string]keygen.Generator[int64]{"b": nil, "a": nil}},
	} {
		if _, err := s.Lookup(""); !errors.Is(err, keygen.ErrUnknownGenerator) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func first[K any](t *testing.T, g keygen.Generator[K]) K {
	t.Helper()
	k, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return k
}
