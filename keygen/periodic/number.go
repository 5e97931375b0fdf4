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

// Number is one of a key's numbers of a period. In JSON it is the text that String
// returns. The zero Number is none; its text is empty.
type Number struct {
	Period string // "2026-11-21", "2026-11" or "2026"
	Count  int64  // from 1 on
	Digits int    // how many the count has in texts, with leading zeros
}

var (
	_ encoding.TextMarshaler   = Number{}
	_ encoding.TextUnmarshaler = (*Number)(nil)
)

// ParseNumber reads a number that String wrote. Anything else is an error that wraps
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
// ParseNumber would not have returned.
func (n Number) Int64() int64 {
	if !n.valid() {
		return 0
	}
	id, err := strconv.ParseInt(strings.ReplaceAll(n.String(), "-", ""), 10, 64)
	if err != nil {
		panic("bug: " + err.Error()) // as the digits are bounded
	}
	return id
}

// valid tells whether Numbers could have given n.
func (n Number) valid() bool {
	for p, layout := range layouts {
		at, err := time.Parse(layout, n.Period)
		if err == nil && hasFourDigits(at) {
			return n.Digits >= 1 && n.Digits <= p.maxDigits() && n.Count >= 1 && len(strconv.FormatInt(n.Count, 10)) <= n.Digits
		}
	}
	return false
}

// hasFourDigits tells whether the year has, so that names of periods have one length.
func hasFourDigits(t time.Time) bool { return t.Year() >= 1000 && t.Year() <= 9999 }

// MarshalText returns what String does.
func (n Number) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads what [ParseNumber] reads, and no text as the zero Number. On an
// error the number stays as it is.
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
