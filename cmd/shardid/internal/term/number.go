// SPDX-License-Identifier: Apache-2.0

package term

import "strconv"

// Number writes n with commas between groups of three digits.
func Number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	start := len(digits) % 3
	if n < 0 {
		start = (len(digits)-1)%3 + 1
	}
	text := digits[:start]
	for i := start; i < len(digits); i += 3 {
		if text != "" && text != "-" {
			text += ","
		}
		text += digits[i : i+3]
	}
	return text
}

// Count writes a number and its noun: "1 row", "2 rows".
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Number(n) + " " + noun + "s"
}
