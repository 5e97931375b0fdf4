// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"slices"
	"strings"
)

// change reads an UPDATE or DELETE after its WITH.
func (p *parser) change(from int, with *With) {
	c := &Change{With: with}
	p.out.Change, p.out.Verb = c, Update
	if p.accept("update") {
		p.update(c)
	} else {
		p.expect("delete")
		p.out.Verb = Delete
		p.delete(c)
	}
	c.Where = p.optional("where")
	c.Returning = p.returning() // in SQLite it is before ORDER BY, elsewhere at the end
	if p.d.Family != PostgreSQL {
		c.OrderBy = p.orderBy()
		if p.at("limit") {
			c.Limit = p.limit()
		}
	}
	if c.Returning == nil {
		c.Returning = p.returning()
	}
	c.Span = p.since(from)
}

func (p *parser) update(c *Change) {
	c.Ignore, c.Or = p.writeWords()
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
}

// writeWords reads the words between INSERT, UPDATE or DELETE and the table: MySQL's IGNORE, and
// the word after SQLite's OR, unless it is IGNORE.
func (p *parser) writeWords() (ignore bool, or string) {
	if p.d.Family == SQLite && p.accept("or") {
		or = strings.ToUpper(p.textOf(p.tok))
		if !slices.Contains([]string{"IGNORE", "ABORT", "FAIL", "ROLLBACK", "REPLACE"}, or) {
			p.fail()
		}
		p.next()
		if or == "IGNORE" {
			return true, ""
		}
		return false, or
	}
	for p.mysql && (p.tok.class().is(priority) || p.at("quick") && p.out.Verb == Delete) {
		p.next()
	}
	return p.mysql && p.accept("ignore"), ""
}

func (p *parser) delete(c *Change) {
	p.writeWords()
	switch {
	case p.atBoth("history", "from"):
		p.fail() // MariaDB's DELETE HISTORY
	case p.mysql:
		p.deleted(c)
	default:
		p.expect("from")
		c.Targets = []Table{*p.table()}
		if p.d.Family == PostgreSQL && p.accept("using") {
			c.From = p.sources()
		}
	}
}

// deleted reads MySQL's FROM a, FROM a, b USING … and a, b FROM ….
func (p *parser) deleted(c *Change) {
	c.Multi = !p.accept("from")
	c.Targets = list(&p.cursor, p.target)
	if c.Multi {
		p.expect("from")
	} else {
		c.Multi = p.accept("using")
	}
	switch t := c.Targets[0]; {
	case c.Multi:
		c.From = p.sources()
	case len(c.Targets) > 1:
		p.fail()
	default:
		c.Targets[0] = *p.tableOf(t.From, t.Name)
	}
}

// target reads a target of MySQL's DELETE of several tables: a, b.*.
func (p *parser) target() Table {
	name, _ := p.nameOrStar()
	p.noteTable(name.Last().Name)
	return Table{Span: name.Span, Name: name}
}

func (p *parser) returning() []Item {
	if !p.accept("returning") {
		return nil
	}
	return p.items()
}

func (p *parser) assignments() []Assignment { return list(&p.cursor, p.assignment) }

// assignment reads column = value, or (a, b) = value, which MySQL does not support.
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
	at, of := p.tok.start, []Expr(nil)
	for p.d.Family == PostgreSQL && p.accept("[") { // an element of an array, or a member of a jsonb
		of = p.operandsUntil(of, "]")
	}
	isPart := p.tok.start != at
	if !p.accept("==") && (!p.mysql || !p.accept(":=")) {
		p.expect("=")
	}
	a.Value = p.expr()
	if isPart { // the value of the column is computed from this one
		a.Value = p.around(Opaque, at, append(of, a.Value)...)
	}
	a.Span = p.since(from)
	return a
}
