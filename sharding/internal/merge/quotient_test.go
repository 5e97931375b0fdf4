// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"strings"
	"testing"
)

// MySQL computes a quotient in words of nine digits, with at least four digits more than the dividend has.
func TestAnAverageHasTheDigitsThatMySQLCompares(t *testing.T) {
	by := Division{More: 4, Most: 30, Rounds: true}
	for _, c := range []struct {
		sum         any
		count, want string
	}{
		{"8", "3", "2.666666666"},
		{"-8", "3", "-2.666666666"},
		{"0.5", "7", "0.071428571"},
		{"1.00", "3", "0.333333333"},
		{"1.000000", "3", "0.333333333333333333"}, // fewer than four of the nine digits are left
		{nil, "0", "NULL"},
		{"1." + strings.Repeat("0", 24), "3", ""}, // a literal has 30 digits, and the average 36
	} {
		if got := Quotient(c.sum, c.count, by); got != c.want {
			t.Errorf("%v / %s: %q, want %q", c.sum, c.count, got, c.want)
		}
	}
	if got := Quotient("1", "3", Division{More: 10}); got != "0.333333333333333333" {
		t.Errorf("with ten digits more: %q", got)
	}
	for scale := range 24 {
		if got := Quotient("1."+fmt.Sprintf("%0*d", scale, 0), "3", by); got == "" {
			t.Errorf("an average of %d digits is not computed", scale)
		}
	}
}
