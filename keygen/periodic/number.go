// SPDX-License-Identifier: Apache-2.0

package periodic

import (
	"encoding"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/keygen"
)

// Number is a number of a key in a period. In JSON it is the text that String returns. The
// zero Number means that there is none; its text is empty.
type Number struct {
	Period string // "2026-11-21", "2026-11" or "2026"
	Count  int64  // from 1 on
	Digits int    // digits of the count in texts, with leading zeros
}

var (
	_ encoding.TextMarshaler   = Number{}
	_ encoding.TextUnmarshaler = (*Number)(nil)
)

// ParseNumber reads a number that String wrote. For any other text the error wraps
// [keygen.ErrSyntax].
func ParseNumber(text string) (Number, error) {
	i := strings.LastIndexByte(text, '-')
	n := Number{Period: text[:max(i, 0)], Digits: len(text) - i - 1}
	count, err := keygen.Decimal.Decode(text[i+1:])
	n.Count = count
	if err != nil || !n.valid() {
		return Number{}, fmt.Errorf("%w: %.64q is not a day, month or year and a count, as 2026-11-000042 is", keygen.ErrSyntax, text)
	}
	return n, nil
}

// String returns the period and the count with leading zeros: "2026-11-000042".
func (n Number) String() string {
	if n == (Number{}) {
		return ""
	}
	return fmt.Sprintf("%s-%0*d", n.Period, n.Digits, n.Count)
}

// Int64 returns the same digits as a number: 202611000042. It is 0 for a Number that
// ParseNumber never returns.
func (n Number) Int64() int64 {
	if !n.valid() {
		return 0
	}
	id, err := strconv.ParseInt(strings.ReplaceAll(n.String(), "-", ""), 10, 64)
	if err != nil {
		panic("bug: " + err.Error()) // the number of digits is bounded
	}
	return id
}

// valid reports whether Numbers could have issued n.
func (n Number) valid() bool {
	for p, layout := range layouts {
		at, err := time.Parse(layout, n.Period)
		if err == nil && hasFourDigits(at) {
			return n.Digits >= 1 && n.Digits <= p.maxDigits() && n.Count >= 1 && len(strconv.FormatInt(n.Count, 10)) <= n.Digits
		}
	}
	return false
}

// hasFourDigits reports whether the year has four digits, so that all names of periods have
// the same length.
func hasFourDigits(t time.Time) bool { return t.Year() >= 1000 && t.Year() <= 9999 }

// MarshalText returns the text of String.
func (n Number) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads the texts that [ParseNumber] reads, and an empty text as the zero
// Number. On an error the number is unchanged.
func (n *Number) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*n = Number{}
		return nil
	}
	read, err := ParseNumber(string(text))
	if err == nil {
		*n = read
	}
	return err
}
