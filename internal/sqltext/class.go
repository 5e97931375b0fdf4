// SPDX-License-Identifier: Apache-2.0

package sqltext

import (
	"slices"
	"strings"
)

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isNameByte reports whether c may be part of a parameter's name. Bytes of 0x80 and above are
// letters: every server accepts them in identifiers.
func isNameByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || isDigit(c) || c == '_' || c >= 0x80
}

func isIdent(c byte) bool { return isNameByte(c) || c == '$' }

// isRadix reports whether s, which starts with a digit, is 0x1F, 0b01 or 0o7.
func isRadix(s string) bool {
	if len(s) < 3 || s[0] != '0' {
		return false
	}
	switch s[1] | 0x20 {
	case 'x':
		return strings.Trim(s[2:], "0123456789abcdefABCDEF") == ""
	case 'b':
		return strings.Trim(s[2:], "01") == ""
	case 'o':
		return strings.Trim(s[2:], "01234567") == ""
	}
	return false
}

// Mentions reports whether a text contains one of some words, which are in lower case, anywhere: as a part of a
// word, a literal or a comment, too. It is a fast check before a slow one.
func Mentions(text string, words ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}
