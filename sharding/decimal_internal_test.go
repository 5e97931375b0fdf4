// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// Numbers of every length, and those next to where a length begins.
func TestHashingANumberIsHashingItsText(t *testing.T) {
	check := func(v uint64) {
		t.Helper()
		if got, want := xxhash64Decimal(v), xxhash64(strconv.AppendUint(nil, v, 10)); got != want {
			t.Fatalf("%d: %#x, want %#x", v, got, want)
		}
	}
	for v := uint64(1); ; v *= 10 {
		for d := range uint64(200) {
			check(v - 1 + d)
			check(v*(1+d%9) + d)
			check(v + rand.Uint64N(v)*9)
		}
		if v > math.MaxUint64/10 {
			break
		}
	}
	for range 200_000 {
		check(rand.Uint64() >> rand.IntN(64))
	}
	check(math.MaxUint64)
}

func TestDigitsAreThoseOfEveryNumberOfFour(t *testing.T) {
	for v := range uint64(10_000) { // both halves are computed alike
		text := strconv.FormatUint(100_000_000+v*10_000+9_999-v, 10)[1:]
		got := binary.LittleEndian.AppendUint64(nil, digits(v*10_000+9_999-v))
		for i, c := range got {
			if c+'0' != text[i] {
				t.Fatalf("digit %d of %s is %d", i, text, c)
			}
		}
	}
}
