// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// queryReader reads SELECT and the other forms of queries.
type queryReader struct{ sourceReader }

// with reads WITH … up to the statement to which it belongs, if there is one. writes reads data-modifying CTEs; it is nil where they
// are not allowed.
func (p *queryReader) with(writes *parser) *With {
	from := p.tok.start
	if !p.accept("with") {
		return nil
	}
	w := &With{Span: Span{From: from}, Recursive: p.accept("recursive")}
	for more := true; more; more = p.accept(",") {
		w.Tables = append(w.Tables, p.cte(w, writes))
	}
	w.Span = p.since(from)
	return w
}

func (p *queryReader) cte(before *With, writes *parser) CTE {
	c := CTE{Name: p.ident(), Columns: p.identList()}
	p.expect("as")
	p.accept("not")
	p.accept("materialized")
	if writes != nil && p.at("(") && modifies[p.peek().is()] {
		readModifying(writes, &c, *before)
	} else {
		c.Query = p.parenthesized()
	}
	c.Span = p.since(c.Name.From)
	return c
}

func (p *queryReader) parenthesized() *Query { return parens(&p.cursor, p.query) }

func (p *queryReader) query() *Query {
	from := p.tok.start
	return p.queryWith(from, p.with(nil))
}

func (p *queryReader) queryWith(from int, with *With) *Query {
	p.enter()
	defer p.leave()
	return p.combined(from, with, p.part(First))
}

// nested reads the rest of a query that begins with a query in parentheses: (SELECT …) UNION ….
func (p *queryReader) nested(span Span, q *Query) *Query {
	return p.combined(span.From, nil, &Part{Span: span, Nested: q})
}

// combined reads the rest of a query after its first part.
func (p *queryReader) combined(from int, with *With, first *Part) *Query {
	q := &Query{With: with, Parts: []*Part{first}}
	for last := First; ; {
		t := p.tok
		op := p.setOp()
		if op == First {
			break
		}
		if last != First && (last >= IntersectAll) != (op >= IntersectAll) {
			p.failAt(t)
		}
		q.Parts = append(q.Parts, p.part(op))
		last = op
	}
	q.After = p.last.end
	p.tail(q)
	q.Span = p.since(from)
	return q
}

var setOps = map[string]SetOp{"union": Union, "except": Except, "intersect": Intersect}

// setOp reads UNION and the other set operations; First means that there is none.
func (p *queryReader) setOp() SetOp {
	op := setOps[p.tok.is()]
	if op == First {
		return First
	}
	p.next()
	if p.accept("all") {
		return op - 1
	}
	p.accept("distinct")
	return op
}

func (p *queryReader) part(op SetOp) *Part {
	part := &Part{Op: op}
	from := p.tok.start
	switch {
	case p.at("select"):
		part.Select = p.core()
	case p.at("("):
		part.Nested = p.parenthesized()
	case p.accept("values"):
		part.Values = list(&p.cursor, p.tuple)
	case p.d.Family != SQLite && p.accept("table"):
		n := p.tableName()
		part.Table = &Table{Span: n.Span, Name: n}
	default:
		p.fail()
	}
	part.Span = p.since(from)
	return part
}

// noTable moves past DUAL, by which MySQL and MariaDB say that a SELECT reads no table. It stands alone.
func (p *queryReader) noTable() bool {
	if !p.mysql || p.tok.kind != sqltext.Word || !strings.EqualFold(p.text[p.tok.start:p.tok.end], "dual") || p.peek().is() == "." {
		return false
	}
	p.next()
	return true
}

func (p *queryReader) core() *Core {
	c := &Core{}
	from := p.tok.start
	p.expect("select")
	p.modifiers(c)
	c.Items = p.items()
	c.ItemsEnd = p.last.end
	if p.accept("from") && !p.noTable() {
		c.From = p.sources()
	}
	c.Where = p.optional("where")
	if p.accept("group", "by") {
		p.groupBy(c)
	}
	at := p.tok.start
	if c.Having = p.optional("having"); c.Having != nil {
		c.HavingAt = at
	}
	if p.accept("window") {
		c.Windows = list(&p.cursor, p.window)
	}
	c.Span = p.since(from)
	return c
}

// optional reads a word and the following expression, nil if there is none.
func (p *queryReader) optional(word string) Expr {
	if !p.accept(word) {
		return nil
	}
	return p.expr()
}

// modifiers reads the words between SELECT and the first item.
func (p *queryReader) modifiers(c *Core) {
	for {
		switch {
		case p.accept("all"):
		case p.accept("distinct"), p.mysql && p.accept("distinctrow"):
			c.Distinct = true
			if p.d.Family == PostgreSQL && p.accept("on") {
				c.DistinctOn = parens(&p.cursor, p.exprs)
			}
		case p.mysql && p.tok.class().is(modifier):
			c.Modifiers = append(c.Modifiers, strings.ToUpper(p.tok.is()))
			p.next()
		default:
			return
		}
	}
}

func (p *queryReader) items() []Item { return list(&p.cursor, p.item) }

func (p *queryReader) item() Item {
	i := Item{}
	from := p.tok.start
	switch {
	case p.accept("*"):
		i.Star = true
	case p.atQualifiedStar():
		i.Of, i.Star = p.nameOrStar()
	default:
		i.Expr = p.expr()
		i.Alias = p.alias(true)
	}
	i.Span = p.since(from)
	return i
}

