// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"encoding/binary"
	"math/bits"
)

// The primes of the XXH64 specification.
const (
	prime1 uint64 = 0x9E3779B185EBCA87
	prime2 uint64 = 0xC2B2AE3D27D4EB4F
	prime3 uint64 = 0x165667B19E3779F9
	prime4 uint64 = 0x85EBCA77C2B2AE63
	prime5 uint64 = 0x27D4EB2F165667C5
)

// xxhash64 is XXH64 with seed 0.
func xxhash64(text []byte) uint64 {
	h, rest := prime5, text
	if len(text) >= 32 {
		h, rest = stripes(text)
	}
	h += uint64(len(text))
	for ; len(rest) >= 8; rest = rest[8:] {
		h = piece(h, binary.LittleEndian.Uint64(rest))
	}
	if len(rest) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(rest))*prime1, 23)*prime2 + prime3
		rest = rest[4:]
	}
	for _, b := range rest {
		h = bits.RotateLeft64(h^uint64(b)*prime5, 11) * prime1
	}
	return avalanche(h)
}

// stripes hashes the text in stripes of 32 bytes and returns the rest.
func stripes(text []byte) (h uint64, rest []byte) {
	seed := uint64(0) // a variable, as constants must not overflow
	a, b, c, d := seed+prime1+prime2, seed+prime2, seed, seed-prime1
	for ; len(text) >= 32; text = text[32:] {
		a, b = lane(a, binary.LittleEndian.Uint64(text)), lane(b, binary.LittleEndian.Uint64(text[8:]))
		c, d = lane(c, binary.LittleEndian.Uint64(text[16:])), lane(d, binary.LittleEndian.Uint64(text[24:]))
	}
	h = bits.RotateLeft64(a, 1) + bits.RotateLeft64(b, 7) + bits.RotateLeft64(c, 12) + bits.RotateLeft64(d, 18)
	for _, v := range [4]uint64{a, b, c, d} {
		h = (h^lane(0, v))*prime1 + prime4
	}
	return h, text
}

// piece hashes eight bytes that are not part of a stripe.
func piece(h, text uint64) uint64 {
	return bits.RotateLeft64(h^lane(0, text), 27)*prime1 + prime4
}

// lane mixes eight bytes into an accumulator.
func lane(acc, input uint64) uint64 {
	return bits.RotateLeft64(acc+input*prime2, 31) * prime1
}

func avalanche(h uint64) uint64 {
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}
