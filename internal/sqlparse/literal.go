// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// valueReader reads single values: literals and parameters.
type valueReader struct {
	nameReader
	numbers numbers
}

func (p *valueReader) literal() *Literal {
	t := p.tok
	p.next()
	if t.kind == sqltext.Number {
		return p.number(t)
	}
	l := p.written(t.start, Other)
	if strings.IndexByte(l.Value, '\\') < 0 && (l.Value[0] == '\'' || l.Value[0] == '"') {
		l.Kind, l.Value = Text, unquoted(l.Value)
	}
	return l
}

// written returns a literal up to the last token.
func (p *valueReader) written(from int, kind LiteralKind) *Literal {
	span := p.since(from)
	return &Literal{span, kind, span.Of(p.text)}
}

// number reads a number, whose point the scanner may not have read: 7.
func (p *valueReader) number(t token) *Literal {
	text, kind := p.textOf(t), Integer
	switch {
	case len(text) > 1 && text[0] == '0' && strings.IndexByte("xXbBoO", text[1]) >= 0:
		kind = Other
	case strings.ContainsAny(text, ".eE"):
		kind = Decimal
	case p.at(".") && p.tok.start == t.end:
		kind = Decimal
		p.next()
		if p.tok.start == p.last.end && (p.tok.kind == sqltext.Word || p.tok.kind == sqltext.Number) {
			p.fail() // 1.e5
		}
	case p.d.Family == SQLite && !isInt64(text):
		kind = Decimal // SQLite reads it as a float
	}
	return p.written(t.start, kind)
}

func isInt64(digits string) bool {
	_, err := strconv.ParseInt(digits, 10, 64)
	return err == nil
}

// constant reads a word that is a value.
func (p *valueReader) constant() Expr {
	t, kind := p.tok, Other
	p.next()
	switch {
	case t.class().is(clock):
		span := p.since(t.start)
		return &Call{Span: span, Name: Name{span, []Ident{{span, p.textOf(t)}}}}
	case t.is() == "null":
		kind = Null
	case t.is() == "default":
		kind = Default
	}
	return p.written(t.start, kind)
}

// prefixedText reads DATE '…', _utf8'…', x'…', or returns nil if the text after the word is an
// alias.
func (p *valueReader) prefixedText(t token) Expr {
	next := p.peek()
	if next.kind != sqltext.String || !p.prefixes(t, next) {
		return nil
	}
	p.next()
	p.next()
	if t.is() == "interval" { // PostgreSQL's INTERVAL '…' DAY TO SECOND
		for more := true; more && p.tok.class().is(unit); more = p.accept("to") {
			p.next()
		}
	}
	return p.written(t.start, Other)
}

// prefixes reports whether a word belongs to the following text.
func (p *valueReader) prefixes(t, text token) bool {
	c := p.text[t.start] | 0x20
	switch {
	case p.d.Family == PostgreSQL:
		return true
	case t.end == text.start && t.end-t.start == 1:
		return c == 'x' || p.mysql && (c == 'b' || c == 'n')
	}
	return p.mysql && (p.text[t.start] == '_' || t.is() == "date" || t.is() == "time" || t.is() == "timestamp")
}

// numbers counts the parameters of a text.
type numbers struct {
	kind  paramKind
	marks int            // the number of ? so far
	named map[string]int // the numbers of the names
}

// paramKind is the form of parameters. A text that mixes forms is Unknown, because drivers number
// them differently.
type paramKind uint8

const (
	mark     paramKind = iota + 1 // ?
	numbered                      // $2, ?2
	name                          // :name, @name, $name
)

func (p *valueReader) param() *Param {
	t := p.tok
	p.next()
	kind, number := name, ""
	switch {
	case t.kind != sqltext.Param:
	case t.end-t.start > 1:
		kind, number = numbered, p.text[t.start+1:t.end]
	case p.d.Family == SQLite && p.tok.kind == sqltext.Number && p.tok.start == t.end:
		kind, number = numbered, p.textOf(p.tok)
		p.next()
	default:
		kind = mark
	}
	if p.numbers.kind != 0 && p.numbers.kind != kind {
		p.failAt(t)
	}
	p.numbers.kind = kind
	param := &Param{Span: p.since(t.start)}
	switch kind {
	case mark:
		param.Index = p.numbers.marks
		p.numbers.marks++
	case numbered:
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil || n == 0 {
			p.failAt(t)
		}
		param.Index = int(n) - 1
	case name:
		param.Name = p.textOf(t)
		param.Index = p.numbers.of(param.Name)
	}
	p.out.Params = append(p.out.Params, param)
	p.out.Args = max(p.out.Args, param.Index+1)
	return param
}

// of returns the number of a name.
func (s *numbers) of(name string) int {
	n, known := s.named[name]
	if !known {
		if s.named == nil {
			s.named = map[string]int{}
		}
		n = len(s.named)
		s.named[name] = n
	}
	return n
}
