package sqlparse

import (
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// operand reads one operand with what binds to it more than any operator.
func (p *parser) operand() Expr {
	x := p.bare()
	for p.atSymbol(cast) && p.d.Family == PostgreSQL {
		p.next()
		c := &Cast{X: x, Type: p.castType()}
		c.Span = p.since(x.Bytes().From)
		x = c
	}
	return x
}

func (p *parser) bare() Expr {
	switch p.tok.kind {
	case sqltext.Op:
		return p.symbolOperand()
	case sqltext.Word:
		return p.wordOperand()
	case sqltext.QuotedIdent:
		return p.named()
	}
	return p.atom()
}

// symbolOperand reads what begins with an operator: a parenthesis, a sign, .5.
func (p *parser) symbolOperand() Expr {
	t := p.tok
	switch t.symbol {
	case leftParen:
		return p.parens()
	case minus:
		return p.negative()
	case dot:
		p.next()
		if p.tok.kind != sqltext.Number || p.tok.start != t.end {
			break
		}
		p.next()
		return p.literals.put(Literal{p.since(t.start), Decimal, p.text[t.start:p.last.end]})
	case plus, otherOperator:
		p.next()
		return p.prefix(t.start)
	}
	p.fail()
	return &Opaque{}
}

// prefix reads the operand behind a prefix.
func (p *parser) prefix(from int) Expr {
	if !p.enter() {
		return &Opaque{}
	}
	defer p.leave()
	x := p.operand()
	return &Opaque{p.since(from), flatten(nil, x)}
}

// negative reads -5, or another operand behind a minus.
func (p *parser) negative() Expr {
	from := p.tok.start
	p.next()
	if p.tok.kind != sqltext.Number {
		return p.prefix(from)
	}
	l, ok := p.literal().(*Literal)
	if !ok || l.Kind != Integer && l.Kind != Decimal {
		return &Opaque{p.since(from), nil}
	}
	l.From = from
	l.Value = "-" + l.Value
	return l
}

// parens reads (x), (a, b) or (query).
func (p *parser) parens() Expr {
	from := p.tok.start
	if p.atNestedQuery() {
		q := p.parenthesized()
		return &Subquery{p.since(from), q}
	}
	p.next()
	items := p.exprs()
	p.expectSymbol(rightParen)
	if len(items) > 1 {
		return &Tuple{p.since(from), items}
	}
	return &Parens{p.since(from), items[0]}
}

// literal reads a number or a text.
func (p *parser) literal() Expr {
	t := p.tok
	p.next()
	if t.kind == sqltext.Number {
		return p.number(t)
	}
	text := p.textOf(t)
	if strings.IndexByte(text, '\\') >= 0 || text[0] != '\'' && text[0] != '"' {
		return p.literals.put(Literal{Span{t.start, t.end}, Typed, text})
	}
	return p.literals.put(Literal{Span{t.start, t.end}, Text, unquoted(text)})
}

// number reads a number, whose point the scanner may have left: 7.
func (p *parser) number(t token) Expr {
	text := p.textOf(t)
	kind := Integer
	switch {
	case len(text) > 1 && text[0] == '0' && (text[1]|0x20 == 'x' || text[1]|0x20 == 'b' || text[1]|0x20 == 'o'):
		kind = Binary
	case strings.ContainsAny(text, ".eE"):
		kind = Decimal
	case p.atSymbol(dot) && p.tok.start == t.end:
		kind = Decimal
		p.next()
		if p.tok.start == p.last.end && (p.tok.kind == sqltext.Word || p.tok.kind == sqltext.Number) {
			p.fail() // 1.e5
		}
	}
	span := p.since(t.start)
	return p.literals.put(Literal{span, kind, span.Of(p.text)})
}

// wordOperand reads what begins with a word.
func (p *parser) wordOperand() Expr {
	t := p.tok
	if p.atParam() {
		return p.param()
	}
	switch t.word {
	case kwCase:
		return p.caseEnd()
	case kwExists:
		p.next()
		q := p.parenthesized()
		return &Exists{p.since(t.start), q}
	case kwTrue, kwFalse, kwNull, kwDefault, kwCurrent:
		if c := p.constant(); c != nil {
			return c
		}
	case kwInterval:
		return p.interval()
	case kwBinary:
		if p.mysql {
			p.next()
			return p.prefix(t.start)
		}
	case kwArray:
		if p.d.Family == PostgreSQL && p.peek().symbol == leftBracket {
			p.next()
			p.next()
			return &Opaque{Operands: p.soup(nil, "]"), Span: p.since(t.start)}
		}
	}
	if !p.isPlainWord(t) {
		return p.variable()
	}
	return p.named()
}

// variable reads a word that is no name: MySQL's @x and @@global.x, and 1_000
// where that is a number.
func (p *parser) variable() Expr {
	from := p.tok.start
	p.next()
	for p.acceptSymbol(dot) {
		p.anyIdent()
	}
	return &Opaque{Span: p.since(from)}
}

// constant reads a word that is a value, or returns nil where it is a function.
func (p *parser) constant() Expr {
	t := p.tok
	call := p.peek().symbol == leftParen
	if t.word == kwCurrent {
		if call || p.peek().symbol == dot {
			return nil
		}
		p.next()
		id := p.idents.take(1)
		id[0] = Ident{Span: Span{t.start, t.end}, Name: p.textOf(t)}
		return &Call{Span: id[0].Span, Name: Name{id[0].Span, id}}
	}
	if call {
		return nil
	}
	p.next()
	l := Literal{Span: Span{t.start, t.end}, Value: p.textOf(t), Kind: Bool}
	switch t.word {
	case kwNull:
		l.Kind = Null
	case kwDefault:
		l.Kind = Default
	}
	return p.literals.put(l)
}

// named reads a column, a function call, or a literal with a word before it.
func (p *parser) named() Expr {
	t := p.tok
	if t.word.is(reserved) && (!t.word.is(callable) || p.peek().symbol != leftParen) {
		p.fail()
		return &Opaque{}
	}
	if t.kind == sqltext.Word {
		if l := p.prefixedText(t); l != nil {
			return l
		}
	}
	if t.word.is(reserved) {
		p.tok.word = 0
	}
	name, all := p.nameOrStar()
	switch {
	case all:
		p.fail()
	case p.atSymbol(leftParen):
		return p.function(t.word, name)
	}
	return p.column(name)
}

func (p *parser) column(name Name) Expr {
	c := Column{Span: name.Span, Name: name}
	first := name.Parts[0]
	c.Text = p.d.Family == SQLite && len(name.Parts) == 1 && first.Quoted && p.text[first.From] == '"'
	return p.columns.put(c)
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
	if p.d.Family == PostgreSQL && p.isText(t, "INTERVAL") {
		p.intervalFields()
	}
	kind := Typed
	if c := p.text[t.start] | 0x20; t.end-t.start == 1 && (c == 'x' || c == 'b') {
		kind = Binary
	}
	span := p.since(t.start)
	return p.literals.put(Literal{span, kind, span.Of(p.text)})
}

// intervalFields reads DAY TO SECOND behind PostgreSQL's INTERVAL '…'.
func (p *parser) intervalFields() {
	for p.tok.kind == sqltext.Word && isUnit(p.textOf(p.tok)) {
		p.next()
		if !p.acceptText("TO") {
			return
		}
	}
}

// prefixes reports whether a word belongs to the text behind it.
func (p *parser) prefixes(t, text token) bool {
	if p.d.Family == PostgreSQL {
		return true
	}
	if t.end == text.start && t.end-t.start == 1 {
		c := p.text[t.start] | 0x20
		return c == 'x' || p.mysql && (c == 'b' || c == 'n')
	}
	if !p.mysql {
		return false
	}
	return p.text[t.start] == '_' || p.isText(t, "DATE") || p.isText(t, "TIME") || p.isText(t, "TIMESTAMP")
}

// interval reads INTERVAL '1 day', MySQL's INTERVAL n DAY, a function or a column
// of that name.
func (p *parser) interval() Expr {
	t := p.tok
	if !p.mysql {
		return p.named()
	}
	next := p.peek()
	if next.kind == sqltext.Op && next.symbol != leftParen && next.symbol != minus || next.kind == 0 || next.word.is(reserved|infix|bound) {
		return p.named()
	}
	p.next()
	x := p.expr()
	if !isUnit(p.textOf(p.tok)) {
		p.fail() // the function INTERVAL(a, b, …)
	}
	p.next()
	return &Opaque{p.since(t.start), flatten(nil, x)}
}

func isUnit(word string) bool {
	for unit := range strings.SplitSeq(strings.ToUpper(word), "_") {
		switch unit {
		case "MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR":
		default:
			return false
		}
	}
	return true
}
