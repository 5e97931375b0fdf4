package sqlparse

// expr reads an expression. One with := in it is Opaque, as that takes in what
// stands to its right, AND and OR included.
func (p *parser) expr() Expr {
	if !p.enter() {
		return &Opaque{}
	}
	defer p.leave()
	from, outer := p.tok.start, p.assigned
	p.assigned = false
	x := p.logic(Or)
	if p.assigned {
		x = &Opaque{p.since(from), flatten(nil, x)}
	}
	p.assigned = outer
	return x
}

// exprs reads expressions with commas between them.
func (p *parser) exprs() []Expr {
	first := p.expr()
	if !p.atSymbol(comma) {
		one := p.arena.exprs.take(1)
		one[0] = first
		return one
	}
	list := []Expr{first}
	for p.acceptSymbol(comma) {
		list = append(list, p.expr())
	}
	return list
}

// logic reads operands of OR, XOR or AND.
func (p *parser) logic(level Operator) Expr {
	if level > And {
		return p.not()
	}
	x := p.logic(level + 1)
	if !p.acceptLogic(level) {
		return x
	}
	operands := p.pair(x, p.logic(level+1))
	for p.acceptLogic(level) {
		operands = append(operands, p.logic(level+1))
	}
	return &Operation{p.since(x.Bytes().From), level, operands}
}

func (p *parser) acceptLogic(level Operator) bool {
	if p.logicAt() != level {
		return false
	}
	p.next()
	return true
}

// logicAt returns the operator of logic at tok, or 0.
func (p *parser) logicAt() Operator {
	switch {
	case p.at(kwAnd), p.mysql && p.atSymbol(ampersands):
		return And
	case p.at(kwOr), p.mysql && !p.d.PipesAsConcat && p.atSymbol(pipes):
		return Or
	case p.mysql && p.at(kwXor):
		return Xor
	}
	return 0
}

func (p *parser) not() Expr {
	if !p.at(kwNot) {
		return p.predicate()
	}
	if !p.enter() {
		return &Opaque{}
	}
	defer p.leave()
	from := p.tok.start
	p.next()
	x := p.not()
	if p.mysql && !isOperand(x) {
		// HIGH_NOT_PRECEDENCE reads (NOT a) = b.
		return &Opaque{p.since(from), flatten(nil, x)}
	}
	return &Not{p.since(from), x}
}

// isOperand reports whether an expression stays one whatever stands before it.
func isOperand(x Expr) bool {
	switch x.(type) {
	case *Compare, *In, *Between, *IsNull, *Like, *Operation, *Opaque:
		return false
	}
	return true
}

// predicate reads one comparison, or an operand without one. What has more
// operators than that is Opaque.
func (p *parser) predicate() Expr {
	x := p.sum()
	if !p.goesOn() {
		return x
	}
	c, pending := p.comparison(x)
	if c == nil {
		c = x
	}
	if pending == 0 && !p.goesOn() {
		return c
	}
	return p.operators(c, pending)
}

// sum reads operands with + and - between them.
func (p *parser) sum() Expr {
	x := p.product()
	for {
		var op Operator
		switch p.tok.symbol {
		case plus:
			op = Add
		case minus:
			op = Sub
		default:
			return x
		}
		p.next()
		x = p.combine(op, x, p.product())
	}
}

// product reads operands with *, / and % between them.
func (p *parser) product() Expr {
	x := p.operand()
	for {
		var op Operator
		switch p.tok.symbol {
		case star:
			op = Mul
		case slash:
			op = Div
		case percent:
			op = Mod
		default:
			return x
		}
		p.next()
		x = p.combine(op, x, p.operand())
	}
}

// combine makes an operation of two operands, or adds one to an operation.
func (p *parser) combine(op Operator, x, y Expr) Expr {
	if o, ok := x.(*Operation); ok && o.Op == op && (op == Add || op == Mul) {
		o.Operands = append(o.Operands, y)
		o.To = p.last.end
		return o
	}
	return &Operation{p.since(x.Bytes().From), op, p.pair(x, y)}
}
