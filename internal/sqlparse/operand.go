// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"github.com/shardid/shardid/internal/sqltext"
)

// operandReader reads the operands of operators.
type operandReader struct {
	valueReader
	inner *queryReader // the same parser, for queries in parentheses
	texts []*Operation // casts of parameters to text, which keep them
}

// operand reads one operand with the syntax that binds to it more tightly than any operator.
func (p *operandReader) operand() Expr {
	x := p.bare()
	if p.d.Family == PostgreSQL && As(x, Parens) != nil {
		x = field(p, x)
	}
	for p.d.Family == PostgreSQL && p.accept("::") {
		from := p.tok.start
		p.castType()
		cast := p.around(Cast, x.Bytes().From, x)
		takeKeeping(p, cast, p.since(from).Of(p.text))
		x = cast
	}
	return x
}

// field reads the fields of a composite value in parentheses, as in (x).a.b. (x).* is no single value, and is not read.
func field(p *operandReader, x Expr) Expr {
	for p.at(".") && p.peek().kind != sqltext.Op {
		p.next()
		p.name()
		x = p.around(Opaque, x.Bytes().From, x)
	}
	return x
}

func (p *operandReader) bare() Expr {
	switch {
	case p.atParam():
		return p.param()
	case p.tok.kind == sqltext.Op:
		return p.symbolOperand()
	case p.tok.kind == sqltext.Word:
		return p.wordOperand()
	case p.tok.kind == sqltext.QuotedIdent:
		return p.named()
	case p.tok.kind == sqltext.String, p.tok.kind == sqltext.Number:
		return p.literal()
	}
	return p.unread()
}

// unread returns the expression of a text that cannot be parsed.
func (p *operandReader) unread() Expr {
	p.fail()
	return &Operation{}
}

// symbolOperand reads an operand that begins with an operator: a parenthesis, a sign, .5.
func (p *operandReader) symbolOperand() Expr {
	t := p.tok
	switch t.is() {
	case "(":
		return p.parens()
	case "-":
		p.next()
		return p.negative(t.start)
	case ".":
		p.next()
		if p.tok.kind != sqltext.Number || p.tok.start != t.end {
			return p.unread()
		}
		p.next()
		return p.written(t.start, Decimal)
	}
	if t.class().is(noPrefix) {
		return p.unread()
	}
	p.next()
	return p.prefix(t.start)
}

func (p *operandReader) prefix(from int) Expr {
	p.enter()
	defer p.leave()
	return p.opaque(from, p.operand())
}

// negative reads 5, or another operand, after a minus.
func (p *operandReader) negative(from int) Expr {
	if p.tok.kind != sqltext.Number {
		return p.prefix(from)
	}
	l := p.literal()
	if l.Kind != Integer && l.Kind != Decimal {
		return p.around(Opaque, from)
	}
	l.From, l.Value = from, "-"+l.Value
	return l
}

// parens reads (x), (a, b) or (query).
func (p *operandReader) parens() Expr {
	from := p.tok.start
	p.expect("(")
	if !p.at("(") && p.atQuery() {
		q := p.inner.query()
		p.expect(")")
		return &Subquery{p.since(from), q}
	}
	items, op := p.inner.exprs(), Parens
	if q, ok := items[0].(*Subquery); ok && len(items) == 1 {
		outer := p.inner.nested(q.Span, q.Query)
		p.expect(")")
		return &Subquery{p.since(from), outer}
	}
	p.expect(")")
	if len(items) > 1 {
		op = Tuple
	}
	return p.around(op, from, items...)
}

// wordOperand reads an operand that begins with a word.
func (p *operandReader) wordOperand() Expr {
	t := p.tok
	switch {
	case !p.isPlainWord(t):
		return p.variable()
	case t.is() == "":
	case t.is() == "case":
		return p.caseEnd()
	case p.accept("exists"):
		from := p.tok.start
		q := p.inner.parenthesized()
		return p.around(Exists, t.start, &Subquery{p.since(from), q})
	case t.class().is(constant|clock) && p.peek().is() != "(" && !(t.class().is(clock) && p.peek().is() == "."):
		return p.constant()
	case p.mysql && t.is() == "interval":
		return p.interval()
	case p.mysql && p.accept("binary"):
		return p.prefix(t.start)
	case p.d.Family == PostgreSQL && p.accept("array", "["):
		return p.around(Opaque, t.start, p.operandsUntil(nil, "]")...)
	}
	return p.named()
}

// variable reads a word that is no name: MySQL's @x and @@global.x, and 1_000 in dialects where
// that is a number.
func (p *operandReader) variable() Expr {
	from := p.tok.start
	p.next()
	for p.accept(".") {
		p.anyIdent()
	}
	return p.around(Opaque, from)
}

// callable reports whether the reserved word at tok is a function.
func (p *operandReader) callable() bool { return p.tok.class().is(callable) && p.peek().is() == "(" }

// named reads a column, a function call, or a literal with a word before it.
func (p *operandReader) named() Expr {
	t := p.tok
	if t.class().is(reserved) {
		if !p.callable() {
			return p.unread()
		}
		p.tok.id = 0
	}
	if t.kind == sqltext.Word {
		if l := p.prefixedText(t); l != nil {
			return l
		}
	}
	name, all := p.nameOrStar()
	switch {
	case all:
		p.fail()
	case p.at("("):
		return p.function(t.is(), name)
	}
	return &Column{name}
}

// interval reads MySQL's INTERVAL n DAY, or a column of that name.
func (p *operandReader) interval() Expr {
	t, next := p.tok, p.peek()
	if next.kind == 0 || next.kind == sqltext.Op && next.is() != "(" && next.is() != "-" || next.class().is(reserved|infix|bound) {
		return p.named()
	}
	p.next()
	x := p.inner.expr()
	if !p.tok.class().is(unit) {
		p.fail() // the function INTERVAL(a, b, …)
	}
	p.next()
	return p.opaque(t.start, x)
}
