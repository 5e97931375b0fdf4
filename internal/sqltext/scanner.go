// SPDX-License-Identifier: Apache-2.0

package sqltext

import "strings"

// Scanner scans a text. It is a value: a copy continues at the position of the original, which
// allows looking ahead. It is not safe for concurrent use.
type Scanner struct {
	sql     string
	pos     int
	flavor  Flavor
	version bool // inside /*! … */
	open    bool // the text ended inside a literal or a comment
}

// NewScanner returns a scanner at the start of sql.
func NewScanner(sql string, f Flavor) Scanner { return Scanner{sql: sql, flavor: f} }

// Next returns the next token, or false at the end of the text.
func (s *Scanner) Next() (Token, bool) {
	if s.pos >= len(s.sql) {
		return Token{}, false
	}
	t := Token{Start: s.pos}
	t.Kind, t.End = s.scan()
	s.pos = t.End
	return t, true
}

// Skip moves n bytes on. They must be whole tokens, none of them a delimiter of a version comment:
// bytes that were scanned before, or that the caller joins to the token that Next returned last.
func (s *Scanner) Skip(n int) { s.pos = min(s.pos+n, len(s.sql)) }

// HasWord reports whether sql has the keyword, in any case, outside of literals, comments and quoted
// identifiers.
func HasWord(sql string, f Flavor, keyword string) bool {
	s := NewScanner(sql, f)
	for t, ok := s.NextCode(); ok; t, ok = s.NextCode() {
		if t.Is(sql, keyword) {
			return true
		}
	}
	return false
}

// WordsMention reports whether a word of sql contains one of some texts, which are in lower case: outside of
// literals, comments and quoted identifiers.
func WordsMention(sql string, f Flavor, texts ...string) bool {
	if !Mentions(sql, texts...) {
		return false
	}
	s := NewScanner(sql, f)
	for t, ok := s.NextCode(); ok; t, ok = s.NextCode() {
		if t.Kind == Word && Mentions(t.Text(sql), texts...) {
			return true
		}
	}
	return false
}

// NextCode returns the next token that is neither white space nor a comment, or
// false at the end of the text.
func (s *Scanner) NextCode() (Token, bool) {
	for {
		t, ok := s.Next()
		if !ok || t.Kind != Space && t.Kind != Comment {
			return t, ok
		}
	}
}

// Unclosed reports whether the text scanned so far ends inside a string, an identifier or a comment
// that is not closed.
func (s *Scanner) Unclosed() bool { return s.open || s.version && s.pos >= len(s.sql) }

// scan returns the kind and the end of the token at pos.
func (s *Scanner) scan() (Kind, int) {
	switch c := s.sql[s.pos]; {
	case isSpace(c):
		return Space, s.run(s.pos, isSpace)
	case c == '\'':
		return String, s.quoted(s.pos, s.flavor.has(BackslashEscapes))
	case c == '"':
		return s.doubleQuoted()
	case c == '`' && s.flavor.has(backticks):
		return QuotedIdent, s.quoted(s.pos, false)
	case c == '[' && s.flavor.has(brackets):
		return QuotedIdent, s.until(s.pos+1, "]")
	case isDigit(c):
		return s.number()
	case c == '$' && s.flavor.has(dollarQuotes):
		return s.dollar()
	case isIdent(c):
		return s.word()
	case c == '?':
		return Param, s.pos + 1
	}
	return s.punctuation()
}

// punctuation scans a token that begins neither a literal nor a name.
func (s *Scanner) punctuation() (Kind, int) {
	switch c := s.sql[s.pos]; {
	case c == ':':
		return s.colon()
	case c == '@' && s.flavor.has(atNames):
		return s.variable()
	case s.startsLineComment():
		return Comment, s.lineEnd()
	case c == '/' && s.at(s.pos+1) == '*':
		return Comment, s.blockComment()
	case c == '*' && s.version && s.at(s.pos+1) == '/':
		s.version = false
		return Comment, s.pos + 2
	}
	return Op, s.pos + 1
}

func (s *Scanner) doubleQuoted() (Kind, int) {
	if s.flavor.has(DoubleQuoteStrings) {
		return String, s.quoted(s.pos, s.flavor.has(BackslashEscapes))
	}
	return QuotedIdent, s.quoted(s.pos, false)
}

// quoted returns the end of the literal whose opening quote is at i. A doubled quote is part of the
// literal.
func (s *Scanner) quoted(i int, backslash bool) int {
	q := s.sql[i]
	for i++; i < len(s.sql); i++ {
		switch c := s.sql[i]; {
		case c == '\\' && backslash:
			i++
		case c == q && s.at(i+1) == q:
			i++
		case c == q:
			return i + 1
		}
	}
	s.open = true
	return len(s.sql)
}

// until returns the end of the first end at or after i.
func (s *Scanner) until(i int, end string) int {
	if j := strings.Index(s.sql[i:], end); j >= 0 {
		return i + j + len(end)
	}
	s.open = true
	return len(s.sql)
}

// word scans a name. MySQL's charset introducers and N'…' are a word and a string; E'…' is one
// token, because its prefix changes how it ends.
func (s *Scanner) word() (Kind, int) {
	end := s.run(s.pos, isIdent)
	if s.flavor.has(escapeStrings) && end == s.pos+1 && s.sql[s.pos]|0x20 == 'e' && s.at(end) == '\'' {
		return String, s.quoted(end, true)
	}
	return Word, end
}

