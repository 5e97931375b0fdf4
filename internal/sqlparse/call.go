// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// function reads a call whose name was read; some calls have a special syntax.
func (p *operandReader) function(word string, name Name) Expr {
	if len(name.Parts) > 1 {
		word = ""
	}
	switch {
	case word == "row":
		var items []Expr
		if !p.accept("(", ")") {
			items = parens(&p.cursor, p.inner.exprs)
		}
		return p.around(Tuple, name.From, items...)
	case word == "cast", word == "convert" && p.mysql:
		return p.cast(name)
	}
	return p.call(name)
}

// cast reads CAST(x AS type) and MySQL's CONVERT(x, type); CONVERT(x USING charset)
// is a call.
func (p *operandReader) cast(name Name) Expr {
	p.expect("(")
	x := p.inner.expr()
	from := p.tok.end
	if p.accept("as") || p.accept(",") {
		p.skipUntilParen()
		cast := p.around(Cast, name.From, x)
		if p.d.Family == PostgreSQL {
			takeKeeping(p, cast, strings.TrimSuffix(p.text[from:cast.To], ")"))
		}
		return cast
	}
	if !p.at("using") {
		p.fail()
	}
	args := p.operandsUntil([]Expr{x}, ")")
	return &Call{Span: p.since(name.From), Name: name, Odd: true, Args: args}
}

// call reads the parentheses of a call and the following clauses.
func (p *operandReader) call(name Name) *Call {
	c := &Call{Name: name}
	p.expect("(")
	switch {
	case p.accept("*", ")"):
		c.Star = true
	case !p.accept(")"):
		p.arguments(c)
	}
	p.afterCall(c)
	c.Span = p.since(name.From)
	return c
}

func (p *operandReader) arguments(c *Call) {
	if !p.accept("all") {
		c.Distinct = p.accept("distinct")
	}
	for first := true; first || p.accept(","); first = false {
		if x := p.argument(); x != nil {
			c.Args = append(c.Args, x)
		} else {
			c.Odd = true
		}
	}
	if !p.accept(")") {
		p.odd(c)
	}
}

// argument reads an argument, or returns nil if there is none: TRIM(FROM x).
func (p *operandReader) argument() Expr {
	from := p.tok.start
	switch {
	case p.at("select"), p.at("with"), p.d.Family == PostgreSQL && p.at("values") && p.peek().is() == "(":
		q := p.inner.query()
		return &Subquery{p.since(from), q}
	case p.at("from"):
		return nil
	case p.atQualifiedStar():
		p.nameOrStar()
		return nil
	}
	return p.inner.expr()
}

func (p *operandReader) odd(c *Call) {
	c.Odd = true
	c.Args = p.operandsUntil(c.Args, ")")
}

// afterCall reads FILTER, WITHIN GROUP, OVER and AGAINST.
func (p *operandReader) afterCall(c *Call) {
	for {
		switch {
		case p.accept("filter", "(", "where"):
			c.Args, c.Filtered = append(c.Args, p.inner.expr()), !c.Odd && p.at(")")
			p.odd(c)
		case p.accept("against", "("), p.accept("within", "group", "("):
			p.odd(c)
			c.Filtered = false
		case p.accept("respect", "nulls"), p.accept("ignore", "nulls"):
			c.Odd, c.Filtered = true, false
		case p.accept("over", "("):
			c.Over = true
			if p.accept("partition", "by") {
				c.Window = list(&p.cursor, p.inner.expr)
			}
			if p.at(")") || p.at("order") || p.at("rows") {
				c.Partition = len(c.Window)
			}
			if p.at("order") {
				c.Order = p.inner.orderBy()
				for _, o := range c.Order {
					c.Window = append(c.Window, o.Expr)
				}
			}
			c.Framed = !p.at(")")
			c.Window = p.operandsUntil(c.Window, ")") // of its frame
		case p.at("over") && (p.peek().kind == sqltext.QuotedIdent || p.peek().kind == sqltext.Word && !p.peek().class().is(reserved)):
			c.Over, c.Framed = true, true
			p.next()
			p.ident()
		default:
			return
		}
	}
}

// caseEnd reads CASE … END and the expressions in it.
func (p *operandReader) caseEnd() Expr {
	var operands []Expr
	from := p.tok.start
	for p.expect("case"); !p.accept("end") && !p.failed; {
		if !p.accept("when") && !p.accept("then") {
			p.accept("else")
		}
		operands = append(operands, p.inner.expr())
	}
	return p.around(Case, from, operands...)
}
