package sqlparse

import "github.com/shardid/shardid/internal/sqltext"

// expr reads an expression. One with := in it is Opaque, as that takes in what
// stands to its right, AND and OR included.
func (p *parser) expr() Expr {
	if !p.enter() {
		return &Opaque{}
	}
	defer p.leave()
	from, outer := p.tok.start, p.assigned
	p.assigned = false
	x := p.binary(Or, (*parser).not)
	if p.assigned {
		x = p.opaque(from, x)
	}
	p.assigned = outer
	return x
}

// exprs reads expressions with commas between them.
func (p *parser) exprs() []Expr { return list(p, &p.arena.exprs, (*parser).expr) }

// tighter are the operators that bind tighter than each.
var tighter = [...]Operator{Or: Xor, Xor: And, And: Add, Add: Mul, Sub: Mul, Mul: Mod + 1, Div: Mod + 1, Mod: Mod + 1}

// binary reads operands with operators between them that bind as tight as one, or
// tighter.
func (p *parser) binary(loosest Operator, operand func(*parser) Expr) Expr {
	x := operand(p)
	for op := p.operator(); op >= loosest; op = p.operator() {
		p.next()
		x = p.combine(op, x, p.binary(tighter[op], operand))
	}
	return x
}

// operator returns the operator of logic or arithmetic at tok, or 0.
func (p *parser) operator() Operator {
	switch p.tok.is() {
	case "and":
		return And
	case "or":
		return Or
	case "+":
		return Add
	case "-":
		return Sub
	case "*":
		return Mul
	case "/":
		return Div
	case "%":
		return Mod
	}
	switch {
	case !p.mysql:
	case p.at("xor"):
		return Xor
	case p.at("&&"):
		return And
	case p.at("||") && !p.d.PipesAsConcat:
		return Or
	}
	return 0
}

// combine makes an operation of two operands, or adds one to an operation.
func (p *parser) combine(op Operator, x, y Expr) Expr {
	if o, ok := x.(*Operation); ok && o.Op == op && op != Sub && op != Div && op != Mod {
		o.Operands = append(o.Operands, y)
		o.To = p.last.end
		return o
	}
	return &Operation{p.since(x.Bytes().From), op, p.pair(x, y)}
}

func (p *parser) sum() Expr { return p.binary(Add, (*parser).operand) }

func (p *parser) not() Expr {
	if !p.at("not") {
		return p.predicate()
	}
	if !p.enter() {
		return &Opaque{}
	}
	defer p.leave()
	from := p.tok.start
	p.next()
	x := p.not()
	if _, whole := x.(*Not); p.mysql && !whole && flattens(x) {
		return p.opaque(from, x) // HIGH_NOT_PRECEDENCE reads (NOT a) = b
	}
	return &Not{p.since(from), x}
}

// predicate reads one comparison, or an operand without one. What has more
// operators than that is Opaque.
func (p *parser) predicate() Expr {
	x := p.sum()
	if !p.goesOn() {
		return x
	}
	c, pending := p.comparison(x)
	if pending || p.goesOn() {
		return p.operators(c, pending)
	}
	return c
}

// comparison reads the comparison at tok, whose left operand was read, and returns
// that where none is. It reports whether an AND of BETWEEN is still to come.
func (p *parser) comparison(x Expr) (c Expr, pending bool) {
	from := x.Bytes().From
	if op := comparisonOf(p.tok.is()); op != 0 {
		p.next()
		y := p.sum()
		return p.compares.put(Compare{p.since(from), op, x, y}), false
	}
	if !p.mysql && p.accept("not", "null") {
		return &IsNull{p.since(from), x, true}, false
	}
	not := p.accept("not")
	switch {
	case p.at("in"):
		return p.in(x, not), false
	case p.accept("between"):
		return p.between(x, not)
	case p.accept("like"), p.accept("ilike"), p.accept("regexp"), p.accept("rlike"), p.accept("glob"), p.accept("match"), p.accept("similar", "to"):
		l := &Like{Operands: []Expr{x, p.sum()}, Not: not}
		if p.accept("escape") {
			l.Operands = append(l.Operands, p.sum())
		}
		l.Span = p.since(from)
		return l, false
	case not:
		p.fail()
	case p.accept("is"):
		return p.is(x), false
	case p.accept("isnull"):
		return &IsNull{p.since(from), x, false}, false
	case p.accept("notnull"):
		return &IsNull{p.since(from), x, true}, false
	}
	return x, false
}

// is reads IS NULL, and IS of a value where that is a comparison.
func (p *parser) is(x Expr) Expr {
	from, not := x.Bytes().From, p.accept("not")
	same := !not
	switch {
	case p.accept("null"):
		return &IsNull{p.since(from), x, not}
	case p.accept("distinct", "from"):
		p.noteName()
		same = not
	case p.at("true"), p.at("false"), p.d.Family != SQLite:
		if p.at("distinct") || p.tok.kind == sqltext.Op || p.tok.is() == "" && !p.atName() {
			p.fail()
		}
		p.next() // another test: IS TRUE, IS UNKNOWN
		return p.opaque(from, x)
	}
	y := p.sum()
	if same {
		return &Compare{p.since(from), NullSafeEqual, x, y}
	}
	return p.opaque(from, x, y)
}

// in reads x IN (list), x IN (query) and SQLite's x IN table.
func (p *parser) in(x Expr, not bool) Expr {
	from := x.Bytes().From
	p.expect("in")
	if !p.at("(") && p.d.Family != SQLite { // POSITION(x IN y), IN BOOLEAN MODE
		return p.opaque(from, x, p.sum())
	}
	in := &In{X: x, Not: not}
	first := p.peek()
	switch {
	case !p.at("("):
		in.Query = p.inTable()
	case first.is() == "select", first.is() == "with", first.is() == "values" && !p.mysql, first.is() == "table" && p.d.Family != SQLite:
		in.Query = p.parenthesized()
	case first.is() == ")" && p.d.Family == SQLite:
		p.accept("(", ")")
	default:
		in.List = parens(p, (*parser).exprs)
	}
	in.Span = p.since(from)
	return in
}

func (p *parser) inTable() *Query {
	n := p.tableName()
	if p.at("(") {
		p.fail() // a table function
	}
	return &Query{Span: n.Span, Parts: []*Part{{Span: n.Span, Table: &Table{Span: n.Span, Name: n}}}, After: n.To}
}

func (p *parser) between(x Expr, not bool) (c Expr, pending bool) {
	from, low := x.Bytes().From, p.sum()
	if !p.accept("and") {
		return p.opaque(from, x, low), true
	}
	high := p.sum()
	return &Between{p.since(from), x, low, high, not}, false
}

// goesOn reports whether the expression that was read goes on at tok with an
// operator that stands between logic and + - * / %, or with another text.
func (p *parser) goesOn() bool {
	switch p.tok.kind {
	case sqltext.Op:
		op := p.operator()
		return !endsOperand(p.tok.is()) && (op == 0 || op > And)
	case sqltext.Word: // but for SQLite's hint behind ON of a join
		return p.tok.class().is(infix) && !(p.d.Family == SQLite && p.atBoth("not", "indexed"))
	case sqltext.String:
		return p.last.kind == sqltext.String
	}
	return false
}

func endsOperand(operator string) bool {
	switch operator {
	case "(", ")", ",", ";", ".":
		return true
	}
	return false
}
