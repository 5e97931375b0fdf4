// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"slices"
	"strings"
)

// input reads an INSERT or REPLACE after its WITH.
func (p *parser) input(from int, with *With) {
	in := &Input{With: with}
	p.out.Insert, p.out.Verb = in, Insert
	if p.d.Family != PostgreSQL && p.accept("replace") {
		p.out.Verb = Replace
	} else {
		p.expect("insert")
	}
	if in.Ignore, in.Or = p.writeWords(); in.Or == "REPLACE" {
		p.out.Verb, in.Or = Replace, ""
	}
	p.accept("into")
	p.inputTable(&in.Table)
	p.inputRows(in, p.inputColumns(in))
	if p.mysql && p.accept("as") { // VALUES (…) AS new (a, b)
		p.ident()
		p.identList()
	}
	for p.accept("on") {
		in.Conflicts = append(in.Conflicts, p.conflict())
	}
	in.Returning = p.returning()
	in.Span = p.since(from)
}

// inputTable reads the table of an INSERT, whose alias needs AS.
func (p *parser) inputTable(t *Table) {
	t.Name = p.tableName()
	if p.mysql {
		t.Partition = p.partition()
	} else if p.accept("as") {
		t.Alias = p.anyIdent()
	}
	t.Span = p.since(t.Name.From)
}

// inputColumns reads the list of columns and reports whether it is there.
func (p *parser) inputColumns(in *Input) bool {
	if !p.at("(") || p.atQuery() {
		return false
	}
	if !p.mysql || !p.accept("(", ")") {
		in.Columns = parens(&p.cursor, func() []Ident { return list(&p.cursor, &p.idents, p.inputColumn) })
	}
	return true
}

// inputColumn reads a column, which MySQL allows to be qualified with the table's name.
func (p *parser) inputColumn() Ident {
	if !p.mysql {
		return p.ident()
	}
	return p.name().Last()
}

// inputRows reads the source of the rows.
func (p *parser) inputRows(in *Input, columns bool) {
	if p.d.Family == PostgreSQL && p.accept("overriding") {
		p.next() // SYSTEM, USER
		p.expect("value")
	}
	switch {
	case p.accept("values"), p.mysql && p.accept("value"):
		p.tuples(in)
	case p.mysql && !columns && p.accept("set"):
		p.inputSet(in)
	case !p.mysql && p.accept("default", "values"):
		in.Default = true
	case p.atQuery():
		in.Query = p.query()
	default:
		p.fail()
	}
}

// inputSet reads MySQL's INSERT … SET as one row.
func (p *parser) inputSet(in *Input) {
	from, row := p.tok.start, Row{}
	for _, a := range p.assignments() {
		in.Columns = append(in.Columns, a.Columns[0].Last())
		row.Values = append(row.Values, a.Value)
	}
	row.Span = p.since(from)
	in.Rows = []Row{row}
}

// tuples reads the rows after VALUES. A row with the same bytes as the row before it is not read
// again.
func (p *parser) tuples(in *Input) {
	for {
		marks := p.numbers.marks
		row := p.tuple()
		in.Rows = append(in.Rows, row)
		if p.at(",") && !p.out.Executable && p.numbers.kind != numbered { // numbered parameters differ between rows, or take the same arguments
			p.repeatedTuples(in, row, p.numbers.marks-marks)
		}
		if !p.accept(",") {
			return
		}
	}
}

func (p *queryReader) tuple() Row {
	from := p.tok.start
	p.accept("row")
	row := Row{}
	if !p.mysql || !p.accept("(", ")") {
		row.Values = parens(&p.cursor, p.exprs)
	}
	row.Span = p.since(from)
	return row
}

// repeatedTuples reads the tuples after the comma at tok that have the same bytes as row, which has
// this many ?.
func (p *parser) repeatedTuples(in *Input, row Row, marks int) {
	bytes, again, end := row.Of(p.text), row, p.tok.start
	for at := p.repeated(end, bytes); at >= 0; at = p.repeated(end, bytes) {
		if len(in.Rows) == cap(in.Rows) {
			in.Rows = slices.Grow(in.Rows, min((len(p.text)-at)/len(bytes), maxRows))
		}
		end = at + len(bytes)
		again.Span = Span{at, end}
		again.FirstParam += marks
		in.Rows = append(in.Rows, again)
	}
	if end == p.tok.start {
		return
	}
	p.numbers.marks += again.FirstParam
	p.out.Args += again.FirstParam
	p.scanner.Skip(end - p.tok.end)
	p.tok = token{start: end - 1, end: end, kind: p.tok.kind, id: idOf(")")}
	p.next()
}

// maxRows limits the number of rows for which memory is allocated before they are read.
const maxRows = 1 << 10

// repeated returns the start of the tuple after a comma if it has the same bytes as another one,
// otherwise -1.
func (p *parser) repeated(at int, bytes string) int {
	if at = p.skipSpace(at); at == len(p.text) || p.text[at] != ',' {
		return -1
	}
	if at = p.skipSpace(at + 1); !strings.HasPrefix(p.text[at:], bytes) {
		return -1
	}
	return at
}

func (p *parser) skipSpace(at int) int {
	for at < len(p.text) && (p.text[at] == ' ' || p.text[at] >= '\t' && p.text[at] <= '\r') {
		at++
	}
	return at
}

// conflict reads ON DUPLICATE KEY UPDATE and ON CONFLICT after their ON.
func (p *parser) conflict() Conflict {
	c := Conflict{}
	from := p.last.start
	switch {
	case p.mysql:
		p.expect("duplicate", "key", "update")
		c.Set = p.assignments()
	case p.accept("conflict"):
		if p.accept("on", "constraint") {
			p.ident()
		} else if p.at("(") {
			c.Target = parens(&p.cursor, p.exprs)
			c.Partial = p.optional("where")
		}
		p.expect("do")
		if c.Nothing = p.accept("nothing"); !c.Nothing {
			p.expect("update", "set")
			c.Set = p.assignments()
			c.Where = p.optional("where")
		}
	default:
		p.fail()
	}
	c.Span = p.since(from)
	return c
}
