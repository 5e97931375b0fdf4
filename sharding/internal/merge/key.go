// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Key is a column by which rows are ordered or distinguished. Desc and NullsFirst matter only for
// an order.
type Key struct {
	Column     int // from 0
	Type       Type
	Desc       bool
	NullsFirst bool // NULLs come before all others, Desc or not
}

// Type says how the values of a column compare.
type Type struct {
	Kind Kind
	// Pad is the weight of a space. It is set for Bytes that are the weights of a text with a PAD
	// SPACE collation: the shorter of two values compares as if it were padded with spaces. The
	// length of every weight of the collation must be the length of Pad or a multiple of it.
	Pad string
	// Prefix is the number of bytes that the database compares, max_sort_length; 0 means all.
	Prefix int
	// Most is the number of bytes of a text whose weights Bytes has at least, 0 for all. A byte
	// follows the weights then: '1' if the text is longer, otherwise '0'.
	Most int
	// Collation says how texts of Stored compare.
	Collation Collation
}

// Kind is the kind of a column's values.
type Kind uint8

// The kinds. A number may come as a number or as text.
const (
	// Integer: whole numbers of 64 bits, signed or not, and truth values.
	Integer Kind = iota + 1
	// Decimal: exact numbers. 1.50 equals 1.5. PostgreSQL's NaN is above all others.
	Decimal
	// Float: numbers of double precision. NaN equals itself and is above all others.
	Float
	// Bytes: texts and binaries that compare by their bytes, and weights of texts.
	Bytes
	// Time: dates and times. They compare by the instant, or by their text if the driver returns
	// texts, as MySQL's does without parseTime.
	Time
	// Duration: MySQL's TIME, a text such as -100:00:00.5.
	Duration
	// Stored: values of SQLite. They compare by their storage class: numbers, then texts, then
	// blobs, which are strings and slices of bytes. The driver must not convert stored texts to
	// times, as it does unless the column is part of an expression.
	Stored
)

var kinds = [...]string{"value of no kind", "integer", "decimal", "float", "text or binary", "time", "TIME", "stored value"}

// Collation is a built-in collation of SQLite.
type Collation uint8

// SQLite's collations.
const (
	Binary Collation = iota
	NoCase           // A to Z equal a to z
	RTrim            // spaces at the end are ignored
)

// The key of a value consists of bytes that compare as the values do, and that are equal if the
// values are. So a row's values are read once, a comparison cannot fail, and the same bytes find a
// group in a map. No key is a prefix of another one.

// Marks before a value.
const (
	nullFirst = iota
	value
	nullLast
)

func appendKeys(b []byte, keys []Key, row []driver.Value) ([]byte, error) {
	for i := range keys {
		k := &keys[i]
		v := row[k.Column]
		switch {
		case v == nil && k.NullsFirst:
			b = append(b, nullFirst)
		case v == nil:
			b = append(b, nullLast)
		default:
			start := len(b) + 1
			var ok bool
			if b, ok = k.Type.append(append(b, value), v); !ok {
				return b, fmt.Errorf("column %d: %w", k.Column+1, k.Type.unexpected(v))
			}
			if k.Desc {
				invert(b[start:])
			}
		}
	}
	return b, nil
}

// unexpected returns an error with the type of a value and the expected kind. It does not contain
// the value, which may be secret.
func unexpected(k Kind, v driver.Value) error {
	return fmt.Errorf("%w: a %T that is no %s", ErrValue, v, kinds[k])
}

func (t *Type) unexpected(v driver.Value) error {
	if s, _ := TextOf(v); t.Most > 0 && strings.HasSuffix(s, "1") {
		return fmt.Errorf("%w: a text of more than %d bytes", ErrValue, t.Most)
	}
	return unexpected(t.Kind, v)
}

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

// append appends the key of a value that is not NULL.
func (t *Type) append(b []byte, v driver.Value) ([]byte, bool) {
	switch t.Kind {
	case Integer:
		return appendInteger(b, v)
	case Decimal:
		return appendDigits(b, digitsOf(v))
	case Float:
		f, ok := floatOf(v)
		return appendFloat(b, f), ok
	case Bytes:
		switch v := v.(type) {
		case []byte:
			return appendWeights(b, t, v)
		case string:
			return appendWeights(b, t, v)
		}
	case Time:
		return appendTime(b, v)
	case Duration:
		d, ok := durationOf(v)
		return appendSigned(b, d), ok
	case Stored:
		return appendStored(b, t.Collation, v)
	}
	return b, false
}

