package sqlparse

import "github.com/shardid/shardid/internal/sqltext"

// function reads a call whose name was read; some have a syntax of their own.
func (p *parser) function(word keyword, name Name) Expr {
	if len(name.Parts) == 1 && !name.Parts[0].Quoted {
		switch word {
		case kwCast:
			return p.castCall(name.From)
		case kwRow:
			return p.row(name.From)
		case kwConvert:
			if p.mysql {
				return p.convert(name)
			}
		}
	}
	return p.call(name)
}

// row reads ROW(a, b).
func (p *parser) row(from int) Expr {
	p.expectSymbol(leftParen)
	var items []Expr
	if !p.atSymbol(rightParen) {
		items = p.exprs()
	}
	p.expectSymbol(rightParen)
	return &Tuple{p.since(from), items}
}

// call reads the parentheses of a call and what stands behind them.
func (p *parser) call(name Name) *Call {
	c := &Call{Name: name}
	p.expectSymbol(leftParen)
	p.arguments(c)
	p.afterCall(c)
	c.Span = p.since(name.From)
	return c
}

func (p *parser) arguments(c *Call) {
	if p.acceptSymbol(star) {
		c.Star = true
		p.expectSymbol(rightParen)
		return
	}
	if p.acceptSymbol(rightParen) {
		return
	}
	if !p.accept(kwAll) {
		c.Distinct = p.accept(kwDistinct)
	}
	for {
		c.Args = append(c.Args, p.argument(c))
		if !p.acceptSymbol(comma) {
			break
		}
	}
	if p.acceptSymbol(rightParen) {
		return
	}
	c.Odd = true
	c.Args = p.soup(c.Args, ")")
}

func (p *parser) argument(c *Call) Expr {
	from := p.tok.start
	switch {
	case p.at(kwSelect), p.at(kwWith):
		q := p.query()
		return &Subquery{p.since(from), q}
	case p.atQualifiedStar():
		c.Odd = true
		name, _ := p.nameOrStar()
		return &Opaque{Span: Span{name.From, p.last.end}}
	case p.at(kwFrom), p.at(kwOrder), p.at(kwSeparator), p.at(kwUsing):
		c.Odd = true // TRIM(FROM x)
		return &Opaque{Span: Span{from, from}}
	}
	return p.expr()
}

// afterCall reads FILTER, WITHIN GROUP, OVER and AGAINST.
func (p *parser) afterCall(c *Call) {
	for {
		switch {
		case p.at(kwFilter) && p.peek().symbol == leftParen, p.at(kwAgainst) && p.peek().symbol == leftParen:
			c.Odd = true
			p.next()
			p.next()
			c.Args = p.soup(c.Args, ")")
		case p.at(kwWithin) && p.peek().word == kwGroup:
			c.Odd = true
			p.next()
			p.next()
			p.expectSymbol(leftParen)
			c.Args = p.soup(c.Args, ")")
		case p.acceptTexts("RESPECT", "NULLS"), p.acceptTexts("IGNORE", "NULLS"):
			c.Odd = true
		case p.at(kwOver) && p.peek().symbol == leftParen:
			c.Over = true
			p.next()
			p.next()
			c.Args = p.soup(c.Args, ")")
		case p.at(kwOver) && p.peek().kind == sqltext.Word && !p.peek().word.is(reserved):
			c.Over = true
			p.next()
			p.ident()
		default:
			return
		}
	}
}

// castCall reads CAST(x AS type).
func (p *parser) castCall(from int) Expr {
	p.expectSymbol(leftParen)
	c := &Cast{X: p.expr()}
	p.expect(kwAs)
	c.Type = p.typeUntilParen()
	c.Span = p.since(from)
	return c
}

// convert reads MySQL's CONVERT(x, type); CONVERT(x USING charset) is a call.
func (p *parser) convert(name Name) Expr {
	p.expectSymbol(leftParen)
	x := p.expr()
	if p.acceptSymbol(comma) {
		c := &Cast{X: x, Type: p.typeUntilParen()}
		c.Span = p.since(name.From)
		return c
	}
	c := &Call{Name: name, Odd: true, Args: p.soup([]Expr{x}, ")")}
	c.Span = p.since(name.From)
	return c
}

// typeUntilParen reads a type up to the parenthesis that closes around it, and
// that one.
func (p *parser) typeUntilParen() string {
	from := p.tok.start
	for !p.atSymbol(rightParen) && !p.failed {
		switch {
		case p.atSymbol(leftParen):
			p.skipParens()
		case p.tok.kind == sqltext.Word && !p.atParam(), p.tok.kind == sqltext.QuotedIdent,
			p.atSymbol(dot), p.atSymbol(leftBracket), p.isArrayEnd(), p.tok.kind == sqltext.Number:
			p.next()
		default:
			p.fail()
		}
	}
	end := p.last.end
	p.expectSymbol(rightParen)
	return p.text[from:max(from, end)]
}

func (p *parser) isArrayEnd() bool { return p.tok.kind == sqltext.Op && p.text[p.tok.start] == ']' }

// castType reads the type behind ::.
func (p *parser) castType() string {
	from := p.tok.start
	switch {
	case p.acceptTexts("DOUBLE", "PRECISION"):
	case p.acceptTexts("CHARACTER", "VARYING"), p.acceptTexts("BIT", "VARYING"):
	default:
		p.name()
	}
	if p.atSymbol(leftParen) {
		p.skipParens()
	}
	if p.isText(p.tok, "WITH") || p.isText(p.tok, "WITHOUT") {
		p.next()
		p.expectText("TIME")
		p.expectText("ZONE")
	}
	for p.acceptSymbol(leftBracket) {
		if p.tok.kind == sqltext.Number {
			p.next()
		}
		if !p.isArrayEnd() {
			p.fail()
		}
		p.next()
	}
	return p.text[from:max(from, p.last.end)]
}

// caseEnd reads CASE … END.
func (p *parser) caseEnd() Expr {
	c := &Case{}
	from := p.tok.start
	p.expect(kwCase)
	if !p.at(kwWhen) {
		c.Operands = append(c.Operands, p.expr())
	}
	for p.accept(kwWhen) {
		c.Operands = append(c.Operands, p.expr())
		p.expect(kwThen)
		c.Operands = append(c.Operands, p.expr())
	}
	if p.accept(kwElse) {
		c.Operands = append(c.Operands, p.expr())
	}
	p.expect(kwEnd)
	c.Span = p.since(from)
	return c
}
