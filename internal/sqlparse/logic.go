// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"slices"

	"github.com/shardid/shardid/internal/sqltext"
)

// exprReader reads operators and their operands.
type exprReader struct {
	operandReader
	// assigned reports a := in the present expression. Its right operand is everything to its
	// right.
	assigned bool
}

// expr reads an expression. An expression with := is Opaque, because := has everything to its right
// as its operand, AND and OR included.
func (p *exprReader) expr() Expr {
	p.enter()
	defer p.leave()
	from, outer := p.tok.start, p.assigned
	p.assigned = false
	x := p.binary(Or, (*exprReader).not)
	if p.assigned {
		x = p.opaque(from, x)
	}
	p.assigned = outer
	return x
}

func (p *exprReader) exprs() []Expr { return list(&p.cursor, p.expr) }

// tighter maps each operator to the next one that binds more tightly.
var tighter = [...]Operator{Or: Xor, Xor: And, And: Add, Add: Mul, Sub: Mul, Mul: Exists, Div: Exists, Mod: Exists}

// binary reads operands with operators between them that bind as tightly as one, or more tightly.
func (p *exprReader) binary(loosest Operator, operand func(*exprReader) Expr) Expr {
	x := operand(p)
	for op := p.operator(); op >= loosest; op = p.operator() {
		p.next()
		x = p.combine(op, x, p.binary(tighter[op], operand))
	}
	return x
}

// operator returns the operator of logic, comparison or arithmetic at tok, or 0.
func (p *exprReader) operator() Operator {
	if p.tok.class().is(onlyMySQL) && (!p.mysql || p.d.PipesAsConcat && p.at("||")) {
		return 0
	}
	return words[p.tok.id].operator
}

// combine returns an operation with two operands, or adds an operand to an operation.
func (p *exprReader) combine(op Operator, x, y Expr) Expr {
	if o := As(x, op); o != nil && op != Sub && op != Div && op != Mod {
		o.Operands = append(o.Operands, y)
		o.To = p.last.end
		return o
	}
	return p.test(op, false, x, y)
}

func (p *exprReader) sum() Expr { return p.binary(Add, (*exprReader).operand) }

func (p *exprReader) not() Expr {
	if !p.at("not") {
		return p.predicate(p.sum())
	}
	p.enter()
	defer p.leave()
	from := p.tok.start
	p.next()
	x := p.not()
	if p.mysql && !p.d.LowNot && As(x, Not) == nil && binds(x) {
		return p.opaque(from, x) // with HIGH_NOT_PRECEDENCE it means (NOT a) = b
	}
	return p.around(Not, from, x)
}

// around returns the operation of syntax around operands that were read.
func (p *operandReader) around(op Operator, from int, operands ...Expr) *Operation {
	return &Operation{Span: p.since(from), Op: op, Operands: operands}
}

// predicate reads one comparison after its left operand, if there is one. An expression with more
// operators is Opaque.
func (p *exprReader) predicate(x Expr) Expr {
	if p.goesOn() {
		x = p.comparison(x)
	}
	for p.goesOn() {
		x = p.opaque(x.Bytes().From, p.comparison(x))
	}
	return x
}

// right reads the operand to the right of an operator.
func (p *exprReader) right() Expr {
	from, not := p.tok.start, false
	for p.accept("not") {
		not = true
	}
	x := p.sum()
	if not {
		return p.opaque(from, x)
	}
	return x
}

// comparison reads the operator at tok, whose left operand was read, and the text to its right that
// belongs to it.
func (p *exprReader) comparison(x Expr) Expr {
	if op := p.operator(); op != 0 {
		p.next()
		return p.test(op, false, x, p.right())
	}
	if p.accept("not", "null") || p.accept("notnull") {
		return p.test(IsNull, true, x)
	}
	not := p.accept("not")
	switch {
	case p.accept("in"):
		return p.in(x, not)
	case p.accept("between"):
		return p.between(x, not)
	case p.accept("similar", "to"), p.tok.class().is(pattern) && p.accept(p.tok.is()):
		operands := []Expr{x, p.right()}
		if p.accept("escape") {
			operands = append(operands, p.right())
		}
		return p.test(Like, not, operands...)
	case not:
		p.fail()
	case p.accept("is"):
		return p.is(x)
	case p.accept("isnull"):
		return p.test(IsNull, false, x)
	}
	return p.other(x)
}

