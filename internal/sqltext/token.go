// SPDX-License-Identifier: Apache-2.0

package sqltext

import "strings"

// Kind is the kind of a token.
type Kind uint8

// The kinds of tokens.
const (
	Space       Kind = iota + 1 // a run of white space
	Comment                     // a comment, or a delimiter of a version comment
	String                      // a string literal with its quotes
	QuotedIdent                 // an identifier with its quotes
	Word                        // a keyword, a bare identifier, a @variable
	Number                      // a numeric literal
	Param                       // "?", and in PostgreSQL "$1"
	Named                       // ":name", which may contain dots
	Op                          // any other byte; "::" and ":=" are one token
)

var kindNames = [...]string{"?", "Space", "Comment", "String", "QuotedIdent", "Word", "Number", "Param", "Named", "Op"}

// String returns the name of k.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[0]
}

// Token is the part sql[Start:End] of a scanned text.
type Token struct {
	Kind       Kind
	Start, End int
}

// Text returns the token's bytes in sql, the text it was scanned from.
func (t Token) Text(sql string) string { return sql[t.Start:t.End] }

// Is reports whether the token is the keyword or operator s, whatever its case.
// A quoted identifier is never a keyword.
func (t Token) Is(sql, s string) bool {
	return (t.Kind == Word || t.Kind == Op) && strings.EqualFold(t.Text(sql), s)
}

// Ident returns the name of a Word or a QuotedIdent: without its quotes, and with doubled quotes
// undone. For other kinds it returns the token's text.
func Ident(sql string, t Token) string {
	s := t.Text(sql)
	if t.Kind != QuotedIdent {
		return s
	}
	q := s[0]
	s = s[1:]
	if q == '[' {
		return strings.TrimSuffix(s, "]")
	}
	if n := len(s); n > 0 && s[n-1] == q {
		s = s[:n-1]
	}
	if strings.IndexByte(s, q) < 0 {
		return s
	}
	return strings.ReplaceAll(s, string([]byte{q, q}), string(q))
}

// Name returns the name of a token: that of [Ident], or the content of a String, which SQLite
// accepts as a name where it needs one.
func Name(sql string, t Token) string {
	if t.Kind != String {
		return Ident(sql, t)
	}
	return strings.Trim(t.Text(sql), `'"`)
}
