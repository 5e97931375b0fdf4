// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"strings"
	"testing"
)

// Published test vectors of XXH64 with seed 0.
func TestXXHash64HasThePublishedVectors(t *testing.T) {
	for text, want := range map[string]uint64{
		"":          0xEF46DB3751D8E999,
		"a":         0xD24EC4F1A98C6E5B,
		"as":        0x1C330FB2D66BE179,
		"asd":       0x631C37CE72A97393,
		"asdf":      0x415872F599CEA71E,
		"abc":       0x44BC2CF5AD770999,
		"123456789": 0x8CB841DB40E6AE83,
		"Call me Ishmael. Some years ago--never mind how long precisely-": 0x02A2E85470D6FD96,
	} {
		if got := xxhash64([]byte(text)); got != want {
			t.Errorf("%q: %#x, want %#x", text, got, want)
		}
	}
}

// Each length uses another sequence of pieces of 32, 8, 4 and 1 bytes. If one sequence read too
// little, two texts would have the same hash.
func TestXXHash64SeesEveryByte(t *testing.T) {
	for n := range 80 {
		text := strings.Repeat("x", n)
		seen := map[uint64]int{xxhash64([]byte(text)): -1}
		for i := range n {
			changed := text[:i] + "y" + text[i+1:]
			if j, twice := seen[xxhash64([]byte(changed))]; twice {
				t.Fatalf("%d bytes: changes at %d and %d have one sum", n, i, j)
			}
			seen[xxhash64([]byte(changed))] = i
		}
	}
}
