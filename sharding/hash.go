package sharding

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// Hash spreads keys that are uneven in themselves over n slots, from 1 to
// [MaxSlots]: xxhash64 (seed 0) of the integer's decimal text, modulo n. This is
// what Vitess' xxhash vindex hashes. Decimal text counts as the integer, so it
// takes "5" and 5 alike, and refuses "05" and "+5", which an integer column
// takes for 5 but a text column does not. For columns that hold text there is
// [HashText].
func Hash(n int) Rule {
	if n < 1 || n > MaxSlots {
		return invalid(fmt.Sprintf("Hash(%d): n must be from 1 to %d", n, MaxSlots))
	}
	return hash{n: uint64(n)}
}

// HashText is [Hash] for columns that hold text: xxhash64 of the bytes of a
// string or []byte, modulo n. Integers are refused, since a comparison of a text
// column with a number matches other texts too.
//
// The column must compare bytes: under a collation that ignores case or accents
// the rows of one key would lie in several slots. Bring keys into one form, in
// lower case say, before they are stored and looked for. gormplugin.Migrate makes
// such columns so that they do; schema.Doctor, the inspection of a migration and
// gormplugin.Check find those that do not (see [Table.Texts]). Text that ends with a
// space is refused, as most collations ignore it.
func HashText(n int) Rule {
	if n < 1 || n > MaxSlots {
		return invalid(fmt.Sprintf("HashText(%d): n must be from 1 to %d", n, MaxSlots))
	}
	return hashText{n: uint64(n)}
}

// Compat is the default rule of go-gorm/sharding for n tables, for tables that
// it has filled: an integer, or text that strconv.Atoi takes for one, modulo n;
// of any other text the CRC-32 (IEEE), modulo n. n is from 1 to [MaxSlots].
//
// Go's % is negative for negative keys, and go-gorm/sharding then looks for a
// table called "orders_-1", which its migrations do not create: such keys are
// refused with [ErrNoSlot], unless n divides them. An integer of any kind counts
// as its decimal text.
func Compat(n int) Rule {
	if n < 1 || n > MaxSlots {
		return invalid(fmt.Sprintf("Compat(%d): n must be from 1 to %d", n, MaxSlots))
	}
	return compat{n: uint64(n)}
}

var (
	_ Rule = hash{}
	_ Rule = hashText{}
	_ Rule = compat{}
)

type hash struct{ n uint64 }

func (r hash) Slots() int { return int(r.n) }

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
	if !k.negative {
		return Slot(xxhash64Decimal(k.bits) % r.n)
	}
	var text [20]byte // the longest is that of the lowest int64
	return Slot(xxhash64(k.appendTo(text[:0])) % r.n)
}

// canonical refuses a key that is the text of k in another form than decimal
// text usually has.
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
	return scalar{kind: isText, text: text}.mistaken("write the integer without leading zeros and plus, or set HashText where the column holds text")
}

type hashText struct{ n uint64 }

func (r hashText) Slots() int { return int(r.n) }

func (r hashText) Slot(key any) (Slot, error) {
	text, ok := key.(string)
	if !ok {
		s, err := read(key)
		if err != nil {
			return 0, err
		}
		if s.kind != isText {
			return 0, s.mistaken("text is expected")
		}
		text = s.text
	}
	if strings.HasSuffix(text, " ") {
		return 0, fmt.Errorf("%q: %w; it ends with a space, which most collations ignore", text, ErrKeyType)
	}
	return Slot(xxhash64([]byte(text)) % r.n), nil
}

type compat struct{ n uint64 }

func (r compat) Slots() int { return int(r.n) }

func (r compat) Slot(key any) (Slot, error) {
	k, err := toInteger(key)
	if err != nil || k.huge() {
		return r.ofText(key)
	}
	v := int64(k.bits) % int64(r.n)
	if v < 0 {
		return 0, fmt.Errorf("%d: %w: go-gorm/sharding looks for its rows in a table numbered %d", int64(k.bits), ErrNoSlot, v)
	}
	return Slot(v), nil
}

// ofText places what is no int64.
func (r compat) ofText(key any) (Slot, error) {
	s, err := read(key)
	switch {
	case err != nil:
		return 0, err
	case s.kind == isInteger:
		s.text = strconv.FormatUint(s.integer.bits, 10)
	case s.kind != isText:
		return 0, s.mistaken("an integer or text is expected")
	}
	return Slot(uint64(crc32.ChecksumIEEE([]byte(s.text))) % r.n), nil
}
