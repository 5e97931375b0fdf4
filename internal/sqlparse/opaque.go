// SPDX-License-Identifier: Apache-2.0

package sqlparse

import "github.com/shardid/shardid/internal/sqltext"

// opaque returns an expression of which only the operands are known.
func (p *operandReader) opaque(from int, operands ...Expr) *Operation {
	var list []Expr
	for _, x := range operands {
		list = flatten(list, x)
	}
	return p.around(Opaque, from, list...)
}

// binds reports whether operators beside an expression may bind operands of it.
func binds(x Expr) bool {
	o, ok := x.(*Operation)
	return ok && (o.Op < Exists || o.Op == Opaque)
}

// flatten adds the operands of an expression to a list: an operator that may bind other operands
// than it seems to must not look as if it was parsed.
func flatten(list []Expr, x Expr) []Expr {
	if !binds(x) {
		return append(list, x)
	}
	if o := As(x, Opaque); o != nil && list == nil {
		return o.Operands // it is flat already, and is replaced
	}
	for _, operand := range Operands(x) {
		list = flatten(list, operand)
	}
	return list
}

// other reads an operator that the tree does not represent, and the text to its right that belongs
// to it.
func (p *exprReader) other(x Expr) Expr {
	from, t := x.Bytes().From, p.tok
	p.next()
	operands, complete := flatten(nil, x), t.kind == sqltext.String // a text after a text
	switch t.is() {
	case "collate":
		complete = true
		if p.tok.kind == sqltext.String {
			p.next()
		} else if !p.accept("binary") {
			p.name()
		}
	case "[":
		operands, complete = p.operandsUntil(operands, "]"), true
	case "::":
		complete = true
		if p.d.Family != PostgreSQL {
			p.failAt(t) // $a::b is one name in SQLite
		}
		p.castType()
	case "at":
		if complete = p.accept("local"); !complete {
			p.expect("time", "zone")
		}
	case "sounds":
		p.expect("like")
	case "member":
		p.accept("of")
	case "operator":
		p.skipParens()
	case ":=":
		p.assigned = true
	}
	if !complete {
		operands = flatten(operands, p.right())
	}
	return p.around(Opaque, from, operands...)
}

// parenOperands reads a parenthesis of which only the operands matter.
func (p *operandReader) parenOperands(from int) Expr {
	p.expect("(")
	operands := p.operandsUntil(nil, ")")
	return p.around(Opaque, from, operands...)
}

// operandsUntil reads past a closing token and adds the operands that it finds, whatever is between them.
func (p *operandReader) operandsUntil(operands []Expr, closing string) []Expr {
	p.enter()
	defer p.leave()
	for !p.accept(closing) && !p.failed {
		operands = p.soupOf(operands)
	}
	return operands
}

func (p *operandReader) soupOf(operands []Expr) []Expr {
	from := p.tok.start
	switch {
	case p.at(")"), p.at(";"), p.at(":="), p.tok.kind == 0,
		p.at("select"), p.at("update"), p.at("delete"), p.at("join"), p.at("into"), p.at("table"),
		p.d.Family == SQLite && p.at("in") && p.peek().is() != "(",         // a table
		p.d.Family == SQLite && p.at(".") && p.last.kind == sqltext.String: // 'orders'.id
		p.fail()
		return operands
	case p.accept("from"):
		p.noteName()
		return operands
	case p.accept("("):
		if !p.atRows() {
			return p.operandsUntil(operands, ")")
		}
		q := p.inner.query()
		p.expect(")")
		return append(operands, &Subquery{p.since(from), q})
	case p.last.is() == ")" && p.inner.setOp() != First: // ((SELECT …) UNION SELECT …)
		q := p.inner.query()
		return append(operands, &Subquery{q.Span, q})
	case p.accept("["):
		return p.operandsUntil(operands, "]")
	case p.at("case"):
	case p.tok.kind == sqltext.Op, p.tok.class().is(reserved) && !p.callable(), p.tok.kind == sqltext.Word && !p.atParam() && !p.isPlainWord(p.tok):
		p.next()
		return operands
	}
	return flatten(operands, p.operand())
}
