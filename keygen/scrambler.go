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

// scrambleRounds is how many half-blocks are enciphered, as many as in NIST's
// format-preserving FF1. Changing it changes every public id ever given out.
const scrambleRounds = 10

// Scrambler shows ids as other ids and back, under a key (obfuscation): a
// bijection of 1 to 2^bits−1 onto itself, so that no two ids meet and none
// becomes 0. It is safe for concurrent use, and must not be copied. The zero
// Scrambler has no key and refuses every id.
//
// It protects from guessing volume: consecutive order ids tell a competitor how
// many orders there were, two public ids tell nothing about what lies between
// them. It does not protect from anything else. A public id is no permission:
// below 40 bits or so one can simply try them all, and an id that was seen can
// be sent again, so check who may read a row. It does not hide that two requests
// are about the same row. Neither is it encryption of anything but ids.
//
// Keep the plain id in the database, where neighbours should stay neighbours,
// and scramble where ids leave the service. Another key, or another width, is
// another bijection: all public ids change with it. To change the key, give the
// new one a prefix of its own (see [FormatConfig]) and go on reading the old.
//
// The construction is a Feistel network of 10 rounds over the id's upper and
// lower half; a round function is AES-128 of the other half, the number of the
// round and the width. It is fixed: what was scrambled once is unscrambled by
// every later version. 0 is left out by walking the cycle: where it comes out,
// it is scrambled once more.
type Scrambler struct {
	block cipher.Block
	bits  int
	lower int // bits of the lower half, the larger one when bits is odd
	// buffers holds *[aes.BlockSize]byte, because what a cipher.Block is given
	// is allocated.
	buffers sync.Pool
}

// NewScrambler returns a scrambler of ids of 1 to 63 bits: 63 for any id, 53 for
// those of [JSSafe], so that the public ones are exact in JavaScript too. The
// key is 16 random bytes that are kept secret, used for nothing else and the
// same in every process: `openssl rand -hex 16` makes one. A key of zeros is
// refused as a forgotten one.
func NewScrambler(key [16]byte, bits int) (*Scrambler, error) {
	if bits < 1 || bits > maxBits {
		return nil, fmt.Errorf("keygen: a scrambler of %d bits; ids have 1 to %d", bits, maxBits)
	}
	if key == [16]byte{} {
		return nil, errors.New("keygen: the key of a scrambler is all zeros; give it 16 random bytes, from `openssl rand -hex 16` say")
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

// Scramble returns the public form of id. An id below 1, or wider than the
// scrambler, is an error that wraps [ErrRange].
func (s *Scrambler) Scramble(id int64) (int64, error) {
	return s.walk(id, (*Scrambler).forward)
}

// Unscramble returns the id whose public form is given. A number below 1, or
// wider than the scrambler, is an error that wraps [ErrRange]. Every other is
// the form of some id, which need not exist.
func (s *Scrambler) Unscramble(public int64) (int64, error) {
	return s.walk(public, (*Scrambler).backward)
}

// walk steps on until it meets no 0, which is neither an id nor a public form.
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
		return fmt.Errorf("%w: %d is not from 1 to %d, the ids of %d bits", ErrRange, id, uint64(1)<<s.bits-1, s.bits)
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
