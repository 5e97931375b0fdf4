// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
)

func format(t testing.TB, cfg keygen.FormatConfig) *keygen.Format {
	t.Helper()
	f, err := keygen.NewFormat(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The vectors are fixed, for texts that stand in URLs.
func TestAnIDHasOneText(t *testing.T) {
	for _, v := range []struct {
		cfg  keygen.FormatConfig
		id   int64
		text string
	}{
		{keygen.FormatConfig{}, 42, "42"},
		{keygen.FormatConfig{Width: 19}, 42, "0000000000000000042"},
		{keygen.FormatConfig{Width: 19}, math.MaxInt64, "9223372036854775807"},
		{keygen.FormatConfig{Prefix: "ord_", Encoding: keygen.Base62}, 3200169789968523265, "ord_3oOoJkTjdb7"},
		{keygen.FormatConfig{Prefix: "ord_", Encoding: keygen.Base62, Width: 11}, 62, "ord_00000000010"},
		{keygen.FormatConfig{Prefix: "ord_", Encoding: keygen.Base58, Scrambler: scrambler(t, 63)}, 3200169789968523265, "ord_84H6t2bExhy"},
		{keygen.FormatConfig{Prefix: "A-", Suffix: "-de", Encoding: keygen.Crockford, Width: 8}, 1 << 30, "A-01000000-de"},
		{keygen.FormatConfig{Prefix: "1", Suffix: "1"}, 11, "1111"},
		{keygen.FormatConfig{Encoding: keygen.Base58, Width: 3}, 1, "112"},
	} {
		f := format(t, v.cfg)
		if got, err := f.Text(v.id); err != nil || got != v.text {
			t.Errorf("%d: %q, %v; want %q", v.id, got, err, v.text)
		}
		if got, err := f.Parse(v.text); err != nil || got != v.id {
			t.Errorf("%q: %d, %v; want %d", v.text, got, err, v.id)
		}
	}
}

func TestTextsOfAnotherFormatAreRefused(t *testing.T) {
	for _, v := range []struct {
		cfg   keygen.FormatConfig
		texts []string
	}{
		{keygen.FormatConfig{Prefix: "ord_"}, []string{"usr_12", "12", "ORD_12", "ord_", "ord_ord_12", " ord_12", "ord_-12", "ord_0", "ord_012", "ord_9223372036854775808", ""}},
		{keygen.FormatConfig{Prefix: "aba", Suffix: "ab"}, []string{"abab", "aba", "abaab", "aba1", "1ab"}},
		{keygen.FormatConfig{Encoding: keygen.Base36, Width: 4}, []string{"1", "001", "00001", "0000", "00A1", "000 "}},
		{keygen.FormatConfig{Scrambler: scrambler(t, 10)}, []string{"0", "1024", "-1", "01"}},
	} {
		f := format(t, v.cfg)
		for _, text := range v.texts {
			if id, err := f.Parse(text); !errors.Is(err, keygen.ErrSyntax) || id != 0 {
				t.Errorf("%+v: %q was read as %d, %v", v.cfg, text, id, err)
			}
		}
	}
	_, err := format(t, keygen.FormatConfig{Prefix: "ord_"}).Parse("usr_12")
	if want := `"usr_12" does not begin with "ord_"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not say that %s", err, want)
	}
}

func TestIDsThatHaveNoTextAreRefused(t *testing.T) {
	for _, v := range []struct {
		cfg keygen.FormatConfig
		ids []int64
	}{
		{keygen.FormatConfig{}, []int64{0, -1, math.MinInt64}},
		{keygen.FormatConfig{Width: 3}, []int64{1000, math.MaxInt64}},
		{keygen.FormatConfig{Scrambler: scrambler(t, 53)}, []int64{0, 1 << 53}},
	} {
		f := format(t, v.cfg)
		for _, id := range v.ids {
			if text, err := f.Text(id); !errors.Is(err, keygen.ErrRange) || text != "" {
				t.Errorf("%+v: %d has the text %q, %v", v.cfg, id, text, err)
			}
		}
	}
}

func TestAWidthThatCannotBeIsRefusedAtTheStart(t *testing.T) {
	for _, cfg := range []keygen.FormatConfig{
		{Width: -1},
		{Width: 20},
		{Width: 12, Encoding: keygen.Base62},
		{Width: 10, Encoding: keygen.Base62, Scrambler: scrambler(t, 63)},
	} {
		if _, err := keygen.NewFormat(cfg); err == nil || !strings.Contains(err.Error(), "FormatConfig.Width") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	format(t, keygen.FormatConfig{Width: 9, Encoding: keygen.Base62, Scrambler: scrambler(t, 53)})
}

func TestTextsOfFixedWidthSortLikeTheirIDs(t *testing.T) {
	for _, e := range []*keygen.Encoding{keygen.Decimal, keygen.Base2, keygen.Base16, keygen.Base36, keygen.Base58, keygen.Base62, keygen.Base64, keygen.Crockford} {
		g := format(t, keygen.FormatConfig{Prefix: "x", Encoding: e, Width: e.Width(63)}).Generator(keygen.Counting(1, 61_728_394_506_171_717))
		texts := make([]string, 149)
		if err := keygen.Fill(t.Context(), g, texts); err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(texts) {
			t.Errorf("%s does not sort", texts[0])
		}
	}
}

func TestWidthIsThatOfTheLargestID(t *testing.T) {
	for e, want := range map[*keygen.Encoding][2]int{
		keygen.Decimal: {19, 16}, keygen.Base2: {63, 53}, keygen.Base16: {16, 14}, keygen.Crockford: {13, 11},
		keygen.Base36: {13, 11}, keygen.Base58: {11, 10}, keygen.Base62: {11, 9}, keygen.Base64: {11, 9},
	} {
		if got := [2]int{e.Width(63), e.Width(53)}; got != want {
			t.Errorf("%s…: %v, want %v", e.Encode(10), got, want)
		}
	}
	if n := [3]int{keygen.Base2.Width(-1), keygen.Base2.Width(0), keygen.Base2.Width(100)}; n != [3]int{1, 1, 63} {
		t.Errorf("outside 1 to 63 bits: %v", n)
	}
}

func TestAFormatGeneratesUniqueTexts(t *testing.T) {
	f := format(t, keygen.FormatConfig{Prefix: "ord_", Encoding: keygen.Base58, Scrambler: scrambler(t, 63)})
	ids := keygen.Counting(1, 1)
	keygentest.Keys(t, func(*testing.T) keygen.Generator[string] { return f.Generator(ids) })
}

func TestATextKeyIsAStringInJSON(t *testing.T) {
	g := format(t, keygen.FormatConfig{Prefix: "ord_", Encoding: keygen.Base62}).Generator(keygen.Counting(math.MaxInt64, 1))
	type order struct{ ID string }
	id, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(order{id})
	if err != nil || string(out) != `{"ID":"ord_AzL8n0Y58m7"}` {
		t.Errorf("%s, %v", out, err)
	}
}

func FuzzAFormatReadsOnlyWhatItWrites(f *testing.F) {
	for _, text := range []string{"", "ord_1", "ord_3oOoJkTjdb7", "ord_0000000000a.x", "ord_0000000042.x", "00a", "abc"} {
		f.Add(text)
	}
	formats := []*keygen.Format{
		format(f, keygen.FormatConfig{Prefix: "ord_", Encoding: keygen.Base62}),
		format(f, keygen.FormatConfig{Prefix: "ord_", Suffix: ".x", Encoding: keygen.Base64, Width: 11}),
		format(f, keygen.FormatConfig{Encoding: keygen.Base36, Width: 3}),
		format(f, keygen.FormatConfig{Encoding: keygen.Base58, Scrambler: scrambler(f, 40)}),
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, format := range formats {
			id, err := format.Parse(text)
			if err != nil {
				if !errors.Is(err, keygen.ErrSyntax) || id != 0 {
					t.Errorf("%q: %d, %v", text, id, err)
				}
				continue
			}
			if back, err := format.Text(id); err != nil || back != text {
				t.Errorf("%q is %d, whose text is %q, %v", text, id, back, err)
			}
		}
	})
}
