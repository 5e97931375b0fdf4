package sqlparse

// update reads an UPDATE behind its WITH.
func (p *parser) update(from int, with *With) *Change {
	c := &Change{With: with}
	p.expect(kwUpdate)
	p.changeWords(c)
	switch {
	case p.mysql:
		c.From = p.sources()
		p.target(c)
	case p.at(kwOnly) && p.d.Family == PostgreSQL:
		c.Targets = []Table{*p.onlyTable()}
	default:
		c.Targets = []Table{*p.changed()}
	}
	p.expect(kwSet)
	c.Set = p.setList()
	if !p.mysql && p.accept(kwFrom) {
		c.From = p.sources()
	}
	p.changeTail(c)
	c.Span = p.since(from)
	return c
}

// changed reads a table with its alias and hints.
func (p *parser) changed() *Table {
	name := p.name()
	p.names.add(name.last().Name)
	return p.table(name)
}

// target moves the one table of MySQL's UPDATE to the targets.
func (p *parser) target(c *Change) {
	if len(c.From) == 1 && c.From[0].Table != nil {
		c.Targets, c.From = []Table{*c.From[0].Table}, nil
		return
	}
	c.Multi = true
}

// changeWords reads the words behind UPDATE and DELETE.
func (p *parser) changeWords(c *Change) {
	if p.d.Family == SQLite {
		c.Ignore, c.Or = p.orWord()
		return
	}
	if !p.mysql {
		return
	}
	for p.acceptText("LOW_PRIORITY") || p.acceptText("QUICK") { //nolint:revive // the call is the body
	}
	c.Ignore = p.accept(kwIgnore)
	if p.isText(p.tok, "HISTORY") && p.peek().word == kwFrom {
		p.fail() // MariaDB's DELETE HISTORY
	}
}

// delete reads a DELETE behind its WITH.
func (p *parser) delete(from int, with *With) *Change {
	c := &Change{With: with}
	p.expect(kwDelete)
	if p.mysql {
		p.changeWords(c)
	}
	switch {
	case p.mysql && !p.at(kwFrom):
		c.Multi = true
		c.Targets = p.aliases()
		p.expect(kwFrom)
		c.From = p.sources()
	case p.mysql:
		p.next()
		p.deleteFrom(c)
	default:
		p.expect(kwFrom)
		if p.d.Family == PostgreSQL && p.at(kwOnly) {
			c.Targets = []Table{*p.onlyTable()}
		} else {
			c.Targets = []Table{*p.changed()}
		}
		if p.d.Family == PostgreSQL && p.accept(kwUsing) {
			c.From = p.sources()
		}
	}
	p.changeTail(c)
	c.Span = p.since(from)
	return c
}

// deleteFrom reads MySQL's DELETE FROM t and DELETE FROM a, b USING ….
func (p *parser) deleteFrom(c *Change) {
	ahead := p.scanner
	for t := p.tok; t.word != kwUsing; t = p.lex(&ahead) {
		if t.symbol == noSymbol && t.word.is(reserved) || t.kind == 0 || t.symbol != noSymbol && t.symbol != dot && t.symbol != star && t.symbol != comma {
			c.Targets = []Table{*p.changed()}
			return
		}
	}
	c.Multi = true
	c.Targets = p.aliases()
	p.expect(kwUsing)
	c.From = p.sources()
}

// aliases reads the targets of MySQL's DELETE of several tables: a, b.*.
func (p *parser) aliases() []Table {
	var list []Table
	for {
		name, _ := p.nameOrStar()
		p.names.add(name.last().Name)
		list = append(list, Table{Span: name.Span, Name: name})
		if !p.acceptSymbol(comma) {
			return list
		}
	}
}

// changeTail reads what stands behind the tables and the assignments.
func (p *parser) changeTail(c *Change) {
	c.WhereAt = p.last.end
	if p.accept(kwWhere) {
		c.Where = p.expr()
	}
	if p.d.Family == SQLite {
		p.returning(c)
	}
	if p.at(kwOrder) && p.d.Family != PostgreSQL {
		c.OrderBy = p.orderBy()
	}
	if p.at(kwLimit) && p.d.Family != PostgreSQL {
		c.Limit = p.limit()
	}
	if p.d.Family != SQLite {
		p.returning(c)
	}
}

func (p *parser) returning(c *Change) {
	c.ReturningAt = p.last.end
	if p.accept(kwReturning) {
		c.Returning = p.items()
	}
}

// assignments reads the list of SET of MySQL.
func (p *parser) assignments() []Assignment {
	var list []Assignment
	for {
		a := Assignment{Columns: []Name{p.name()}}
		if !p.mysql || !p.acceptSymbol(assign) {
			p.expectSymbol(equal)
		}
		a.Value = p.expr()
		a.Span = p.since(a.Columns[0].From)
		list = append(list, a)
		if !p.acceptSymbol(comma) {
			return list
		}
	}
}

// setList reads the list of SET, in which other servers than MySQL take several
// columns at once.
func (p *parser) setList() []Assignment {
	if p.mysql {
		return p.assignments()
	}
	var list []Assignment
	for {
		a := Assignment{}
		from := p.tok.start
		if p.atSymbol(leftParen) {
			for _, c := range p.identList() {
				a.Columns = append(a.Columns, Name{c.Span, []Ident{c}})
			}
		} else {
			a.Columns = []Name{p.name()}
		}
		p.expectSymbol(equal)
		a.Value = p.expr()
		a.Span = p.since(from)
		list = append(list, a)
		if !p.acceptSymbol(comma) {
			return list
		}
	}
}
