package sqlparse

import (
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// core reads one SELECT.
func (p *parser) core() *Core {
	c := &Core{}
	from := p.tok.start
	p.expect(kwSelect)
	p.modifiers(c)
	c.Items = p.items()
	c.ItemsEnd = p.last.end
	if p.accept(kwFrom) {
		c.From = p.sources()
	}
	if p.accept(kwWhere) {
		c.Where = p.expr()
	}
	if p.accept(kwGroup) {
		p.expect(kwBy)
		p.groupBy(c)
	}
	if p.accept(kwHaving) {
		c.Having = p.expr()
	}
	if p.accept(kwWindow) {
		p.windows(c)
	}
	c.BodyEnd = p.last.end
	c.Span = p.since(from)
	return c
}

// modifiers reads what stands between SELECT and the first item.
func (p *parser) modifiers(c *Core) {
	for {
		switch {
		case p.accept(kwAll):
		case p.at(kwDistinct), p.mysql && p.isText(p.tok, "DISTINCTROW"):
			p.next()
			c.Distinct = true
			if p.d.Family == PostgreSQL && p.accept(kwOn) {
				p.expectSymbol(leftParen)
				c.DistinctOn = p.exprs()
				p.expectSymbol(rightParen)
			}
		case p.mysql && p.tok.kind == sqltext.Word && isModifier(p.textOf(p.tok)):
			c.Modifiers = append(c.Modifiers, strings.ToUpper(p.textOf(p.tok)))
			p.next()
		default:
			return
		}
	}
}

func isModifier(word string) bool {
	switch strings.ToUpper(word) {
	case "STRAIGHT_JOIN", "HIGH_PRIORITY", "SQL_SMALL_RESULT", "SQL_BIG_RESULT", "SQL_BUFFER_RESULT",
		"SQL_NO_CACHE", "SQL_CACHE", "SQL_CALC_FOUND_ROWS":
		return true
	}
	return false
}

func (p *parser) items() []Item {
	var list []Item
	for {
		list = append(list, p.item())
		if !p.acceptSymbol(comma) {
			return list
		}
	}
}

func (p *parser) item() Item {
	i := Item{}
	from := p.tok.start
	switch {
	case p.acceptSymbol(star):
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

// atQualifiedStar reports whether a name and a star stand at tok.
func (p *parser) atQualifiedStar() bool {
	if !p.atName() {
		return false
	}
	ahead := p.scanner
	for p.lex(&ahead).symbol == dot {
		if p.lex(&ahead).symbol == star {
			return true
		}
	}
	return false
}

func (p *parser) groupBy(c *Core) {
	if p.d.Family == PostgreSQL && (p.accept(kwAll) || p.accept(kwDistinct)) {
		c.Rollup = true // GROUP BY DISTINCT is about grouping sets
	}
	for {
		c.GroupBy = append(c.GroupBy, p.grouping(c))
		if !p.acceptSymbol(comma) {
			break
		}
	}
	if p.mysql && p.at(kwWith) && p.acceptTexts("WITH", "ROLLUP") {
		c.Rollup = true
	}
}

func (p *parser) grouping(c *Core) Expr {
	from := p.tok.start
	if p.at(kwGrouping) && p.acceptTexts("GROUPING", "SETS") {
		c.Rollup = true
		return p.parenSoup(from)
	}
	if (p.isText(p.tok, "ROLLUP") || p.isText(p.tok, "CUBE")) && p.peek().symbol == leftParen {
		c.Rollup = true
	}
	x := p.expr()
	p.mysqlGroupOrder()
	return x
}

// mysqlGroupOrder refuses GROUP BY x DESC of old servers, which orders the rows.
func (p *parser) mysqlGroupOrder() {
	if p.at(kwAsc) || p.at(kwDesc) {
		p.fail()
	}
}

func (p *parser) windows(c *Core) {
	for {
		w := Window{Name: p.ident()}
		p.expect(kwAs)
		w.Over = p.parenSoup(p.tok.start)
		w.Span = p.since(w.Name.From)
		c.Windows = append(c.Windows, w)
		if !p.acceptSymbol(comma) {
			return
		}
	}
}
