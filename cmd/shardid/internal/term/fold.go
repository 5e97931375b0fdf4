// SPDX-License-Identifier: Apache-2.0

package term

import (
	"strings"
	"unicode/utf8"
)

// Folded breaks a text into lines of at most width characters, the second and later ones
// indented. A longer word stays whole.
func Folded(text string, width int, indent string) string {
	var b strings.Builder
	line := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == 0:
		case line+1+utf8.RuneCountInString(word) > width:
			b.WriteString("\n" + indent)
			line = 0
		default:
			b.WriteByte(' ')
			line++
		}
		b.WriteString(word)
		line += utf8.RuneCountInString(word)
	}
	return b.String()
}
