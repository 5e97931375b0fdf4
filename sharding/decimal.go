// SPDX-License-Identifier: Apache-2.0

package sharding

import "math/bits"

// xxhash64Decimal returns xxhash64 of the decimal text of v. It never writes the text to memory: it
// produces eight digits at a time in a register, the unit in which the hash reads them. A text in
// memory would be read again before its writes have completed.
func xxhash64Decimal(v uint64) uint64 {
	const block = 1e8
	low, rest := v%block, v/block
	if rest == 0 {
		last := digits(low)
		n := 8 - leadingZeros(last)
		return avalanche(ending(prime5+uint64(n), last>>(64-8*n), n))
	}
	middle, high := rest%block, rest/block
	if high == 0 {
		first, last := digits(middle), digits(low)
		n := 8 - leadingZeros(first)
		skip := 64 - 8*n
		h := piece(prime5+uint64(8+n), ascii(first>>skip|last<<(64-skip)))
		return avalanche(ending(h, last>>skip, n))
	}
	first, second, last := digits(high), digits(middle), digits(low)
	n := 8 - leadingZeros(first)
	skip := 64 - 8*n
	h := piece(prime5+uint64(16+n), ascii(first>>skip|second<<(64-skip)))
	h = piece(h, ascii(second>>skip|last<<(64-skip)))
	return avalanche(ending(h, last>>skip, n))
}

// digits returns the eight digits of v, below 1e8, one in each byte, the first in
// the lowest. Each step halves all parts of the number at once; the products are
// exact divisions for numbers of that size.
func digits(v uint64) uint64 {
	fours := v/1e4 | v%1e4<<32
	hundreds := fours * 10486 >> 20 & 0x0000007F_0000007F
	twos := hundreds | (fours-hundreds*100)<<16
	tens := twos * 103 >> 10 & 0x000F_000F_000F_000F
	return tens | (twos-tens*10)<<8
}

// leadingZeros returns the number of zeros before the number; zero itself has one digit.
func leadingZeros(digits uint64) int { return min(bits.TrailingZeros64(digits)/8, 7) }

// ascii converts eight digits to text.
func ascii(digits uint64) uint64 { return digits | 0x3030303030303030 }

// ending hashes the last n digits, from 1 to 8.
func ending(h, digits uint64, n int) uint64 {
	text := ascii(digits)
	if n == 8 {
		return piece(h, text)
	}
	if n >= 4 {
		h = bits.RotateLeft64(h^text&0xFFFFFFFF*prime1, 23)*prime2 + prime3
		text, n = text>>32, n-4
	}
	for ; n > 0; text, n = text>>8, n-1 {
		h = bits.RotateLeft64(h^text&0xFF*prime5, 11) * prime1
	}
	return h
}