// Bytes for the sign of a number, which precede its magnitude, and for the values that PostgreSQL
// sorts above and below all numbers.
const (
	negativeInfinity = iota
	negative
	zero
	positive
	infinity
	notANumber
)

var infinite = map[string]byte{"-Infinity": negativeInfinity, "Infinity": infinity, "NaN": notANumber}

func appendSigned(b []byte, v int64) []byte {
	sign := byte(positive)
	if v < 0 {
		sign = negative
	}
	return binary.BigEndian.AppendUint64(append(b, sign), uint64(v))
}

func appendInteger(b []byte, v driver.Value) ([]byte, bool) {
	if n, ok := v.(int64); ok {
		return appendSigned(b, n), true
	}
	s := digitsOf(v)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return appendSigned(b, n), true
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return binary.BigEndian.AppendUint64(append(b, positive), n), err == nil
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// TextOf returns the text if a value is one, otherwise "".
func TextOf(v driver.Value) (string, bool) {
	switch v := v.(type) {
	case []byte:
		return string(v), true
	case string:
		return v, true
	}
	return "", false
}

// digitsOf returns a number that is not a float as text, "" for what is neither a number nor a text.
func digitsOf(v driver.Value) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case bool:
		return strconv.FormatInt(truth(v), 10)
	}
	s, _ := TextOf(v)
	return s
}

const digits = "0123456789"

// appendDigits appends a decimal: its sign, the position of its first digit, and its digits without
// zeros at both ends.
func appendDigits(b []byte, s string) ([]byte, bool) {
	if sign, is := infinite[s]; is {
		return append(b, sign), true
	}
	s, minus := strings.CutPrefix(s, "-")
	whole, fraction, _ := strings.Cut(s, ".")
	if len(whole)+len(fraction) == 0 || strings.Trim(whole, digits) != "" || strings.Trim(fraction, digits) != "" {
		return b, false
	}
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	first := len(whole)
	switch {
	case whole == "" && fraction == "":
		return append(b, zero), true
	case whole == "":
		first = -len(fraction)
		fraction = strings.TrimLeft(fraction, "0")
		first += len(fraction)
	case fraction == "":
		whole = strings.TrimRight(whole, "0")
	}
	sign, start := byte(positive), len(b)+1
	if minus {
		sign = negative
	}
	b = binary.BigEndian.AppendUint16(append(b, sign), uint16(first+math.MaxInt16))
	b = append(append(append(b, whole...), fraction...), 0)
	if minus {
		invert(b[start:])
	}
	return b, first > -math.MaxInt16 && first <= math.MaxInt16
}

// appendFloat appends the bits of a float in the order of their values.
func appendFloat(b []byte, f float64) []byte {
	switch {
	case f == 0:
		f = 0 // and not -0
	case math.IsNaN(f):
		f = math.NaN()
	}
	bits := math.Float64bits(f)
	if bits>>63 == 1 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(b, bits)
}

func floatOf(v driver.Value) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case float32:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	}
	s, _ := TextOf(v)
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// Bytes that distinguish the instants of Time from texts, and from PostgreSQL's times below and above all others.
const (
	beforeAll = iota
	instant
	text
	afterAll
)

func appendTime(b []byte, v driver.Value) ([]byte, bool) {
	if t, ok := v.(time.Time); ok {
		b = appendSigned(append(b, instant), t.Unix())
		return binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond())), true
	}
	s, _ := TextOf(v)
	switch s {
	case "-infinity":
		return append(b, beforeAll), true
	case "infinity":
		return append(b, afterAll), true
	}
	return appendEscaped(append(b, text), s), s != "" && s[0] >= '0' && s[0] <= '9'
}

