// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
)

var (
	integer  = catalog.OfKind(merge.Integer)
	decimal  = catalog.OfKind(merge.Decimal)
	float    = catalog.OfKind(merge.Float)
	stored   = catalog.OfKind(merge.Stored) // of SQLite
	clock    = catalog.OfKind(merge.Time)
	duration = catalog.OfKind(merge.Duration)
	single   = catalog.Value{Type: merge.Type{Kind: merge.Float}, As: catalog.Double}
	member   = catalog.Value{Type: merge.Type{Kind: merge.Integer}, As: catalog.Number}
	padded   = catalog.Value{Type: merge.Type{Kind: merge.Bytes, Pad: "\x00 ", Prefix: 1024}, As: catalog.Weight, Collation: "utf8mb4_bin"}
	long     = catalog.Value{Type: merge.Type{Kind: merge.Bytes, Most: 8}, As: catalog.Weight}
	trimmed  = catalog.Value{Type: merge.Type{Kind: merge.Bytes}, As: catalog.Trimmed}
	texts    = catalog.Value{Type: merge.Type{Kind: merge.Bytes}, Texts: true}
	octets   = catalog.OfKind(merge.Bytes)
	unknown  = catalog.Value{}
)

func TestAValueIsSelectedInTheFormInWhichItIsCompared(t *testing.T) {
	for _, of := range []struct {
		v          catalog.Value
		text, want string
	}{
		{integer, "a", "a"},
		{padded, "a", "WEIGHT_STRING(a)"},
		{member, "a", "CAST(a AS UNSIGNED)"},
		{single, "a", "(a + 0E0)"},
		{trimmed, "a", "CAST(a AS TEXT)"},
		{long, "a", "CONCAT(WEIGHT_STRING(LEFT(a, 8)), LENGTH(a) > 8)"},
		{stored, "a", "+a"},
		{stored, "lower(a)", "+(lower(a))"},
		{stored, "a || b", "+(a || b)"},
	} {
		if got := of.v.Selected(of.text); got != of.want {
			t.Errorf("%s of %+v is selected as %s, not %s", of.text, of.v, got, of.want)
		}
	}
}

func TestWhatAValueIsFollowsFromItsKindAndForm(t *testing.T) {
	type are = []catalog.Value
	all := are{integer, decimal, float, stored, clock, duration, single, member, padded, long, trimmed, texts, octets, unknown}
	for _, is := range []struct {
		name string
		of   func(catalog.Value) bool
		only are
	}{
		{"a number", catalog.Value.IsNumber, are{integer, decimal, float}},
		{"numeric", catalog.Value.IsNumeric, are{integer, decimal, float, single}},
		{"exact", catalog.Value.IsExact, are{integer, decimal, stored}},
		{"a time", catalog.Value.IsTime, are{clock, duration}},
		{"a text", catalog.Value.IsText, are{padded, long, trimmed, texts}},
		{"padded", catalog.Value.HasPadding, are{padded}},
		{"of several hidden columns", catalog.Value.Splits, are{padded, long}},
	} {
		for _, v := range all {
			if want := slices.Contains(is.only, v); is.of(v) != want {
				t.Errorf("%+v is %s: %v", v, is.name, !want)
			}
		}
	}
}

func TestAnUntruncatedTextIsComparedAsAWhole(t *testing.T) {
	if v := padded.Untruncated(); v.Type.Prefix != 0 || !v.HasPadding() {
		t.Errorf("%+v", v)
	}
}

func TestTextsOfTwoCollationsCompareAlikeByWeightsButNotInAUnion(t *testing.T) {
	other := padded
	other.Collation = "utf8mb4_general_ci"
	mixed := padded.With(other)
	switch {
	case !padded.Same(other):
		t.Error("their weights are the same")
	case padded.United(other), mixed.United(mixed):
		t.Error("a UNION takes one collation for both")
	case !padded.United(padded), padded.With(padded) != padded:
		t.Error("one collation remains")
	}
	for _, v := range []catalog.Value{integer, long, {Type: padded.Type}, {Type: padded.Type, As: padded.As, Unordered: "it is unknown"}} {
		if padded.Same(v) {
			t.Errorf("%+v compares like %+v", v, padded)
		}
	}
}

// The property that labels of CASE need: texts with different results differ in every collation.
func TestTextsThatSomeCollationTreatsAsEqualFoldAlike(t *testing.T) {
	for _, equal := range [][]string{{"a", "A", "a "}, {"Jim", "yim", "IM"}, {"v", "W", "u"}, {"ccs", "cscs"}, {"new order", "New Order"}, {"", " "}} {
		want, _ := catalog.Fold(equal[0])
		for _, text := range equal {
			if got, known := catalog.Fold(text); got != want || !known {
				t.Errorf("%q folds to %q, and %q to %q", equal[0], want, text, got)
			}
		}
	}
	seen := map[string]string{}
	for _, text := range []string{"open", "paid", "", "1", "2", "a1", "1a", "a b", "a-b", "新", "一", "龥"} {
		got, known := catalog.Fold(text)
		if other, twice := seen[got]; twice || !known {
			t.Errorf("%q folds like %q", text, other)
		}
		seen[got] = text
	}
	for _, text := range []string{"é", "ß", "\t", "ア", "😀"} {
		if _, known := catalog.Fold(text); known {
			t.Errorf("%q may equal any text", text)
		}
	}
}

func TestAKeyIsOneOfWhoseColumnsAll(t *testing.T) {
	keys := [][]string{{"id"}, {"shop", "number"}}
	for _, of := range []struct {
		columns string
		want    bool
	}{{"id", true}, {"shop number", true}, {"shop", false}, {"name", false}, {"", false}} {
		got := catalog.HasKey(keys, func(column string) bool { return slices.Contains(strings.Fields(of.columns), column) })
		if got != of.want {
			t.Errorf("%q has a key: %v", of.columns, got)
		}
	}
	if catalog.HasKey(nil, func(string) bool { return true }) {
		t.Error("a column of no key is one")
	}
}

func TestAColumnHoldsTextsByItsTypeOrItsCollation(t *testing.T) {
	for _, of := range []struct {
		c    catalog.Column
		want bool
	}{
		{catalog.Column{Holds: catalog.Bytes}, true},
		{catalog.Column{Holds: catalog.Folded}, true},
		{catalog.Column{Value: padded}, true},
		{catalog.Column{Holds: catalog.Integers, Value: integer}, false},
		{catalog.Column{Holds: catalog.UUIDs}, false},
		{catalog.Column{}, false},
	} {
		if got := of.c.HoldsTexts(); got != of.want {
			t.Errorf("%+v holds texts: %v", of.c, got)
		}
	}
}

func TestAColumnFillsARowIfItsDefaultIsNeitherNullNorComputed(t *testing.T) {
	for _, of := range []struct {
		c    catalog.Column
		want bool
	}{
		{catalog.Column{Type: "int"}, true},
		{catalog.Column{Type: "int", Empty: true}, false},
		{catalog.Column{Type: "int", Computed: true}, false},
		{catalog.Column{}, false}, // nothing is known of it
	} {
		if got := of.c.Fills(); got != of.want {
			t.Errorf("%+v fills a row: %v", of.c, got)
		}
	}
}
