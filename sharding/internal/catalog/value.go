// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/shardid/shardid/sharding/internal/merge"
)

// Value is how values are compared: the form of a value that is compared, and how that compares.
type Value struct {
	Type merge.Type // its Kind is 0 if that is unknown
	As   Form
	// Unordered is the reason why only equality is known, and not the order; "" if both are known.
	Unordered string
	// Wide says of integers of PostgreSQL that they have 64 bits: their sum is a decimal, and that
	// of narrower ones an integer.
	Wide bool
	// Narrow says of integers of PostgreSQL that they have 16 bits.
	Narrow bool
	// Texts says that Bytes are texts of PostgreSQL.
	Texts bool
	// Behind is the SQL behind a text of PostgreSQL that sorts it: COLLATE and a collation that is not C, or a cast to an ENUM.
	Behind string
	// Collation is that of a Weight. A UNION compares texts by one collation, which need not be theirs.
	Collation string
}

// Form is the form of a value that is compared.
type Form uint8

// The forms of values.
const (
	Plain   Form = iota // the value itself
	Weight              // WEIGHT_STRING of MySQL and MariaDB, of a text
	Number              // an integer: that of BIT or YEAR, the position of a member of an ENUM, or of the members of a SET
	Double              // a DOUBLE, of a FLOAT: the text of a FLOAT has fewer digits than its value
	Trimmed             // the text of a CHAR of PostgreSQL, without spaces at its end
	Asked               // a text, which its rank replaces when all of them are known: a database is asked for their order
)

var conversions = [...]string{Plain: "%s", Weight: "WEIGHT_STRING(%s)", Number: "CAST(%s AS UNSIGNED)", Double: "(%s + 0E0)", Trimmed: "CAST(%s AS TEXT)", Asked: "CAST(%s AS TEXT) || ''"}

// of returns the expression that converts an expression to the form.
func (f Form) of(text string) string { return fmt.Sprintf(conversions[f], text) }

// Selected returns the expression that is selected to compare the values of an expression.
func (v Value) Selected(text string) string {
	switch n := strconv.Itoa(v.Type.Most); {
	case v.Type.Kind == merge.Stored && strings.ContainsAny(text, " ("):
		return "+(" + text + ")"
	case v.Type.Kind == merge.Stored:
		return "+" + text // so that the driver does not convert a text to a time
	case v.Type.Most > 0:
		return "CONCAT(" + v.As.of("LEFT("+text+", "+n+")") + ", LENGTH(" + text + ") > " + n + ")"
	}
	return v.As.of(text)
}

// HasPadding reports whether different values may be equal.
func (v Value) HasPadding() bool { return v.Type.Pad != "" }

// Splits reports whether equal values may have different hidden columns.
func (v Value) Splits() bool { return v.HasPadding() || v.Type.Most > 0 }

// Untruncated returns how values compare that are not truncated to max_sort_length.
func (v Value) Untruncated() Value {
	v.Type.Prefix = 0
	return v
}

// Same reports whether two values compare in the same way.
func (v Value) Same(w Value) bool {
	return v.Type == w.Type && v.As == w.As && v.Unordered == w.Unordered && v.Behind == w.Behind
}

// United reports whether a UNION compares two values by the collation of both.
func (v Value) United(w Value) bool { return v.Collation == w.Collation && v.Collation != mixed }

// With returns the value of an expression of which v and w are parts that have the same weights.
func (v Value) With(w Value) Value {
	if v.Collation != w.Collation {
		v.Collation = mixed
	}
	return v
}

// mixed is the Collation of an expression of texts of several collations.
const mixed = "mixed"

// OfKind is how values of a kind compare by themselves.
func OfKind(k merge.Kind) Value { return Value{Type: merge.Type{Kind: k}} }

// IsNumber reports whether values are numbers of MySQL, MariaDB or PostgreSQL.
func (v Value) IsNumber() bool {
	return v.As == Plain && v.Type.Kind >= merge.Integer && v.Type.Kind <= merge.Float
}

// IsNumeric is IsNumber with FLOATs, whose selected form is another one than their own.
func (v Value) IsNumeric() bool { return v.IsNumber() || v.As == Double }

// IsTime reports whether values are dates, times of day, or both.
func (v Value) IsTime() bool { return v.Type.Kind == merge.Time || v.Type.Kind == merge.Duration }

// IsText reports whether values are texts of MySQL, MariaDB or PostgreSQL.
func (v Value) IsText() bool { return v.As == Weight || v.As == Trimmed || v.Texts }

// IsExact reports whether values are whole numbers or decimals, or any values of SQLite.
func (v Value) IsExact() bool {
	return v.As == Plain && (v.Type.Kind == merge.Integer || v.Type.Kind == merge.Decimal || v.Type.Kind == merge.Stored)
}

// Fold returns a text that is equal if a collation may treat two texts as equal. Some collations
// treat i as j or y, u as v or w, and ccs as cscs; so for a word it is the set of its letters. Of
// other scripts only ideographs are known to differ.
func Fold(text string) (string, bool) {
	var out strings.Builder
	letters := uint32(0)
	for _, r := range strings.TrimRight(text, " ") + "\x00" {
		if low := r | 0x20; low >= 'a' && low <= 'z' {
			switch low {
			case 'j', 'y':
				low = 'i'
			case 'v', 'w':
				low = 'u'
			}
			letters |= 1 << (low - 'a')
			continue
		}
		if letters != 0 {
			out.WriteString("{" + strconv.FormatUint(uint64(letters), 36) + "}")
			letters = 0
		}
		switch {
		case r == 0:
		case r >= ' ' && r <= '~', r >= 0x4E00 && r <= 0x9FA5:
			out.WriteRune(r)
		default:
			return "", false
		}
	}
	return out.String(), true
}
