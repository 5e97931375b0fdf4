// SPDX-License-Identifier: Apache-2.0

package keyfield_test

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/keyfield"
	"github.com/shardid/shardid/keygen"
)

// offering returns a set whose default generators are of these kinds.
func offering(sources ...keyfield.Source) (set keygen.Set) {
	for _, s := range sources {
		switch s {
		case keyfield.Ints:
			set.Default = keygen.Counting(1, 1)
		case keyfield.Texts:
			set.Text = map[string]keygen.Generator[string]{"": keygen.Func[string](func(context.Context) (string, error) { return "x", nil })}
		default:
			set.Binary = map[string]keygen.Generator[[16]byte]{"": keygen.Func[[16]byte](func(context.Context) ([16]byte, error) { return bytes16, nil })}
		}
	}
	return set
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
		f, v := tagged(t, c.field, c.tag)
		g, err := keyfield.Find(offering(c.offered...), c.tag, &f)
		if err != nil || g.Source() != c.want {
			t.Fatalf("%T %+v: %v, %v", c.field, c.tag, g, err)
		}
		keys := g.NewKeys()
		if err := errors.Join(keys.Draw(t.Context(), 1), keys.Put(0, v)); err != nil || f.IsEmpty(v) {
			t.Errorf("%T %+v: %v", c.field, c.tag, err)
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
		f, _ := tagged(t, c.field, c.tag)
		if g, err := keyfield.Find(offering(c.offered...), c.tag, &f); !errors.Is(err, keyfield.ErrType) {
			t.Errorf("%T %+v of %v: %v, %v", c.field, c.tag, c.offered, g, err)
		}
	}
}

func TestAMissingGeneratorIsNamedByTheKindOfTheField(t *testing.T) {
	for kind, p := range map[string]any{"": new(int64), "[16]byte ": new(raw)} {
		f, _ := of(t, p)
		_, err := keyfield.Find(keygen.Set{}, keyfield.Tag{Name: "order"}, &f)
		want := `"order"; the set names no ` + kind + "generators"
		if !errors.Is(err, keygen.ErrUnknownGenerator) || !strings.Contains(err.Error(), want) {
			t.Errorf("%T: %v", p, err)
		}
	}
}

func TestKeysMoveInTheirOrder(t *testing.T) {
	f, v := of(t, new(int64))
	g, err := keyfield.Given(keygen.Counting(7, 1), &f)
	if err != nil {
		t.Fatal(err)
	}
	from, to := g.NewKeys(), g.NewKeys()
	if err := from.Draw(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	to.Take(from, 2)
	to.Take(from, 2)
	var got []int64
	for i := range to.Len() {
		if err := to.Put(i, v); err != nil {
			t.Fatal(err)
		}
		got = append(got, v.Int())
	}
	if from.Len() != 0 || !reflect.DeepEqual(got, []int64{7, 8, 9}) {
		t.Errorf("%v, and %d are left", got, from.Len())
	}
}

func TestKeysThatAreRefusedAreNotInTheList(t *testing.T) {
	f, _ := of(t, new(*int8))
	g, err := keyfield.Given(keygen.Counting(127, 1), &f)
	if err != nil {
		t.Fatal(err)
	}
	keys := g.NewKeys()
	if err := errors.Join(keys.Draw(t.Context(), 1), keys.Fit(0)); err != nil {
		t.Error(err)
	}
	if err := keys.AddIDs(2, func(ids []int64) error { ids[0] = 5; return nil }); err == nil || keys.Len() != 1 {
		t.Errorf("a zero key: %v, %d keys", err, keys.Len())
	}
	if err := errors.Join(keys.Draw(t.Context(), 1), keys.Fit(1)); !errors.Is(err, keyfield.ErrOverflow) {
		t.Errorf("128 in an int8: %v", err)
	}
}
