// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"encoding/hex"
	"errors"
	"math"
	"testing"

	"github.com/shardid/shardid/keygen"
)

// The texts are those of bwmarrin/snowflake v0.3.0.
var bwmarrinTexts = []struct {
	id                                             int64
	base2, base32, base36, base58, base64, bytes16 string
}{
	{0, "0", "y", "0", "1", "MA==", "0000000000000000"},
	{1, "1", "b", "1", "2", "MQ==", "0000000000000001"},
	{31, "11111", "9", "v", "x", "MzE=", "000000000000001f"},
	{32, "100000", "by", "w", "y", "MzI=", "0000000000000020"},
	{57, "111001", "b3", "1l", "Z", "NTc=", "0000000000000039"},
	{58, "111010", "b4", "1m", "21", "NTg=", "000000000000003a"},
	{
		1541815603606036480, "1010101100101101000010001111101100010000101111010000000000000", "bk3pbd7tbxeyy",
		"bppc0m3ju134", "4zzv4rZaYpj", "MTU0MTgxNTYwMzYwNjAzNjQ4MA==", "1565a11f6217a000",
	},
	{
		3200169789968523265, "10110001101001010010010111100000000000000000101010000000000001", "na4kjxyyyfeyb",
		"oba5ii0zthc1", "8qR1DRjUnFp", "MzIwMDE2OTc4OTk2ODUyMzI2NQ==", "2c6949780002a001",
	},
	{
		math.MaxInt64, "111111111111111111111111111111111111111111111111111111111111111", "8999999999999",
		"1y2p0ij32e8e7", "npL6MjP8Qfc", "OTIyMzM3MjAzNjg1NDc3NTgwNw==", "7fffffffffffffff",
	},
}

func TestTextsOfBwmarrinAreReadAndWritten(t *testing.T) {
	for _, v := range bwmarrinTexts {
		for text, e := range map[string]*keygen.Encoding{
			v.base2: keygen.Base2, v.base36: keygen.Base36, v.base32: keygen.BwmarrinBase32, v.base58: keygen.BwmarrinBase58,
		} {
			if got, err := e.Decode(text); err != nil || got != v.id {
				t.Errorf("%s: %d, %v; want %d", text, got, err, v.id)
			}
			if got := e.Encode(v.id); got != text {
				t.Errorf("%d: %s, want %s", v.id, got, text)
			}
		}
		if got, err := keygen.DecodeBwmarrinBase64(v.base64); err != nil || got != v.id {
			t.Errorf("%s: %d, %v; want %d", v.base64, got, err, v.id)
		}
		if got := keygen.EncodeBwmarrinBase64(v.id); got != v.base64 {
			t.Errorf("%d: %s, want %s", v.id, got, v.base64)
		}
		b := keygen.ID(v.id).Bytes()
		if got := hex.EncodeToString(b[:]); got != v.bytes16 {
			t.Errorf("%d: bytes %s, want %s", v.id, got, v.bytes16)
		}
		if got, err := keygen.IDFromBytes(b); err != nil || got != keygen.ID(v.id) {
			t.Errorf("%x: %d, %v; want %d", b, got, err, v.id)
		}
	}
}

// bwmarrin v0.3.0 reads all of these but the "0" as some id, and says nothing.
func TestTextsThatBwmarrinMisreadsAreRefused(t *testing.T) {
	for text, e := range map[string]*keygen.Encoding{
		"89999999999999":        keygen.BwmarrinBase32, // 68 bits
		"zzzzzzzzzzzz":          keygen.BwmarrinBase58,
		"n4kjxyyyfeybn4kjxyyyf": keygen.BwmarrinBase32,
		"l":                     keygen.BwmarrinBase32,
		"0":                     keygen.BwmarrinBase58,
		"":                      keygen.BwmarrinBase58,
	} {
		if id, err := e.Decode(text); !errors.Is(err, keygen.ErrSyntax) || id != 0 {
			t.Errorf("%q was read as %d, %v", text, id, err)
		}
	}
	for _, text := range []string{"MQ==\n", "MR==", "LTE=", "MDE="} {
		if id, err := keygen.DecodeBwmarrinBase64(text); !errors.Is(err, keygen.ErrSyntax) || id != 0 {
			t.Errorf("%q was read as %d, %v", text, id, err)
		}
	}
}

func TestWhatIsNoTextOfBwmarrinIsRefused(t *testing.T) {
	for _, text := range []string{"", "=", "MQ", "OTIyMzM3MjAzNjg1NDc3NTgwOA=="} {
		if id, err := keygen.DecodeBwmarrinBase64(text); !errors.Is(err, keygen.ErrSyntax) || id != 0 {
			t.Errorf("%q was read as %d, %v", text, id, err)
		}
	}
	if id, err := keygen.IDFromBytes([8]byte{0x80}); !errors.Is(err, keygen.ErrSyntax) || id != 0 {
		t.Errorf("a set sign bit was read as %d, %v", id, err)
	}
}

func FuzzDecodeBwmarrinReadsOnlyWhatItWrites(f *testing.F) {
	for _, v := range bwmarrinTexts {
		f.Add(v.base32)
		f.Add(v.base58)
		f.Add(v.base64)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := keygen.DecodeBwmarrinBase64(text); err == nil && keygen.EncodeBwmarrinBase64(id) != text {
			t.Errorf("%q was read as %d", text, id)
		}
		for _, e := range []*keygen.Encoding{keygen.BwmarrinBase32, keygen.BwmarrinBase58} {
			id, err := e.Decode(text)
			if err != nil {
				continue
			}
			if back, err := e.Decode(e.Encode(id)); err != nil || back != id || len(e.Encode(id)) > len(text) {
				t.Errorf("%q was read as %d, and that came back as %d, %v", text, id, back, err)
			}
		}
	})
}