// durationOf returns a TIME in nanoseconds.
func durationOf(v driver.Value) (int64, bool) {
	s, _ := TextOf(v)
	parts := strings.Split(s, ":")
	if len(parts) != 3 || strings.Trim(s, "-:."+digits) != "" {
		return 0, false
	}
	d, err := time.ParseDuration(parts[0] + "h" + parts[1] + "m" + parts[2] + "s")
	return int64(d), err == nil
}

// Storage classes of SQLite, in their order.
const (
	classNumber = iota + 1
	classText
	classBlob
)

func appendStored(b []byte, c Collation, v driver.Value) ([]byte, bool) {
	switch v := v.(type) {
	case bool:
		return appendExact(b, truth(v)), true
	case int64:
		return appendExact(b, v), true
	case float64:
		return append(appendFloat(append(b, classNumber), v), 0, 0), true
	case string:
		return appendCollated(append(b, classText), c, v), true
	case []byte:
		return appendEscaped(append(b, classBlob), v), true
	}
	return b, false
}

// appendExact appends an integer so that it compares with floats as a number without rounding: the
// greatest float that is not above it, and the rest.
func appendExact(b []byte, v int64) []byte {
	f := float64(v)
	if f == 1<<63 || int64(f) > v {
		f = math.Nextafter(f, math.Inf(-1))
	}
	return binary.BigEndian.AppendUint16(appendFloat(append(b, classNumber), f), uint16(v-int64(f)))
}

func appendCollated(b []byte, c Collation, s string) []byte {
	switch c {
	case RTrim:
		s = strings.TrimRight(s, " ")
	case NoCase: // a 0 byte ends the text; of equal texts the shorter is less
		whole, start := len(s), len(b)
		s, _, _ = strings.Cut(s, "\x00")
		b = appendEscaped(b, s)
		for i := start; i < len(b); i++ {
			if b[i] >= 'A' && b[i] <= 'Z' {
				b[i] += 'a' - 'A'
			}
		}
		return binary.BigEndian.AppendUint32(b, uint32(whole))
	}
	return appendEscaped(b, s)
}

// appendEscaped appends bytes and an end mark that is less than all following bytes.
func appendEscaped[T string | []byte](b []byte, s T) []byte {
	from := 0
	for i := range len(s) {
		if s[i] == 0 {
			b = append(append(b, s[from:i]...), 0, 0xFF)
			from = i + 1
		}
	}
	return append(append(b, s[from:]...), 0, 0)
}

// appendWeights appends texts or weights. With a Pad, it divides them into pieces of eight weights,
// and pads the last one with spaces. After each piece it appends whether the rest is below, equal
// to, or above a text of spaces; so a text whose next piece is missing compares as if it were
// padded.
func appendWeights[T string | []byte](b []byte, t *Type, s T) ([]byte, bool) {
	if t.Most > 0 {
		n := len(s) - 1
		if n < 0 || s[n] != '0' && (t.Prefix == 0 || n < t.Prefix) {
			return b, false
		}
		s = s[:n]
	}
	if t.Prefix > 0 && len(s) > t.Prefix {
		s = s[:t.Prefix]
	}
	if len(t.Pad) == 0 {
		return appendEscaped(b, s), true
	}
	if len(s)%len(t.Pad) != 0 && len(s) != t.Prefix {
		return b, false
	}
	piece := 8 * len(t.Pad)
	next, sign := 0, byte(zero) // offset of the next piece that is not spaces
	for from := 0; ; from += piece {
		n := min(piece, len(s)-from)
		b = append(b, s[from:from+n]...)
		for i := n; i < piece; i++ {
			b = append(b, t.Pad[i%len(t.Pad)])
		}
		if next < from+n {
			next, sign = againstSpaces(s, from+n, t.Pad)
		}
		if b = append(b, sign); sign == zero {
			return b, true
		}
	}
}

// againstSpaces compares weights from an offset on with as many spaces. It returns the offset of
// the first difference.
func againstSpaces[T string | []byte](s T, from int, pad string) (at int, sign byte) {
	for i := from; i < len(s); i++ {
		switch c := pad[i%len(pad)]; {
		case s[i] < c:
			return i, negative
		case s[i] > c:
			return i, positive
		}
	}
	return len(s), zero
}
