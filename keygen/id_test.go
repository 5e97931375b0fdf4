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
)

func TestAnIDIsAStringInJSONAndReadsBoth(t *testing.T) {
	type order struct{ ID keygen.ID }
	out, err := json.Marshal(order{math.MaxInt64})
	if err != nil || string(out) != `{"ID":"9223372036854775807"}` {
		t.Fatalf("%s, %v", out, err)
	}
	for in, want := range map[string]keygen.ID{
		`"9223372036854775807"`: math.MaxInt64, `9223372036854775807`: math.MaxInt64, `0`: 0, `"0"`: 0, `null`: 5,
	} {
		got := keygen.ID(5)
		if err := json.Unmarshal([]byte(in), &got); err != nil || got != want {
			t.Errorf("%s: %d, %v", in, got, err)
		}
	}
	for _, in := range []string{
		`9223372036854775808`, `1.0`, `1e3`, `""`, `"x"`, `"+1"`, `" 1"`, `true`, `{}`, `-5`, `"-5"`, `"007"`, `"00"`, `-0`, `"-0"`, `"1_0"`, `"\u0031"`,
	} {
		id := keygen.ID(5)
		if err := json.Unmarshal([]byte(in), &id); !errors.Is(err, keygen.ErrSyntax) || id != 5 {
			t.Errorf("%s: %d, %v", in, id, err)
		}
	}
}

func TestParseIDReadsDecimalDigitsAlone(t *testing.T) {
	for text, want := range map[string]keygen.ID{"0": 0, "42": 42, "9223372036854775807": math.MaxInt64} {
		if id, err := keygen.ParseID(text); err != nil || id != want || id.String() != text {
			t.Errorf("%s: %d, %v", text, id, err)
		}
	}
	for _, text := range []string{"", "-1", "+1", " 1", "1 ", "1.0", "0x1", "9223372036854775808", "007", "00", "-0"} {
		if id, err := keygen.ParseID(text); !errors.Is(err, keygen.ErrSyntax) {
			t.Errorf("%q: %d, %v", text, id, err)
		}
		id := keygen.ID(5)
		if err := id.UnmarshalText([]byte(text)); !errors.Is(err, keygen.ErrSyntax) || id != 5 {
			t.Errorf("text %q: %d, %v", text, id, err)
		}
	}
}

func TestAnIDIsATextInKeysOfJSON(t *testing.T) {
	out, err := json.Marshal(map[keygen.ID]int{42: 1})
	if err != nil || string(out) != `{"42":1}` {
		t.Fatalf("%s, %v", out, err)
	}
	var in map[keygen.ID]int
	if err := json.Unmarshal(out, &in); err != nil || in[42] != 1 {
		t.Errorf("%v, %v", in, err)
	}
	for _, key := range []string{"-5", "007", "+1", ""} {
		in = nil
		if err := json.Unmarshal([]byte(`{"`+key+`":1}`), &in); err == nil {
			t.Errorf("%q was read as %v", key, in)
		}
	}
}

// Rows that were there before have the ids that they have.
func TestAnIDScansWhatIntegerColumnsHold(t *testing.T) {
	for want, sources := range map[keygen.ID][]any{
		-5:            {int64(-5), []byte("-5"), "-5"},
		7:             {[]byte("0000000007"), "007"}, // ZEROFILL, or a CHAR column
		math.MinInt64: {int64(math.MinInt64), "-9223372036854775808"},
	} {
		for _, src := range sources {
			var id keygen.ID
			if err := id.Scan(src); err != nil || id != want {
				t.Errorf("%v: %d, %v", src, id, err)
			}
		}
	}
	for _, src := range []any{"+5", "", "-", " 5", []byte(" 5")} {
		var id keygen.ID
		if err := id.Scan(src); !errors.Is(err, keygen.ErrSyntax) {
			t.Errorf("%q: %d, %v", src, id, err)
		}
	}
}

