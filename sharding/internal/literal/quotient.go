// SPDX-License-Identifier: Apache-2.0

package literal

import (
	"database/sql/driver"
	"fmt"
	"math/big"
	"strings"
)

// maxScale is how many digits behind the point a decimal literal of MySQL has at most.
const maxScale = 30

// Quotient returns the digits of a quotient that MySQL computes: four more than the sum has behind its point,
// in words of nine. It returns NULL if there are no numbers, and "" for more digits than a literal keeps.
func Quotient(sum, count driver.Value) string {
	const word, more = 9, 4
	whole, fraction, _ := strings.Cut(Digits(sum), ".")
	words := (len(fraction) + word - 1) / word * word
	digits := (words + max(0, more-(words-len(fraction))) + word - 1) / word * word
	if digits > maxScale {
		return ""
	}
	all, isSum := new(big.Int).SetString(whole+fraction+strings.Repeat("0", digits-len(fraction)), 10)
	by, isCount := new(big.Int).SetString(Digits(count), 10)
	if !isSum || !isCount || by.Sign() == 0 {
		return "NULL"
	}
	text := new(big.Int).Quo(new(big.Int).Abs(all), by).String()
	text = strings.Repeat("0", max(0, digits+1-len(text))) + text
	return map[bool]string{true: "-"}[all.Sign() < 0] + text[:len(text)-digits] + "." + text[len(text)-digits:]
}

// Digits returns a number that a driver returns as a number or a text.
func Digits(v driver.Value) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}
