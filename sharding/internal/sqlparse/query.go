package sqlparse

import "github.com/shardid/shardid/internal/sqltext"

// atQuery reports whether tok begins a query, parentheses before it included.
func (p *parser) atQuery() bool {
	switch {
	case p.at(kwSelect), p.at(kwWith):
		return true
	case p.at(kwValues):
		return !p.mysql || p.startsRows(p.peek())
	case p.at(kwTable):
		return p.d.Family != SQLite
	case p.atSymbol(leftParen):
		return p.atNestedQuery()
	}
	return false
}

// startsRows reports whether the token behind VALUES begins rows rather than the
// argument of MySQL's function of that name.
func (p *parser) startsRows(t token) bool { return t.word == kwRow }

// atNestedQuery reports whether the parenthesis at tok begins a query: (SELECT …)
// UNION …, but not ((SELECT …) + 1).
func (p *parser) atNestedQuery() bool {
	ahead := p.scanner
	depth := 1
	first := p.lex(&ahead)
	for ; first.symbol == leftParen; first = p.lex(&ahead) {
		depth++
	}
	switch first.word {
	case kwSelect, kwWith:
	case kwTable:
		if p.d.Family == SQLite {
			return false
		}
	case kwValues:
		if next := ahead; p.mysql && !p.startsRows(p.lex(&next)) {
			return false
		}
	default:
		return false
	}
	return depth == 1 || p.onlyQueries(&ahead, depth)
}

// onlyQueries reports whether each of the parentheses that were opened, but for
// the outermost, closes behind a whole query or one branch of it.
func (p *parser) onlyQueries(ahead *sqltext.Scanner, opened int) bool {
	depth := opened
	for t := p.lex(ahead); t.kind != 0; t = p.lex(ahead) {
		switch t.symbol {
		case leftParen:
			depth++
		case rightParen:
			depth--
		}
		if depth >= opened {
			continue
		}
		if opened = depth; opened == 0 {
			return true
		}
		next := *ahead
		if t := p.lex(&next); t.symbol != rightParen && !p.endsPart(t) {
			return false
		}
	}
	return false
}

// endsPart reports whether a token can stand behind a branch of a query.
func (p *parser) endsPart(t token) bool {
	switch t.word {
	case kwUnion, kwIntersect, kwExcept, kwOrder, kwLimit, kwOffset, kwFetch, kwFor, kwLock:
		return true
	}
	return false
}

// with reads WITH … up to the statement that it belongs to.
func (p *parser) with() *With {
	w := &With{}
	from := p.tok.start
	p.expect(kwWith)
	w.Recursive = p.acceptText("RECURSIVE")
	for {
		w.Tables = append(w.Tables, p.cte())
		if !p.acceptSymbol(comma) {
			break
		}
	}
	w.Span = p.since(from)
	return w
}

func (p *parser) cte() CTE {
	from := p.tok.start
	c := CTE{Name: p.ident()}
	if p.atSymbol(leftParen) {
		c.Columns = p.identList()
	}
	p.expect(kwAs)
	p.accept(kwNot)
	p.acceptText("MATERIALIZED")
	c.Query = p.parenthesized()
	c.Span = p.since(from)
	return c
}

// parenthesized reads a query between parentheses.
func (p *parser) parenthesized() *Query {
	p.expectSymbol(leftParen)
	q := p.query()
	p.expectSymbol(rightParen)
	return q
}

func (p *parser) query() *Query {
	from := p.tok.start
	var with *With
	if p.at(kwWith) {
		with = p.with()
	}
	return p.queryWith(from, with)
}

func (p *parser) queryWith(from int, with *With) *Query {
	q := &Query{With: with}
	if !p.enter() {
		return q
	}
	defer p.leave()
	op := First
	for {
		q.Parts = append(q.Parts, p.part(op))
		t, before := p.tok, op
		if op = p.setOp(); op == First {
			break
		}
		if before != First && isIntersect(before) != isIntersect(op) {
			p.failAt(t)
		}
	}
	q.After = p.last.end
	p.tail(q)
	q.Span = p.since(from)
	return q
}

func isIntersect(op SetOp) bool { return op == Intersect || op == IntersectAll }

// setOp reads UNION and its like; First means that there is none.
func (p *parser) setOp() SetOp {
	var op, all SetOp
	switch p.tok.word {
	case kwUnion:
		op, all = Union, UnionAll
	case kwIntersect:
		op, all = Intersect, IntersectAll
	case kwExcept:
		op, all = Except, ExceptAll
	default:
		return First
	}
	p.next()
	if p.accept(kwAll) {
		return all
	}
	p.accept(kwDistinct)
	return op
}

func (p *parser) part(op SetOp) *Part {
	part := &Part{Op: op}
	from := p.tok.start
	switch {
	case p.at(kwSelect):
		part.Select = p.core()
	case p.atSymbol(leftParen):
		part.Nested = p.parenthesized()
	case p.accept(kwValues):
		part.Values = p.valueRows()
	case p.at(kwTable) && p.d.Family != SQLite:
		p.next()
		part.Table = p.tableName()
	default:
		p.fail()
	}
	part.Span = p.since(from)
	return part
}