// test returns an operation whose text begins with its first operand, which may be one with NOT.
func (p *exprReader) test(op Operator, not bool, operands ...Expr) *Operation {
	return &Operation{Span: p.since(operands[0].Bytes().From), Op: op, Not: not, Operands: operands}
}

// is reads the text after IS: NULL, another test, or, in SQLite, a value to compare with.
func (p *exprReader) is(x Expr) Expr {
	not, distinct := p.accept("not"), false
	switch {
	case p.accept("null"):
		return p.test(IsNull, not, x)
	case p.accept("true"), p.accept("false"), p.d.Family != SQLite && p.accept("unknown"):
		return p.opaque(x.Bytes().From, x)
	case p.accept("distinct", "from"):
		p.noteName()
		distinct = true
	}
	c := p.test(NullSafeEqual, false, x, p.right())
	if not != distinct || !distinct && p.d.Family != SQLite {
		return p.opaque(c.From, c)
	}
	return c
}

// in reads the text after IN: (list), (query), or SQLite's table.
func (p *exprReader) in(x Expr, not bool) Expr {
	var list []Expr
	switch {
	case p.d.Family == SQLite && p.accept("(", ")"):
	case p.at("("):
		y := p.parens()
		if list = Operands(y); list == nil {
			list = []Expr{p.rows(y)}
		}
	case p.d.Family == SQLite:
		list = []Expr{p.inTable()}
	default: // POSITION(x IN y), IN BOOLEAN MODE
		return p.opaque(x.Bytes().From, x, p.right())
	}
	return p.test(In, not, slices.Insert(list, 0, x)...)
}

// rows removes the parentheses around a subquery in parentheses. On SQLite they remain, because older versions read
// one row of IN ((SELECT …)).
func (p *exprReader) rows(y Expr) Expr {
	s, ok := y.(*Subquery)
	for ok && p.d.Family != SQLite && s.Query.IsPlain() && s.Query.Parts[0].Nested != nil {
		s.Query = s.Query.Parts[0].Nested
	}
	return y
}

func (p *exprReader) inTable() Expr {
	n := p.tableName()
	if p.at("(") {
		p.fail() // a table function
	}
	return &Subquery{n.Span, &Query{Span: n.Span, Parts: []*Part{{Span: n.Span, Table: &Table{Span: n.Span, Name: n}}}, After: n.To}}
}

func (p *exprReader) between(x Expr, not bool) Expr {
	p.enter()
	defer p.leave()
	either := p.d.Family == PostgreSQL && p.accept("symmetric")
	if p.d.Family == PostgreSQL && !either {
		p.accept("asymmetric")
	}
	low := p.right()
	odd := p.goesOn() || either
	low = p.predicate(low)
	p.expect("and")
	high := p.right()
	if odd {
		return p.opaque(x.Bytes().From, x, low, high)
	}
	return p.test(Between, not, x, low, high)
}

// goesOn reports whether the present expression continues at tok with an operator that binds
// between logic and + - * / %, or with another text.
func (p *exprReader) goesOn() bool {
	switch p.tok.kind {
	case sqltext.Op:
		op := p.operator()
		return !p.tok.class().is(ending) && (op == 0 || op > And)
	case sqltext.Word: // except SQLite's hint after ON of a join
		return p.tok.class().is(infix) && !(p.d.Family == SQLite && p.atBoth("not", "indexed"))
	case sqltext.String:
		return p.last.kind == sqltext.String
	}
	return false
}
