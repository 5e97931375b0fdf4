package periodic

import (
	"fmt"
	"strconv"
	"strings"
)

// Number is one of a key's numbers of a period.
type Number struct {
	Period string // "2026-11-21", "2026-11" or "2026"
	Count  int64  // from 1 on

	digits int
}

// String returns the period and the count with leading zeros: "2026-11-000042".
func (n Number) String() string { return fmt.Sprintf("%s-%0*d", n.Period, n.digits, n.Count) }

// Int64 returns the same digits as a number: 202611000042.
func (n Number) Int64() int64 {
	id, err := strconv.ParseInt(strings.ReplaceAll(n.String(), "-", ""), 10, 64)
	if err != nil {
		panic("bug: " + err.Error()) // Config.validate bounds the digits
	}
	return id
}
