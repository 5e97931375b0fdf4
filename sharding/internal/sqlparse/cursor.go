package sqlparse

import (
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// token is a token of code; its kind is 0 at the end of the text.
type token struct {
	kind       sqltext.Kind
	word       keyword // of a Word
	symbol     symbol  // of an Op
	start, end int
}

// maxDepth is how deep expressions and queries may stand in each other.
const maxDepth = 200

// maxQuoted is how many bytes of the text Why quotes.
const maxQuoted = 40

// parser reads one text. After a failure it stands at the end of the text, where
// no token is what a rule asks for, so that every rule returns.
type parser struct {
	arena

	d       Dialect
	mysql   bool
	text    string
	scanner sqltext.Scanner
	tok     token
	last    token // the token before tok
	depth   int
	failed  bool
	names   nameSet
	params  params
	// assigned reports a := in the expression that is being read: it takes in all
	// that stands to its right.
	assigned bool
	out      *Statement
}

// next moves to the next token.
func (p *parser) next() {
	p.last = p.tok
	p.tok = p.lex(&p.scanner)
}

// peek returns the token behind tok.
func (p *parser) peek() token {
	ahead := p.scanner
	return p.lex(&ahead)
}

func (p *parser) lex(s *sqltext.Scanner) token {
	for {
		t, ok := s.Next()
		switch {
		case !ok:
			return token{start: len(p.text), end: len(p.text)}
		case t.Kind == sqltext.Space:
			continue
		case t.Kind == sqltext.Comment:
			p.comment(p.text[t.Start:t.End])
			continue
		}
		return p.classify(s, t)
	}
}

func (p *parser) classify(s *sqltext.Scanner, t sqltext.Token) token {
	tok := token{kind: t.Kind, start: t.Start, end: t.End}
	switch t.Kind {
	case sqltext.Word:
		tok.word = keywordOf(p.text[t.Start:t.End])
	case sqltext.Param:
		if p.d.Family != PostgreSQL || p.text[t.Start] != '?' {
			break
		}
		tok.kind = sqltext.Op // of jsonb
		p.operator(s, &tok)
	case sqltext.Op:
		p.operator(s, &tok)
	}
	return tok
}

func (p *parser) operator(s *sqltext.Scanner, tok *token) {
	if n := p.operatorLength(p.text[tok.start:]); n > tok.end-tok.start {
		s.Skip(n - (tok.end - tok.start))
		tok.end = tok.start + n
	}
	tok.symbol = symbolOf(p.text[tok.start:tok.end])
}

// comment notes what a comment does to a statement.
func (p *parser) comment(text string) {
	if !p.mysql {
		return
	}
	switch {
	case strings.HasPrefix(text, "/*!"), strings.HasPrefix(text, "/*M!"):
		p.out.Executable = true
	case strings.HasPrefix(text, "/*+"):
		upper := strings.ToUpper(text)
		if strings.Contains(upper, "SET_VAR") || strings.Contains(upper, "MAX_EXECUTION_TIME") {
			p.out.Limiting = true
		}
	}
}

// fail makes the statement Unknown because of tok.
func (p *parser) fail() { p.failAt(p.tok) }

// failAt makes the statement Unknown because of a token.
func (p *parser) failAt(t token) {
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

// enter counts a level of nesting and reports whether it is too deep.
func (p *parser) enter() bool {
	if p.depth++; p.depth > maxDepth {
		p.fail()
	}
	return !p.failed
}

func (p *parser) leave() { p.depth-- }

// since returns the span from a place to the end of the last token.
func (p *parser) since(from int) Span { return Span{from, max(from, p.last.end)} }

func (p *parser) textOf(t token) string { return p.text[t.start:t.end] }

// isText reports whether the token is the word, which need not be a keyword.
func (p *parser) isText(t token, word string) bool {
	return t.kind == sqltext.Word && len(word) == t.end-t.start && strings.EqualFold(p.textOf(t), word)
}

func (p *parser) at(k keyword) bool { return p.tok.word == k }

func (p *parser) atSymbol(s symbol) bool { return p.tok.symbol == s }

// accept moves behind a keyword and reports whether it was there.
func (p *parser) accept(k keyword) bool {
	if p.tok.word != k {
		return false
	}
	p.next()
	return true
}

func (p *parser) acceptText(word string) bool {
	if !p.isText(p.tok, word) {
		return false
	}
	p.next()
	return true
}

func (p *parser) acceptSymbol(s symbol) bool {
	if p.tok.symbol != s {
		return false
	}
	p.next()
	return true
}

// acceptTexts moves behind several words if all of them are there, at most two.
func (p *parser) acceptTexts(first, second string) bool {
	if !p.isText(p.tok, first) || !p.isText(p.peek(), second) {
		return false
	}
	p.next()
	p.next()
	return true
}

func (p *parser) expect(k keyword) {
	if !p.accept(k) {
		p.fail()
	}
}

func (p *parser) expectText(word string) {
	if !p.acceptText(word) {
		p.fail()
	}
}

func (p *parser) expectSymbol(s symbol) {
	if !p.acceptSymbol(s) {
		p.fail()
	}
}

// skipParens moves behind the parenthesis that closes the one at tok, over what
// has neither a parameter nor a query in it.
func (p *parser) skipParens() {
	depth := 0
	for {
		switch {
		case p.tok.kind == 0, p.tok.kind == sqltext.Param, p.tok.kind == sqltext.Named, p.at(kwSelect), p.atSymbol(semicolon):
			p.fail()
			return
		case p.atSymbol(leftParen):
			depth++
		case p.atSymbol(rightParen):
			depth--
		}
		p.next()
		if depth == 0 {
			return
		}
	}
}