func TestAnIDScansWhatDriversGive(t *testing.T) {
	for _, src := range []any{int64(42), uint64(42), []byte("42"), "42"} {
		var id keygen.ID
		if err := id.Scan(src); err != nil || id != 42 {
			t.Errorf("%T: %d, %v", src, id, err)
		}
	}
	for _, src := range []any{nil, 1.5, "x", uint64(math.MaxInt64 + 1), []byte("9223372036854775808")} {
		var id keygen.ID
		if err := id.Scan(src); !errors.Is(err, keygen.ErrSyntax) {
			t.Errorf("%v: %d, %v", src, id, err)
		}
	}
	if v, err := keygen.ID(7).Value(); v != int64(7) || err != nil {
		t.Errorf("%v %v", v, err)
	}
}

// The vectors are fixed, for ids that stand in URLs.
func TestTextFormsKeepTheirMeaning(t *testing.T) {
	for _, v := range []struct {
		e        *keygen.Encoding
		one, max string
	}{
		{keygen.Decimal, "3200169789968523265", "9223372036854775807"},
		{keygen.Base2, "10110001101001010010010111100000000000000000101010000000000001", strings.Repeat("1", 63)},
		{keygen.Base16, "2c6949780002a001", "7fffffffffffffff"},
		{keygen.Base36, "oba5ii0zthc1", "1y2p0ij32e8e7"},
		{keygen.Base58, "8Rr1erKuNgQ", "NQm6nKp8qFC"},
		{keygen.Base62, "3oOoJkTjdb7", "AzL8n0Y58m7"},
		{keygen.Base64, "2meINW00f01", "7~~~~~~~~~~"},
		{keygen.Crockford, "2RTA9F0005801", "7ZZZZZZZZZZZZ"},
	} {
		for text, id := range map[string]int64{v.one: 3200169789968523265, v.max: math.MaxInt64} {
			if got, err := v.e.Decode(text); err != nil || got != id {
				t.Errorf("%s: %d, %v", text, got, err)
			}
			if got := v.e.Encode(id); got != text {
				t.Errorf("%d: %s, want %s", id, got, text)
			}
		}
		if n, err := v.e.Decode(strings.Repeat(v.one[:1], 80)); !errors.Is(err, keygen.ErrSyntax) {
			t.Errorf("an overflow was read as %d, %v", n, err)
		}
		for _, text := range []string{"", "-1", "+1", "1 ", "ä", "1.0"} {
			if n, err := v.e.Decode(text); !errors.Is(err, keygen.ErrSyntax) {
				t.Errorf("%q was read as %d, %v", text, n, err)
			}
		}
		if _, err := v.e.Decode(v.e.Encode(math.MinInt64)); !errors.Is(err, keygen.ErrSyntax) {
			t.Error("the text of a negative number was read")
		}
	}
}

func TestTextsOfOneLengthSortLikeTheirNumbers(t *testing.T) {
	for _, e := range []*keygen.Encoding{keygen.Decimal, keygen.Base2, keygen.Base16, keygen.Base36, keygen.Base58, keygen.Base62, keygen.Base64, keygen.Crockford} {
		var texts []string
		for id := int64(1 << 62); id < 1<<62+5000; id += 7 {
			texts = append(texts, e.Encode(id))
		}
		if !slices.IsSorted(texts) {
			t.Errorf("%s does not sort", texts[0])
		}
	}
}

func FuzzDecodeReadsOnlyWhatEncodeWrites(f *testing.F) {
	f.Add("3oIx6Mf0QWz")
	f.Add("00000000000000000000000000000000000000000000000000000000000000000001")
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range []*keygen.Encoding{keygen.Decimal, keygen.Base36, keygen.Base58, keygen.Base62, keygen.Base64, keygen.Crockford} {
			id, err := e.Decode(text)
			if err != nil {
				continue
			}
			zero := e.Encode(0)
			if got, want := e.Encode(id), strings.TrimLeft(text, zero); got != want && !(id == 0 && want == "") {
				t.Errorf("%q is %d, whose text is %q", text, id, got)
			}
		}
	})
}
