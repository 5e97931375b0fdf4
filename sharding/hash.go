// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// Hash spreads unevenly distributed keys over n slots, from 1 to [MaxSlots]: it takes xxhash64
// (seed 0) of the integer's decimal text, modulo n. Vitess' xxhash vindex hashes the same text.
// Decimal text counts as the integer, so 5 and "5" have one slot. Hash refuses "05" and "+5", which
// are equal to 5 in an integer column but not in a text column. For columns that hold text there is
// [HashText].
func Hash(n int) Rule {
	return counted("Hash", n, hash{modulus(n)})
}

// HashText is [Hash] for columns that hold text: xxhash64 of the bytes of a string or []byte,
// modulo n. It refuses integers, because the comparison of a text column with a number matches
// several texts.
//
// The column must compare bytes: under a collation that ignores case or accents, the rows of one
// key would be in several slots. Normalize keys, for example to lower case, before they are stored
// and searched for. gormplugin.Migrate creates such columns with a binary collation. schema.Doctor,
// the inspection of a migration and gormplugin.Check find columns that do not compare bytes. A string
// that ends with a space is refused, because most collations ignore the space. A []byte is hashed
// whatever it ends with, for columns of bytes (BINARY(16), VARBINARY, bytea); shardsql passes keys to
// the rule as the one or the other, by the column.
func HashText(n int) Rule {
	return counted("HashText", n, hashText{modulus(n)})
}

// Compat is the default rule of go-gorm/sharding for n tables whose key is an integer, for tables
// that go-gorm/sharding has filled: the integer modulo n. n is from 1 to [MaxSlots]. For an integer
// above int64 it is the CRC-32 of the decimal text.
//
// Text that strconv.Atoi accepts counts as the integer, as in a column of integers. All other text
// is refused: go-gorm/sharding uses its CRC-32, but the database converts it, and MySQL finds the
// row of 3 under "3 ", "3e0" and "3abc". For columns that hold text there is [CompatText].
//
// Go's % is negative for negative keys, and go-gorm/sharding then uses a table called "orders_-1",
// which its migrations do not create. Such keys are refused with [ErrNoSlot], unless n divides
// them.
func Compat(n int) Rule {
	return counted("Compat", n, compat{modulus(n)})
}

// CompatText is [Compat] for columns that hold text. For a string or []byte that strconv.Atoi
// accepts, it is the integer modulo n; for any other text it is the CRC-32 (IEEE) modulo n. It
// refuses integers and text that ends with a space. [HashText] explains why, and what the column
// must do.
func CompatText(n int) Rule {
	return counted("CompatText", n, compatText{modulus(n)})
}

var (
	_ Rule = hash{}
	_ Rule = hashText{}
	_ Rule = compat{}
	_ Rule = compatText{}
)

type hash struct{ modulus }

func (r hash) Slot(key any) (Slot, error) {
	switch v := key.(type) {
	case int64:
		return r.of(signed(v)), nil
	case int:
		return r.of(signed(int64(v))), nil
	case uint64:
		return r.of(unsigned(v)), nil
	}
	k, err := toInteger(key)
	if err == nil {
		err = canonical(key, k)
	}
	if err != nil {
		return 0, err
	}
	return r.of(k), nil
}

func (r hash) of(k integer) Slot {
	var text [20]byte // long enough for the lowest int64
	return Slot(xxhash64(k.appendTo(text[:0])) % uint64(r.modulus))
}

// canonical refuses a key whose text is not the decimal text of k.
func canonical(key any, k integer) error {
	text, ok := key.(string)
	if !ok {
		s, err := read(key)
		if err != nil || s.kind != isText {
			return err
		}
		text = s.text
	}
	var buffer [20]byte
	if string(k.appendTo(buffer[:0])) == text {
		return nil
	}
	return scalar{kind: isText, text: text}.mistaken("write the integer without leading zeros and plus sign, or use HashText if the column holds text")
}

type hashText struct{ modulus }

func (r hashText) Slot(key any) (Slot, error) {
	text, bytes, err := toText(key)
	if !bytes {
		text, err = unpadded(text, err)
	}
	if err != nil {
		return 0, err
	}
	return Slot(xxhash64([]byte(text)) % uint64(r.modulus)), nil
}

// toText returns the text of a key of a column that holds text, and whether the key is a []byte.
func toText(key any) (text string, bytes bool, err error) {
	text, ok := key.(string)
	if !ok {
		s, err := read(key)
		if err != nil {
			return "", false, err
		}
		if s.kind != isText {
			return "", false, s.mistaken("text is expected")
		}
		text, bytes = s.text, s.bytes
	}
	return text, bytes, nil
}

// unpadded refuses a text that ends with a space.
func unpadded(text string, err error) (string, error) {
	if err == nil && strings.HasSuffix(text, " ") {
		err = fmt.Errorf("%q: %w; it ends with a space, which most collations ignore", text, ErrKeyType)
	}
	return text, err
}

type compat struct{ modulus }

func (r compat) Slot(key any) (Slot, error) {
	k, err := toInteger(key)
	if err == nil && k.huge() {
		err = canonical(key, k) // the text is hashed, so only one form is allowed
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w; use CompatText if the column holds text", err)
	case k.huge():
		var text [20]byte
		return crcSlot(k.appendTo(text[:0]), r.modulus), nil
	}
	return compatSlot(int64(k.bits), r.modulus)
}

type compatText struct{ modulus }

func (r compatText) Slot(key any) (Slot, error) {
	text, _, err := toText(key)
	if text, err = unpadded(text, err); err != nil {
		return 0, err
	}
	if k, err := strconv.ParseInt(text, 10, 64); err == nil {
		return compatSlot(k, r.modulus)
	}
	return crcSlot([]byte(text), r.modulus), nil
}

func compatSlot(k int64, n modulus) (Slot, error) {
	v := k % int64(n)
	if v < 0 {
		return 0, fmt.Errorf("%d: %w: go-gorm/sharding would use a table with the number %d", k, ErrNoSlot, v)
	}
	return Slot(v), nil
}

func crcSlot(text []byte, n modulus) Slot { return Slot(uint64(crc32.ChecksumIEEE(text)) % uint64(n)) }
