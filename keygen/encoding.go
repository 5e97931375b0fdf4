// SPDX-License-Identifier: Apache-2.0

package keygen

import (
	"fmt"
	"math"
	"strings"
)

// Encoding writes ids with the digits of an alphabet; its base is the number of digits.
// Encodings are immutable and safe for concurrent use. The zero Encoding is [Decimal].
type Encoding struct {
	name   string
	digits string
	value  [256]int8 // digit → value; -1 for a byte that is not a digit
}

// These are the text forms of ids. The digits of each rise in byte order, so texts of one
// length sort like their numbers. Texts of Base64 are safe in URLs and file names; they are not
// the base64 of an id's bytes.
var (
	Decimal   = newEncoding("decimal", "0123456789")
	Base2     = newEncoding("base2", "01")
	Base16    = newEncoding("base16", "0123456789abcdef")
	Base36    = newEncoding("base36", "0123456789abcdefghijklmnopqrstuvwxyz")
	Base58    = newEncoding("base58", "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz") // Bitcoin's
	Base62    = newEncoding("base62", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
	Base64    = newEncoding("base64", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~")
	Crockford = newEncoding("crockford", "0123456789ABCDEFGHJKMNPQRSTVWXYZ") // base 32 without I, L, O and U
)

func newEncoding(name, digits string) *Encoding {
	e := &Encoding{name: name, digits: digits}
	for i := range e.value {
		e.value[i] = -1
	}
	for i, c := range []byte(digits) {
		e.value[c] = int8(i)
	}
	return e
}

// Encode returns the shortest text of id. The id must not be negative. For a negative number
// Encode returns "-" and its digits, which Decode refuses.
func (e *Encoding) Encode(id int64) string {
	if id < 0 {
		return "-" + e.encode(-uint64(id))
	}
	return e.encode(uint64(id))
}

func (e *Encoding) encode(n uint64) string {
	e = e.orDecimal()
	var buf [64]byte
	i, base := len(buf), uint64(len(e.digits))
	for {
		i--
		buf[i] = e.digits[n%base]
		n /= base
		if n == 0 {
			return string(buf[i:])
		}
	}
}

// Decode reads a text that Encode wrote. It allows leading zeros. For an empty text, a byte
// that is not a digit, or a number above the largest int64, the error wraps [ErrSyntax].
func (e *Encoding) Decode(text string) (int64, error) {
	e = e.orDecimal()
	base := int64(len(e.digits))
	var n int64
	for i := range len(text) {
		d := int64(e.value[text[i]])
		if d < 0 {
			return 0, fmt.Errorf("%w: %q is not a %s digit, at byte %d of %s", ErrSyntax, text[i], e.name, i, clip(text))
		}
		if n > (math.MaxInt64-d)/base {
			return 0, fmt.Errorf("%w: %s is above the largest id, %d", ErrSyntax, clip(text), int64(math.MaxInt64))
		}
		n = n*base + d
	}
	if text == "" {
		return 0, fmt.Errorf("%w: empty text", ErrSyntax)
	}
	return n, nil
}

// Width returns the number of digits of the largest id that has this many bits, from 1 to 63.
// It treats a lower or higher number of bits as the nearest of these.
func (e *Encoding) Width(bits int) int {
	return len(e.encode(mask(min(max(bits, 1), maxBits))))
}

// zeros returns n zeros of the encoding, none when n is negative.
func (e *Encoding) zeros(n int) string {
	return strings.Repeat(e.orDecimal().digits[:1], max(n, 0))
}

// orDecimal returns e, or Decimal when e has no digits.
func (e *Encoding) orDecimal() *Encoding {
	if e == nil || e.digits == "" {
		return Decimal
	}
	return e
}

// clip quotes text for a message and shortens a long one.
func clip(text string) string {
	const most = 80
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}