// atQualifiedStar reports whether tok begins a name and a star.
func (p *nameReader) atQualifiedStar() bool {
	if !p.atName() {
		return false
	}
	ahead := p.scanner
	for p.lex(&ahead).is() == "." {
		if p.lex(&ahead).is() == "*" {
			return true
		}
	}
	return false
}

func (p *queryReader) groupBy(c *Core) {
	if p.d.Family == PostgreSQL && (p.accept("all") || p.accept("distinct")) {
		c.Rollup = true // GROUP BY DISTINCT concerns grouping sets
	}
	for more := true; more; more = p.accept(",") {
		from := p.tok.start
		switch {
		case p.accept("grouping", "sets"):
			c.Rollup = true
			c.GroupBy = append(c.GroupBy, p.parenOperands(from))
			continue
		case p.atBoth("rollup", "("), p.atBoth("cube", "("):
			c.Rollup = true
		}
		c.GroupBy = append(c.GroupBy, p.expr())
		if p.at("asc") || p.at("desc") {
			p.fail() // old servers sort the rows by it
		}
	}
	if p.mysql && p.accept("with", "rollup") {
		c.Rollup = true
	}
}

func (p *queryReader) window() Expr {
	p.ident()
	p.expect("as")
	return p.parenOperands(p.tok.start)
}

// tail reads ORDER BY, LIMIT and locks, which PostgreSQL accepts in any order.
func (p *queryReader) tail(q *Query) {
	for {
		switch {
		case q.OrderBy == nil && p.at("order"):
			q.OrderBy = p.orderBy()
		case q.Limit == nil && (p.at("limit") || p.at("offset") || p.at("fetch")):
			q.Limit = p.limit()
		case p.at("for"), p.at("lock"):
			q.Locks = append(q.Locks, p.lock())
		default:
			return
		}
	}
}

func (p *queryReader) orderBy() []Order {
	if !p.accept("order") {
		return nil
	}
	p.expect("by")
	return list(&p.cursor, p.order)
}

func (p *queryReader) order() Order {
	o := Order{Expr: p.expr()}
	if !p.accept("asc") {
		o.Descending = p.accept("desc")
	}
	switch {
	case p.accept("nulls", "first"):
		o.Nulls = NullsFirst
	case p.accept("nulls", "last"):
		o.Nulls = NullsLast
	}
	o.Span = p.since(o.Expr.Bytes().From)
	return o
}

// limit reads adjacent LIMIT, OFFSET and FETCH clauses. PostgreSQL takes them in any order. MySQL and SQLite know no FETCH
// and no OFFSET without a LIMIT before it, MariaDB none without LIMIT or FETCH.
func (p *queryReader) limit() *Limit {
	l := &Limit{}
	from := p.tok.start
	free := p.d.Family == PostgreSQL
	fetches := free || p.d.Family == MariaDB
	for limited := false; ; {
		switch {
		case l.Offset == nil && (limited || fetches) && p.accept("offset"):
			l.Offset = p.expr()
			_ = fetches && p.acceptRows()
		case !limited && fetches && p.accept("fetch"):
			limited = true
			p.fetch(l)
		case free && !limited && p.accept("limit", "all"):
			limited = true
		case !limited && (free || l.Offset == nil) && p.accept("limit"):
			limited = true
			l.Count = p.expr()
			if p.d.Family != PostgreSQL && p.accept(",") {
				l.Offset, l.Count = l.Count, p.expr()
			}
		default:
			if !limited && !free {
				p.fail()
			}
			l.Span = p.since(from)
			return l
		}
	}
}

// fetch reads FIRST n ROWS ONLY. Without n it is one row.
func (p *queryReader) fetch(l *Limit) {
	if !p.accept("first") {
		p.expect("next")
	}
	if at := p.tok.start; p.acceptRows() {
		l.Count = &Literal{Span: Span{From: at, To: at}, Kind: Integer, Value: "1"}
	} else if l.Count = p.expr(); !p.acceptRows() {
		p.fail()
	}
	if l.Ties = !p.accept("only"); l.Ties {
		p.expect("with", "ties")
	}
}

func (p *queryReader) acceptRows() bool { return p.accept("row") || p.accept("rows") }

func (p *queryReader) lock() Lock {
	l := Lock{}
	from := p.tok.start
	switch {
	case p.accept("lock"):
		p.expect("in", "share", "mode")
		l.Mode = p.since(from)
	case p.accept("for", "update"), p.accept("for", "no", "key", "update"), p.accept("for", "share"), p.accept("for", "key", "share"):
		l.Mode = p.since(from)
		if p.accept("of") {
			l.Of = list(&p.cursor, p.name)
		}
	default:
		p.fail()
	}
	wait := p.tok.start
	switch {
	case p.accept("nowait"), p.accept("skip", "locked"):
		l.Wait = p.since(wait)
	case p.d.Family == MariaDB && p.accept("wait"):
		if p.tok.kind != sqltext.Number {
			p.fail()
		}
		p.next()
		l.Wait = p.since(wait)
	}
	l.Span = p.since(from)
	return l
}
