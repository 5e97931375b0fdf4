package sqlparse

import "github.com/shardid/shardid/internal/sqltext"

// goesOn reports whether the expression that was read goes on at tok with an
// operator that stands between logic and + - * / %, or with another text.
func (p *parser) goesOn() bool {
	switch p.tok.kind {
	case sqltext.Op:
		return p.symbolGoesOn()
	case sqltext.Word:
		return p.tok.word.is(infix) && !p.atNotIndexed()
	case sqltext.String:
		return p.last.kind == sqltext.String
	}
	return false
}

func (p *parser) symbolGoesOn() bool {
	switch p.tok.symbol {
	case leftParen, rightParen, comma, semicolon, dot:
		return false
	}
	return p.logicAt() == 0
}

// atNotIndexed reports SQLite's hint, which may stand behind ON of a join.
func (p *parser) atNotIndexed() bool {
	return p.at(kwNot) && p.d.Family == SQLite && p.peek().word == kwIndexed
}

// operators reads the rest of an expression whose first part was read, up to
// logic or its end, and keeps the operands alone. It waits for so many ANDs of
// BETWEEN.
func (p *parser) operators(x Expr, pending int) Expr {
	from := x.Bytes().From
	operands := flatten(nil, x)
	for !p.failed {
		if pending > 0 && p.at(kwAnd) {
			pending--
			p.next()
			operands = p.prefixed(operands)
			continue
		}
		if !p.goesOn() {
			break
		}
		var more bool
		if operands, more = p.infix(operands, &pending); more {
			operands = p.prefixed(operands)
		}
	}
	if pending > 0 {
		p.fail()
	}
	return &Opaque{p.since(from), operands}
}

// infix reads one operator, and its operand where that is no expression. It
// reports whether an operand follows.
func (p *parser) infix(operands []Expr, pending *int) (list []Expr, more bool) {
	t := p.tok
	p.next()
	switch t.word {
	case kwIsNull, kwNotNull:
		return operands, false
	case kwNot:
		p.accept(kwNull)
		return operands, false
	case kwBetween:
		*pending++
	case kwIs:
		return p.infixIs(operands)
	case kwIn:
		return p.infixIn(operands)
	case kwCollate:
		p.collation()
		return operands, false
	case kwAt:
		if p.acceptText("LOCAL") {
			return operands, false
		}
		p.expectText("TIME")
		p.expectText("ZONE")
	case kwSimilar:
		p.expectText("TO")
	case kwSounds:
		p.expect(kwLike)
	case kwMember:
		p.acceptText("OF")
	case kwOperator:
		p.skipParens()
	}
	switch {
	case t.symbol == leftBracket:
		return p.soup(operands, "]"), false
	case t.symbol == cast && p.d.Family == PostgreSQL:
		p.castType()
		return operands, false
	case t.symbol == cast:
		p.failAt(t) // $a::b is one name for SQLite
	case t.symbol == assign:
		p.assigned = true
	case t.kind == sqltext.String:
		return operands, false // a text behind a text
	}
	return operands, true
}

func (p *parser) infixIs(operands []Expr) (list []Expr, more bool) {
	p.accept(kwNot)
	if p.accept(kwDistinct) {
		p.distinctFrom()
		return operands, true
	}
	if p.accept(kwNull) || p.accept(kwTrue) || p.accept(kwFalse) || p.acceptText("UNKNOWN") {
		return operands, false
	}
	return operands, true
}

func (p *parser) infixIn(operands []Expr) (list []Expr, more bool) {
	if !p.atSymbol(leftParen) && p.d.Family != SQLite {
		return operands, true
	}
	in := &In{}
	if p.atSymbol(leftParen) {
		p.inParens(in)
	} else {
		p.inTable(in)
	}
	return appendIn(operands, in), false
}

func (p *parser) collation() {
	if p.tok.kind == sqltext.String {
		p.next()
		return
	}
	if p.accept(kwBinary) {
		return
	}
	p.name()
}

