// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// token is a token of code; its kind is 0 at the end of the text.
type token struct {
	kind       sqltext.Kind
	id         wordID
	start, end int
}

// is returns the word or the operator, in lower case, if the grammar knows it, otherwise "".
func (t token) is() string { return words[t.id].text }

func (t token) class() class { return words[t.id].class }

// maxDepth limits the nesting of expressions and queries.
const maxDepth = 200

// maxQuoted is the largest number of bytes of the text that Why quotes.
const maxQuoted = 40

// cursor is a position in a text, at the token tok. After a failure it is at the end of the text,
// where no token matches a rule, so that every rule returns.
type cursor struct {
	d       Dialect
	mysql   bool
	text    string
	scanner sqltext.Scanner
	tok     token
	last    token // the token before tok
	depth   int
	failed  bool
	out     *Statement
}

func (p *cursor) next() {
	p.last = p.tok
	p.tok = p.lex(&p.scanner)
}

// peek returns the token after tok.
func (p *cursor) peek() token {
	ahead := p.scanner
	return p.lex(&ahead)
}

func (p *cursor) lex(s *sqltext.Scanner) token {
	for {
		t, ok := s.Next()
		switch {
		case !ok:
			return token{start: len(p.text), end: len(p.text)}
		case t.Kind == sqltext.Space:
		case t.Kind == sqltext.Comment:
			p.comment(p.text[t.Start:t.End])
		default:
			return p.classify(s, t)
		}
	}
}

func (p *cursor) classify(s *sqltext.Scanner, t sqltext.Token) token {
	tok := token{kind: t.Kind, start: t.Start, end: t.End}
	switch {
	case t.Kind == sqltext.Word:
	case t.Kind == sqltext.Op, t.Kind == sqltext.Param && p.d.Family == PostgreSQL && p.text[t.Start] == '?': // an operator of jsonb
		tok.kind = sqltext.Op
		tok.end = t.Start + p.operatorLength(p.text[t.Start:])
		s.Skip(tok.end - t.End)
	default:
		return tok
	}
	if p.d.Family == SQLite && p.text[tok.start] == '#' {
		p.failAt(tok) // no driver supports the parameter #name
	}
	tok.id = idOf(p.text[tok.start:tok.end])
	return tok
}

// comment records the effect of a comment on a statement.
func (p *cursor) comment(text string) {
	if !p.mysql {
		return
	}
	switch {
	case strings.HasPrefix(text, "/*!"), strings.HasPrefix(text, "/*M!"):
		p.out.Executable = true
	case strings.HasPrefix(text, "/*+"):
		upper := strings.ToUpper(text)
		p.out.Limiting = p.out.Limiting || strings.Contains(upper, "SET_VAR") || strings.Contains(upper, "MAX_EXECUTION_TIME")
	}
}

// fail makes the statement Unknown because of tok.
func (p *cursor) fail() { p.failAt(p.tok) }

// failAt makes the statement Unknown because of a token.
func (p *cursor) failAt(t token) {
	if p.failed {
		return
	}
	p.failed = true
	p.out.Why = "at the end"
	if t.kind != 0 {
		p.out.Why = "near " + strconv.Quote(p.text[t.start:min(t.end, t.start+maxQuoted)])
	}
	p.scanner.Skip(len(p.text))
	p.tok = token{start: len(p.text), end: len(p.text)}
}

// enter counts a level of nesting, which leave ends. If it is too deep, it moves to the end of the
// text, so that nothing deeper is read.
func (p *cursor) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail()
	}
}

func (p *cursor) leave() { p.depth-- }

// since returns the span from an offset to the end of the last token.
func (p *cursor) since(from int) Span { return Span{from, max(from, p.last.end)} }

func (p *cursor) textOf(t token) string { return p.text[t.start:t.end] }

// at reports whether tok is a known word or an operator.
func (p *cursor) at(is string) bool { return p.tok.is() == is }

// atBoth reports whether tok and the next token are known words or operators.
func (p *cursor) atBoth(first, second string) bool {
	return p.tok.is() == first && p.peek().is() == second
}

// accept moves past known words or operators if all of them follow.
func (p *cursor) accept(all ...string) bool {
	if p.tok.is() != all[0] {
		return false
	}
	last, tok, ahead := p.last, p.tok, p.scanner
	for _, is := range all {
		if tok.is() != is {
			return false
		}
		last, tok = tok, p.lex(&ahead)
	}
	p.last, p.tok, p.scanner = last, tok, ahead
	return true
}

// expect moves past words or operators that must follow.
func (p *cursor) expect(all ...string) {
	for _, is := range all {
		if !p.accept(is) {
			p.fail()
		}
	}
}

// list reads a list that is separated by commas.
func list[T any](p *cursor, read func() T) []T {
	all := []T{read()}
	for p.accept(",") {
		all = append(all, read())
	}
	return all
}

func parens[T any](p *cursor, read func() T) T {
	p.expect("(")
	x := read()
	p.expect(")")
	return x
}

// skipParens moves past a parenthesis. It accepts neither parameters nor parts of a query in it.
func (p *cursor) skipParens() {
	p.expect("(")
	p.skipUntilParen()
}

// skipUntilParen is [cursor.skipParens] after the opening parenthesis.
func (p *cursor) skipUntilParen() {
	for depth := 1; depth > 0 && !p.failed; p.next() {
		switch {
		case p.tok.kind == 0, p.tok.kind == sqltext.Param, p.tok.kind == sqltext.Named, p.atParam(), p.at("select"), p.at("from"), p.at(";"):
			p.fail()
		case p.at("("):
			depth++
		case p.at(")"):
			depth--
		}
	}
}

// atParam reports whether the token is a parameter.
func (p *cursor) atParam() bool {
	switch p.tok.kind {
	case sqltext.Param:
		return true
	case sqltext.Named:
		return p.d.Family != PostgreSQL
	case sqltext.Word:
		c := p.text[p.tok.start]
		return p.d.Family == SQLite && (c == '@' || c == '$')
	}
	return false
}

// isPlainWord reports whether a word can be a name. In some dialects @x is a variable, 1_000 a
// number, and $x a parameter.
func (p *cursor) isPlainWord(t token) bool {
	c := p.text[t.start]
	return c != '@' && (p.mysql || c != '$' && (c < '0' || c > '9'))
}

// atQuery reports whether a query begins at tok, with or without parentheses. MySQL's VALUES begins
// rows if ROW follows, otherwise it is a function.
func (p *cursor) atQuery() bool {
	t, ahead := p.tok, p.scanner
	for t.is() == "(" {
		t = p.lex(&ahead)
	}
	switch t.is() {
	case "select", "with":
		return true
	case "values":
		return !p.mysql || p.lex(&ahead).is() == "row"
	case "table":
		return p.d.Family != SQLite
	}
	return false
}

// atRows reports whether a query begins at tok, in a place where VALUES is no function.
func (p *cursor) atRows() bool { return p.at("values") || !p.at("(") && p.atQuery() }
