// SPDX-License-Identifier: Apache-2.0

package keygen

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
)

// maxBits is the width of an id: an int64 without its sign.
const maxBits = 63

// scrambleRounds is the number of rounds of the Feistel network, the same as in NIST's
// format-preserving FF1. Changing it would change every public id ever issued.
const scrambleRounds = 10

// Scrambler turns ids into public ids and back, under a secret key (obfuscation). It is a
// bijection of 1 to 2^bits−1 onto itself: no two ids have the same public form, and none
// becomes 0. It is safe for concurrent use, and must not be copied. The zero Scrambler has no
// key and refuses every id.
//
// It hides volume: consecutive order ids tell a competitor how many orders there were, whereas
// two public ids tell nothing about the number of ids between them. It protects from nothing
// else. A public id is not a permission: below 40 bits or so an attacker can try all of them,
// and he can send an id again that he has seen, so check who may read a row. The Scrambler does
// not hide that two requests are about the same row, and it encrypts nothing but ids.
//
// Store the plain id in the database, where nearby ids belong on nearby pages, and scramble it
// where ids leave the service. Another key or another width is another bijection and changes
// all public ids. To change the key, give texts of the new key a new prefix (see
// [FormatConfig]), and keep reading the old ones.
//
// The construction is a Feistel network of 10 rounds over the upper and lower half of the id.
// The round function is AES-128 of the other half, the number of the round and the width. The
// construction is fixed: later versions unscramble every public id. To leave out 0 the
// Scrambler walks the cycle: if the result is 0, it scrambles once more.
type Scrambler struct {
	block cipher.Block
	bits  int
	lower int // bits of the lower half, the larger one when bits is odd
	// buffers holds *[aes.BlockSize]byte: the argument of a cipher.Block escapes to the heap,
	// and the pool avoids an allocation per call.
	buffers sync.Pool
}

// NewScrambler returns a scrambler of ids of 1 to 63 bits: 63 for any id; 53 for ids of
// [JSSafe], so that the public ids are exact in JavaScript, too. The key is 16 random bytes.
// Keep it secret, use it for nothing else, and use the same key in every process; `openssl rand
// -hex 16` makes one. NewScrambler refuses a key of zeros, because that is most likely a
// forgotten one.
func NewScrambler(key [16]byte, bits int) (*Scrambler, error) {
	if bits < 1 || bits > maxBits {
		return nil, fmt.Errorf("keygen: the scrambler is to have %d bits; ids have 1 to %d", bits, maxBits)
	}
	if key == [16]byte{} {
		return nil, errors.New("keygen: the key of the scrambler is all zeros; set it to 16 random bytes, from `openssl rand -hex 16` say")
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, fmt.Errorf("keygen: scrambler: %w", err)
	}
	return &Scrambler{
		block: block, bits: bits, lower: bits - bits/2,
		buffers: sync.Pool{New: func() any { return new([aes.BlockSize]byte) }},
	}, nil
}

// Scramble returns the public form of id. For an id below 1, or one with more bits than the
// scrambler, the error wraps [ErrRange].
func (s *Scrambler) Scramble(id int64) (int64, error) {
	return s.walk(id, (*Scrambler).forward)
}

// Unscramble returns the id of a public form. For a number below 1, or one with more bits than
// the scrambler, the error wraps [ErrRange]. Every other number is the public form of some id,
// which need not exist.
func (s *Scrambler) Unscramble(public int64) (int64, error) {
	return s.walk(public, (*Scrambler).backward)
}

// walk applies step until the result is not 0, because 0 is neither an id nor a public form.
func (s *Scrambler) walk(from int64, step func(*Scrambler, *[aes.BlockSize]byte, uint64) uint64) (int64, error) {
	if err := s.check(from); err != nil {
		return 0, err
	}
	buf := s.buffers.Get().(*[aes.BlockSize]byte)
	n := step(s, buf, uint64(from))
	if n == 0 {
		n = step(s, buf, n)
	}
	s.buffers.Put(buf)
	return int64(n), nil
}

func (s *Scrambler) check(id int64) error {
	if s.block == nil {
		return fmt.Errorf("%w: the scrambler has no key; make it with NewScrambler", ErrRange)
	}
	if id < 1 || id>>s.bits != 0 {
		return fmt.Errorf("%w: %d is not between 1 and %d, the highest id of %d bits", ErrRange, id, uint64(1)<<s.bits-1, s.bits)
	}
	return nil
}

func (s *Scrambler) forward(buf *[aes.BlockSize]byte, n uint64) uint64 {
	upper, lower := n>>s.lower, n&mask(s.lower)
	for round := byte(0); round < scrambleRounds; round += 2 {
		upper ^= s.mix(buf, round, lower) & mask(s.bits-s.lower)
		lower ^= s.mix(buf, round+1, upper) & mask(s.lower)
	}
	return upper<<s.lower | lower
}

func (s *Scrambler) backward(buf *[aes.BlockSize]byte, n uint64) uint64 {
	upper, lower := n>>s.lower, n&mask(s.lower)
	for round := byte(scrambleRounds); round > 0; round -= 2 {
		lower ^= s.mix(buf, round-1, upper) & mask(s.lower)
		upper ^= s.mix(buf, round-2, lower) & mask(s.bits-s.lower)
	}
	return upper<<s.lower | lower
}

// mix is the round function: the first 8 bytes of AES over the half (8 bytes,
// big-endian), the round, the width and zeros.
func (s *Scrambler) mix(buf *[aes.BlockSize]byte, round byte, half uint64) uint64 {
	*buf = [aes.BlockSize]byte{8: round, 9: byte(s.bits)}
	binary.BigEndian.PutUint64(buf[:], half)
	s.block.Encrypt(buf[:], buf[:])
	return binary.BigEndian.Uint64(buf[:])
}

func mask(bits int) uint64 { return 1<<bits - 1 }
