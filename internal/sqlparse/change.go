package sqlparse

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

func (p *parser) update(from int, with *With) *Change {
	c := &Change{With: with}
	_, c.Or = p.writeWords()
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

// writeWords reads what stands between INSERT, UPDATE or DELETE and the table: MySQL's
// IGNORE, and another word than IGNORE of SQLite's OR.
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

func (p *parser) delete(from int, with *With) *Change {
	c := &Change{With: with}
	p.writeWords()
	if p.mysql && p.atBoth("history", "from") {
		p.fail() // MariaDB's DELETE HISTORY
	}
	word := "from"
	if c.Multi = p.mysql && !p.at("from"); !c.Multi {
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
	p.noteTable(name.Last().Name)
	return Table{Span: name.Span, Name: name}
}

// changeTail reads what stands behind the tables and the assignments. RETURNING stands
// before ORDER BY in SQLite, and at the end elsewhere.
func (p *parser) changeTail(c *Change) {
	c.Where = p.optional("where")
	c.Returning = p.returning()
	if p.d.Family != PostgreSQL {
		c.OrderBy = p.orderBy()
		if p.at("limit") {
			c.Limit = p.limit()
		}
	}
	if c.Returning == nil {
		c.Returning = p.returning()
	}
}

func (p *parser) returning() []Item {
	if !p.accept("returning") {
		return nil
	}
	return p.items()
}

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
