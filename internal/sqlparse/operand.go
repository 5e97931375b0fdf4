package sqlparse

import (
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// operand reads one operand with what binds to it more than any operator.
func (p *parser) operand() Expr {
	x := p.bare()
	for p.d.Family == PostgreSQL && p.accept("::") {
		p.castType()
		x = p.around(Cast, x.Bytes().From, x)
	}
	return x
}

func (p *parser) bare() Expr {
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

// unread is the expression of a text that cannot be read.
func (p *parser) unread() Expr {
	p.fail()
	return &Operation{}
}

// symbolOperand reads what begins with an operator: a parenthesis, a sign, .5.
func (p *parser) symbolOperand() Expr {
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

func (p *parser) prefix(from int) Expr {
	p.enter()
	defer p.leave()
	return p.opaque(from, p.operand())
}

// negative reads 5, or another operand, behind a minus.
func (p *parser) negative(from int) Expr {
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
func (p *parser) parens() Expr {
	from := p.tok.start
	p.expect("(")
	if !p.at("(") && p.atQuery() {
		q := p.query()
		p.expect(")")
		return &Subquery{p.since(from), q}
	}
	items, op := p.exprs(), Parens
	if q, ok := items[0].(*Subquery); ok && len(items) == 1 {
		outer := p.nested(q.Span, q.Query)
		p.expect(")")
		return &Subquery{p.since(from), outer}
	}
	p.expect(")")
	if len(items) > 1 {
		op = Tuple
	}
	return p.around(op, from, items...)
}

func (p *parser) literal() *Literal {
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

// written is a literal up to the last token.
func (p *parser) written(from int, kind LiteralKind) *Literal {
	span := p.since(from)
	return p.literals.put(Literal{span, kind, span.Of(p.text)})
}

// number reads a number, whose point the scanner may have left: 7.
func (p *parser) number(t token) *Literal {
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
	}
	return p.written(t.start, kind)
}

// wordOperand reads what begins with a word.
func (p *parser) wordOperand() Expr {
	t := p.tok
	switch {
	case !p.isPlainWord(t):
		return p.variable()
	case t.is() == "":
	case t.is() == "case":
		return p.caseEnd()
	case p.accept("exists"):
		from := p.tok.start
		q := p.parenthesized()
		return p.around(Exists, t.start, &Subquery{p.since(from), q})
	case t.class().is(constant|clock) && p.peek().is() != "(" && !(t.class().is(clock) && p.peek().is() == "."):
		return p.constant()
	case p.mysql && t.is() == "interval":
		return p.interval()
	case p.mysql && p.accept("binary"):
		return p.prefix(t.start)
	case p.d.Family == PostgreSQL && p.accept("array", "["):
		return p.around(Opaque, t.start, p.soup(nil, "]")...)
	}
	return p.named()
}

// variable reads a word that is no name: MySQL's @x and @@global.x, and 1_000
// where that is a number.
func (p *parser) variable() Expr {
	from := p.tok.start
	p.next()
	for p.accept(".") {
		p.anyIdent()
	}
	return p.around(Opaque, from)
}

// constant reads a word that is a value.
func (p *parser) constant() Expr {
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

// callable reports whether the reserved word at tok is a function.
func (p *parser) callable() bool { return p.tok.class().is(callable) && p.peek().is() == "(" }

// named reads a column, a function call, or a literal with a word before it.
func (p *parser) named() Expr {
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
	return p.columns.put(Column{name})
}

// prefixedText reads DATE '…', _utf8'…', x'…', or returns nil where the text
// behind the word is an alias.
func (p *parser) prefixedText(t token) Expr {
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

// prefixes reports whether a word belongs to the text behind it.
func (p *parser) prefixes(t, text token) bool {
	c := p.text[t.start] | 0x20
	switch {
	case p.d.Family == PostgreSQL:
		return true
	case t.end == text.start && t.end-t.start == 1:
		return c == 'x' || p.mysql && (c == 'b' || c == 'n')
	}
	return p.mysql && (p.text[t.start] == '_' || t.is() == "date" || t.is() == "time" || t.is() == "timestamp")
}

// interval reads MySQL's INTERVAL n DAY, or a column of that name.
func (p *parser) interval() Expr {
	t, next := p.tok, p.peek()
	if next.kind == 0 || next.kind == sqltext.Op && next.is() != "(" && next.is() != "-" || next.class().is(reserved|infix|bound) {
		return p.named()
	}
	p.next()
	x := p.expr()
	if !p.tok.class().is(unit) {
		p.fail() // the function INTERVAL(a, b, …)
	}
	p.next()
	return p.opaque(t.start, x)
}