// prefixed adds an operand with what stands before it: NOT, -, ~, BINARY.
func (p *parser) prefixed(operands []Expr) []Expr {
	for p.accept(kwNot) {
	}
	return flatten(operands, p.operand())
}

// flatten adds the operands of an expression to a list: what binds other
// operands than it seems to must not look as if it was read.
func flatten(list []Expr, x Expr) []Expr {
	switch x := x.(type) {
	case *Operation:
		return flattenAll(list, x.Operands)
	case *Opaque:
		return flattenAll(list, x.Operands)
	case *Compare:
		return flatten(flatten(list, x.Left), x.Right)
	case *Between:
		return flatten(flatten(flatten(list, x.X), x.Low), x.High)
	case *IsNull:
		return flatten(list, x.X)
	case *Not:
		return flatten(list, x.X)
	case *Like:
		list = flatten(flatten(list, x.X), x.Pattern)
		if x.Escape != nil {
			list = flatten(list, x.Escape)
		}
		return list
	case *In:
		return appendIn(flatten(list, x.X), x)
	}
	return append(list, x)
}

func flattenAll(list, operands []Expr) []Expr {
	for _, x := range operands {
		list = flatten(list, x)
	}
	return list
}

// appendIn adds what stands on the right side of an IN.
func appendIn(list []Expr, in *In) []Expr {
	if in.Query != nil {
		return append(list, &Subquery{in.Inner, in.Query})
	}
	return append(list, in.List...)
}

// parenSoup reads a parenthesis of which only the operands matter.
func (p *parser) parenSoup(from int) Expr {
	p.expectSymbol(leftParen)
	operands := p.soup(nil, ")")
	return &Opaque{p.since(from), operands}
}

// soup reads up to a closing token and behind it, and adds the operands that it
// meets, whatever stands between them.
func (p *parser) soup(operands []Expr, closing string) []Expr {
	if !p.enter() {
		return operands
	}
	defer p.leave()
	for {
		switch p.tok.kind {
		case 0:
			p.fail()
			return operands
		case sqltext.Op:
			t := p.tok
			if p.textOf(t) == closing {
				p.next()
				return operands
			}
			operands = p.soupSymbol(operands, t)
		case sqltext.Word:
			operands = p.soupWord(operands)
		default:
			operands = append(operands, p.atom())
		}
	}
}

func (p *parser) soupSymbol(operands []Expr, t token) []Expr {
	switch {
	case t.symbol == semicolon, t.symbol == rightParen, t.symbol == assign:
		p.fail()
	case t.symbol == leftBracket:
		p.next()
		return p.soup(operands, "]")
	case t.symbol != leftParen:
		p.next()
	case p.atSourceQuery():
		from := p.tok.start
		q := p.parenthesized()
		return append(operands, &Subquery{p.since(from), q})
	default:
		p.next()
		return p.soup(operands, ")")
	}
	return operands
}

func (p *parser) soupWord(operands []Expr) []Expr {
	switch {
	case p.atParam():
		return append(operands, p.param())
	case p.at(kwFrom):
		p.next()
		p.noteName()
		return operands
	case p.at(kwIn) && p.d.Family == SQLite && p.peek().symbol != leftParen:
		p.fail() // a table
		return operands
	case p.at(kwSelect), p.at(kwUpdate), p.at(kwDelete), p.at(kwJoin), p.at(kwInto), p.at(kwTable):
		p.fail()
		return operands
	case p.tok.word.is(reserved), !p.isPlainWord(p.tok):
		p.next()
		return operands
	}
	name, _ := p.nameOrStar()
	if p.atSymbol(leftParen) {
		return operands // a function
	}
	return append(operands, p.columns.put(Column{Span: name.Span, Name: name}))
}

// atom reads the parameter, literal or quoted name at tok.
func (p *parser) atom() Expr {
	switch {
	case p.atParam():
		return p.param()
	case p.tok.kind == sqltext.QuotedIdent:
		name, _ := p.nameOrStar()
		return p.column(name)
	case p.tok.kind == sqltext.String, p.tok.kind == sqltext.Number:
		return p.literal()
	}
	p.fail()
	return &Opaque{}
}