// valueRows reads the rows behind VALUES of a query.
func (p *parser) valueRows() [][]Expr {
	var rows [][]Expr
	for {
		p.accept(kwRow)
		p.expectSymbol(leftParen)
		rows = append(rows, p.exprs())
		p.expectSymbol(rightParen)
		if !p.acceptSymbol(comma) {
			return rows
		}
	}
}

// tail reads ORDER BY, LIMIT and locks, which PostgreSQL takes in any order.
func (p *parser) tail(q *Query) {
	for {
		switch {
		case p.at(kwOrder) && q.OrderBy == nil:
			q.OrderBy = p.orderBy()
		case p.at(kwLimit), p.at(kwOffset), p.at(kwFetch):
			if q.Limit != nil {
				p.fail()
				return
			}
			q.Limit = p.limit()
		case p.at(kwFor), p.at(kwLock):
			q.Locks = append(q.Locks, p.lock())
		default:
			return
		}
	}
}

func (p *parser) orderBy() []Order {
	p.expect(kwOrder)
	p.expect(kwBy)
	return p.orders()
}

func (p *parser) orders() []Order {
	var list []Order
	for {
		o := Order{Expr: p.expr()}
		if !p.accept(kwAsc) {
			o.Descending = p.accept(kwDesc)
		}
		switch {
		case p.acceptTexts("NULLS", "FIRST"):
			o.Nulls = NullsFirst
		case p.acceptTexts("NULLS", "LAST"):
			o.Nulls = NullsLast
		}
		o.Span = p.since(o.Expr.Bytes().From)
		list = append(list, o)
		if !p.acceptSymbol(comma) {
			return list
		}
	}
}

// limit reads LIMIT, OFFSET and FETCH where they stand together.
func (p *parser) limit() *Limit {
	l := &Limit{}
	from := p.tok.start
	limited := false
	for {
		switch {
		case p.at(kwLimit) && !limited:
			limited = true
			p.limitCount(l)
		case p.at(kwOffset) && l.Offset == nil:
			p.next()
			l.Offset = p.expr()
			p.acceptRows()
		case p.at(kwFetch) && !limited:
			limited = true
			p.fetch(l)
		default:
			l.Span = p.since(from)
			return l
		}
	}
}

// limitCount reads LIMIT n and LIMIT m, n.
func (p *parser) limitCount(l *Limit) {
	p.next()
	if p.accept(kwAll) {
		return
	}
	l.Count = p.expr()
	if !p.mysql && p.d.Family != SQLite || !p.acceptSymbol(comma) {
		return
	}
	l.Offset, l.Count = l.Count, p.expr()
}

// fetch reads FETCH FIRST n ROWS ONLY.
func (p *parser) fetch(l *Limit) {
	p.next()
	if !p.acceptText("FIRST") {
		p.expectText("NEXT")
	}
	l.Count = p.expr()
	if !p.acceptRows() {
		p.fail()
	}
	if p.accept(kwOnly) {
		return
	}
	l.Ties = true
	p.expect(kwWith)
	p.expectText("TIES")
}

func (p *parser) acceptRows() bool { return p.accept(kwRow) || p.accept(kwRows) }

// lock reads one locking clause.
func (p *parser) lock() Lock {
	from := p.tok.start
	if p.accept(kwLock) {
		p.expect(kwIn)
		p.expectText("SHARE")
		p.expectText("MODE")
		return Lock{Span: p.since(from), Wait: p.lockWait()}.until(p)
	}
	p.expect(kwFor)
	l := Lock{}
	switch {
	case p.accept(kwUpdate):
		l.Exclusive = true
	case p.acceptTexts("NO", "KEY"):
		l.Exclusive = true
		p.expect(kwUpdate)
	default:
		p.acceptText("KEY")
		p.expectText("SHARE")
	}
	if p.acceptText("OF") {
		for {
			l.Of = append(l.Of, p.name())
			if !p.acceptSymbol(comma) {
				break
			}
		}
	}
	l.From = from
	l.Wait = p.lockWait()
	return l.until(p)
}

// until returns the lock with its span up to the last token.
func (l Lock) until(p *parser) Lock {
	l.Span = p.since(l.From)
	return l
}

func (p *parser) lockWait() string {
	switch {
	case p.acceptText("NOWAIT"):
		return "NOWAIT"
	case p.acceptTexts("SKIP", "LOCKED"):
		return "SKIP LOCKED"
	case p.d.Family == MariaDB && p.acceptText("WAIT"):
		n := p.textOf(p.tok)
		if p.tok.kind != sqltext.Number {
			p.fail()
			return ""
		}
		p.next()
		return "WAIT " + n
	}
	return ""
}
