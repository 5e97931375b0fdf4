package sqlparse

import "github.com/shardid/shardid/internal/sqltext"

// opaque makes an expression of which only the operands are known.
func (p *parser) opaque(from int, operands ...Expr) *Opaque {
	var list []Expr
	for _, x := range operands {
		list = flatten(list, x)
	}
	return &Opaque{p.since(from), list}
}

// flattens reports whether what stands beside an expression may bind operands of it.
func flattens(x Expr) bool {
	switch x.(type) {
	case *Operation, *Opaque, *Compare, *Between, *IsNull, *Not, *Like, *In:
		return true
	}
	return false
}

// flatten adds the operands of an expression to a list: what binds other
// operands than it seems to must not look as if it was read.
func flatten(list []Expr, x Expr) []Expr {
	if in, ok := x.(*In); ok && in.Query != nil {
		return append(flatten(list, in.X), &Subquery{in.Query.Span, in.Query})
	}
	if !flattens(x) {
		return append(list, x)
	}
	for _, operand := range Operands(x) {
		list = flatten(list, operand)
	}
	return list
}

// operators reads the rest of an expression whose first part was read, up to
// logic or its end, and keeps the operands alone. It waits for an AND where one of a
// BETWEEN is pending.
func (p *parser) operators(x Expr, pending bool) Expr {
	operands, waiting := []Expr{x}, 0
	if pending {
		waiting++
	}
	for !p.failed {
		more := true
		switch {
		case waiting > 0 && p.accept("and"):
			waiting--
		case !p.goesOn():
			if waiting > 0 {
				p.fail()
			}
			return p.opaque(x.Bytes().From, operands...)
		default:
			if p.at("between") {
				waiting++
			}
			operands, more = p.infix(operands)
		}
		if more {
			for p.accept("not") {
			}
			operands = append(operands, p.operand())
		}
	}
	return &Opaque{}
}

// infix reads one operator, and its operand where that is no expression. It
// reports whether an operand follows.
func (p *parser) infix(operands []Expr) (list []Expr, more bool) {
	t := p.tok
	p.noHash()
	p.next()
	switch t.is() {
	case "isnull", "notnull":
		return operands, false
	case "not":
		p.accept("null")
		return operands, false
	case "is":
		p.accept("not")
		if p.accept("distinct", "from") {
			p.noteName()
			return operands, true
		}
		return operands, !p.accept("null") && !p.accept("true") && !p.accept("false") && !p.accept("unknown")
	case "in":
		return p.infixIn(operands)
	case "collate":
		if p.tok.kind == sqltext.String {
			p.next()
		} else if !p.accept("binary") {
			p.name()
		}
		return operands, false
	case "at":
		if p.accept("local") {
			return operands, false
		}
		p.expect("time", "zone")
	case "similar":
		p.expect("to")
	case "sounds":
		p.expect("like")
	case "member":
		p.accept("of")
	case "operator":
		p.skipParens()
	case "[":
		return p.soup(operands, "]"), false
	case "::":
		if p.d.Family != PostgreSQL {
			p.failAt(t) // $a::b is one name for SQLite
		}
		p.castType()
		return operands, false
	case ":=":
		p.assigned = true
	}
	return operands, t.kind != sqltext.String // a text behind a text
}

// infixIn reads what stands behind IN.
func (p *parser) infixIn(operands []Expr) (list []Expr, more bool) {
	from := p.tok.start
	switch {
	case p.d.Family == SQLite && p.accept("(", ")"):
		return operands, false
	case p.d.Family == SQLite && !p.at("("):
		q := p.inTable()
		return append(operands, &Subquery{p.since(from), q}), false
	case p.at("(") && !p.atSourceQuery():
		return append(operands, parens(p, (*parser).exprs)...), false
	}
	return operands, true
}

// parenSoup reads a parenthesis of which only the operands matter.
func (p *parser) parenSoup(from int) Expr {
	p.expect("(")
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
	for !p.accept(closing) && !p.failed {
		operands = p.soupOf(operands)
	}
	return operands
}

func (p *parser) soupOf(operands []Expr) []Expr {
	p.noHash()
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
	case p.at("(") && p.atSourceQuery():
		q := p.parenthesized()
		return append(operands, &Subquery{p.since(from), q})
	case p.accept("("):
		return p.soup(operands, ")")
	case p.accept("["):
		return p.soup(operands, "]")
	case p.at("case"):
	case p.tok.kind == sqltext.Op, p.tok.class().is(reserved) && !p.callable(), p.tok.kind == sqltext.Word && !p.atParam() && !p.isPlainWord(p.tok):
		p.next()
		return operands
	}
	return flatten(operands, p.operand())
}