// number scans a numeric literal, or a name that starts with a digit, as MySQL
// allows ("2024_orders").
func (s *Scanner) number() (Kind, int) {
	digits := s.run(s.pos, isDigit)
	if s.at(digits) == '.' && isDigit(s.at(digits+1)) {
		return Number, s.exponent(s.run(digits+1, isDigit))
	}
	if end := s.exponent(digits); end > digits && !isIdent(s.at(end)) {
		return Number, end
	}
	end := s.run(digits, isIdent)
	if end == digits || isRadix(s.sql[s.pos:end]) {
		return Number, end
	}
	return Word, end
}

// exponent returns the end of the exponent at i, or i if there is none.
func (s *Scanner) exponent(i int) int {
	if s.at(i)|0x20 != 'e' {
		return i
	}
	j := i + 1
	if c := s.at(j); c == '+' || c == '-' {
		j++
	}
	if !isDigit(s.at(j)) {
		return i
	}
	return s.run(j, isDigit)
}

// dollar scans PostgreSQL's $1 and $tag$ … $tag$.
func (s *Scanner) dollar() (Kind, int) {
	i := s.pos + 1
	if isDigit(s.at(i)) {
		return Param, s.run(i, isDigit)
	}
	for i < len(s.sql) && s.sql[i] != '$' && isIdent(s.sql[i]) {
		i++
	}
	if s.at(i) != '$' {
		return Op, s.pos + 1
	}
	return String, s.until(i+1, s.sql[s.pos:i+1])
}

// colon scans ":name", "::", ":=" and a single colon. A name does not start with a digit, so the
// slice a[1:2] contains no parameter.
func (s *Scanner) colon() (Kind, int) {
	i := s.pos + 1
	if c := s.at(i); c == ':' || c == '=' {
		return Op, i + 1
	}
	if c := s.at(i); !isNameByte(c) || isDigit(c) {
		return Op, i
	}
	for {
		i = s.run(i, isNameByte)
		if s.at(i) != '.' || !isNameByte(s.at(i+1)) {
			return Named, i
		}
		i++
	}
}

// variable scans @name and @@name; the @ of 'user'@'host' is an Op.
func (s *Scanner) variable() (Kind, int) {
	i := s.pos + 1
	if s.at(i) == '@' {
		i++
	}
	if end := s.run(i, isIdent); end > i {
		return Word, end
	}
	return Op, s.pos + 1
}

func (s *Scanner) startsLineComment() bool {
	c := s.sql[s.pos]
	if c == '#' {
		return s.flavor.has(hashComments)
	}
	if c != '-' || s.at(s.pos+1) != '-' {
		return false
	}
	i := s.pos + 2
	return !s.flavor.has(dashNeedsSpace) || i >= len(s.sql) || s.sql[i] <= ' ' || s.sql[i] == 0x7f
}

func (s *Scanner) lineEnd() int {
	for i := s.pos; i < len(s.sql); i++ {
		if c := s.sql[i]; c == '\n' || c == '\r' && s.flavor.has(returnEndsLine) {
			return i
		}
	}
	return len(s.sql)
}

func (s *Scanner) blockComment() int {
	if s.flavor.has(versionComments) {
		if end := versionStart(s.sql[s.pos:]); end > 0 {
			s.version = true
			return s.pos + end
		}
	}
	if !s.flavor.has(nestedComments) {
		return s.until(s.pos+2, "*/")
	}
	return s.nestedComment()
}

// versionStart returns the length of "/*!", "/*M!" and the version number that
// follows at the start of sql, or 0. A version has five or six digits; fewer
// digits are code.
func versionStart(sql string) int {
	var n int
	switch {
	case strings.HasPrefix(sql, "/*!"):
		n = 3
	case strings.HasPrefix(sql, "/*M!"):
		n = 4
	default:
		return 0
	}
	digits := 0
	for digits < 6 && n+digits < len(sql) && isDigit(sql[n+digits]) {
		digits++
	}
	if digits < 5 {
		return n
	}
	return n + digits
}

// VersionedHint says what to do about a statement with a [Comment] that some servers execute.
const VersionedHint = "code in a comment, /*! … */, is executed by some servers only; write it without the comment, or leave it out"

func (s *Scanner) nestedComment() int {
	depth := 0
	for i := s.pos; i < len(s.sql)-1; i++ {
		switch {
		case s.sql[i] == '/' && s.sql[i+1] == '*':
			depth++
			i++
		case s.sql[i] == '*' && s.sql[i+1] == '/':
			depth--
			i++
		}
		if depth == 0 {
			return i + 1
		}
	}
	s.open = true
	return len(s.sql)
}

// at returns the byte at i, or 0 beyond the end.
func (s *Scanner) at(i int) byte {
	if i < len(s.sql) {
		return s.sql[i]
	}
	return 0
}

// run returns the end of the bytes from i on that are in class.
func (s *Scanner) run(i int, class func(byte) bool) int {
	for i < len(s.sql) && class(s.sql[i]) {
		i++
	}
	return i
}
