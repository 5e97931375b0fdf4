package sqlparse

import "github.com/shardid/shardid/internal/sqltext"

// update reads what stands behind UPDATE.
func (p *parser) update(from int, with *With) *Change {
	c := &Change{With: with}
	p.changeWords(c)
	if p.mysql {
		c.From = p.sources()
		if c.Multi = len(c.From) > 1 || c.From[0].Table == nil; !c.Multi {
			c.Targets, c.From = []Table{*c.From[0].Table}, nil
		}
	} else {
		c.Targets = []Table{*p.table()}
	}
	p.expect("set")
	c.Set = p.assignments()
	if !p.mysql && p.accept("from") {
		c.From = p.sources()
	}
	p.changeTail(c)
	c.Span = p.since(from)
	return c
}

// changeWords reads the words behind UPDATE and MySQL's DELETE.
func (p *parser) changeWords(c *Change) {
	if p.d.Family == SQLite {
		c.Ignore, c.Or = p.orWord()
	}
	if !p.mysql {
		return
	}
	for p.accept("low_priority") || p.accept("quick") { //nolint:revive // the call is the body
	}
	c.Ignore = p.accept("ignore")
	if p.atBoth("history", "from") {
		p.fail() // MariaDB's DELETE HISTORY
	}
}

// delete reads what stands behind DELETE.
func (p *parser) delete(from int, with *With) *Change {
	c := &Change{With: with}
	if p.mysql {
		p.changeWords(c)
		c.Multi = !p.at("from")
	}
	word := "from"
	if !c.Multi {
		p.expect("from")
		word, c.Multi = "using", p.mysql && p.atUsing()
	}
	if c.Multi {
		c.Targets = list(p, nil, (*parser).target)
		p.expect(word)
		c.From = p.sources()
	} else {
		c.Targets = []Table{*p.table()}
		if p.d.Family == PostgreSQL && p.accept("using") {
			c.From = p.sources()
		}
	}
	p.changeTail(c)
	c.Span = p.since(from)
	return c
}

// atUsing reports whether names stand at tok, and USING behind them: MySQL's DELETE
// FROM a, b USING ….
func (p *parser) atUsing() bool {
	ahead := p.scanner
	t := p.tok
	for t.is() == "." || t.is() == "*" || t.is() == "," || t.kind != 0 && t.kind != sqltext.Op && !t.class().is(reserved) {
		t = p.lex(&ahead)
	}
	return t.is() == "using"
}

// target reads a target of MySQL's DELETE of several tables: a, b.*.
func (p *parser) target() Table {
	name, _ := p.nameOrStar()
	p.names.add(name.Last().Name)
	return Table{Span: name.Span, Name: name}
}

// changeTail reads what stands behind the tables and the assignments.
func (p *parser) changeTail(c *Change) {
	c.Where = p.optional("where")
	if p.d.Family != PostgreSQL {
		if p.d.Family == SQLite {
			c.Returning = p.returning()
		}
		c.OrderBy = p.orderBy()
		if p.at("limit") {
			c.Limit = p.limit()
		}
	}
	if p.d.Family != SQLite {
		c.Returning = p.returning()
	}
}

// returning reads RETURNING, if it is there.
func (p *parser) returning() []Item {
	if !p.accept("returning") {
		return nil
	}
	return p.items()
}

// assignments reads the list of SET.
func (p *parser) assignments() []Assignment { return list(p, nil, (*parser).assignment) }

// assignment reads column = value, or (a, b) = value, which MySQL does not take.
func (p *parser) assignment() Assignment {
	a := Assignment{}
	from := p.tok.start
	if !p.mysql && p.at("(") {
		for _, c := range p.identList() {
			a.Columns = append(a.Columns, Name{c.Span, []Ident{c}})
		}
	} else {
		a.Columns = []Name{p.name()}
	}
	if !p.accept("==") && (!p.mysql || !p.accept(":=")) {
		p.expect("=")
	}
	a.Value = p.expr()
	a.Span = p.since(from)
	return a
}
