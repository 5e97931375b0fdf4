package sqlparse

import (
	"slices"
	"strings"
)

// input reads an INSERT or REPLACE behind its WITH.
func (p *parser) input(from int, with *With) {
	in := &Input{With: with}
	p.out.Insert, p.out.Verb = in, Insert
	if p.d.Family != PostgreSQL && p.accept(kwReplace) {
		p.out.Verb = Replace
	} else {
		p.expect(kwInsert)
	}
	p.inputWords(in)
	p.accept(kwInto)
	in.Table = p.inputTable()
	p.inputColumns(in)
	p.inputRows(in)
	in.RowsEnd = p.last.end
	if p.mysql && p.accept(kwAs) {
		p.rowAlias(in)
	}
	for p.at(kwOn) {
		in.Conflicts = append(in.Conflicts, p.conflict())
	}
	in.ReturningAt = p.last.end
	if p.accept(kwReturning) {
		in.Returning = p.items()
	}
	in.Span = p.since(from)
}

// inputWords reads the words between INSERT and INTO.
func (p *parser) inputWords(in *Input) {
	if p.d.Family == SQLite {
		if p.out.Verb == Insert {
			in.Ignore, in.Or = p.orWord()
		}
		if in.Or == "REPLACE" {
			p.out.Verb, in.Or = Replace, ""
		}
		return
	}
	if !p.mysql {
		return
	}
	for p.acceptText("LOW_PRIORITY") || p.acceptText("HIGH_PRIORITY") || p.acceptText("DELAYED") { //nolint:revive // the call is the body
	}
	in.Ignore = p.accept(kwIgnore)
}

// orWord reads SQLite's OR IGNORE, OR ABORT and their like.
func (p *parser) orWord() (ignore bool, word string) {
	if !p.accept(kwOr) {
		return false, ""
	}
	word = strings.ToUpper(p.textOf(p.tok))
	p.next()
	switch word {
	case "IGNORE":
		return true, ""
	case "ABORT", "FAIL", "ROLLBACK", "REPLACE":
		return false, word
	}
	p.fail()
	return false, ""
}

// inputTable reads the table of an INSERT, whose alias needs AS.
func (p *parser) inputTable() Table {
	t := *p.tableName()
	if p.mysql && p.at(kwPartition) {
		t.Partition = p.partition()
	}
	if !p.mysql && p.accept(kwAs) {
		t.Alias = p.anyIdent()
	}
	t.Span = p.since(t.Name.From)
	return t
}

func (p *parser) inputColumns(in *Input) {
	if !p.atSymbol(leftParen) || p.atNestedQuery() {
		return
	}
	in.HasColumns = true
	if p.mysql && p.peek().symbol == rightParen {
		p.next()
		p.next()
		return
	}
	p.next()
	for {
		in.Columns = append(in.Columns, p.inputColumn())
		if !p.acceptSymbol(comma) {
			break
		}
	}
	p.expectSymbol(rightParen)
}

// inputColumn reads a column, which MySQL lets the table's name stand before.
func (p *parser) inputColumn() Ident {
	if !p.mysql {
		return p.ident()
	}
	return p.name().last()
}

// inputRows reads where the rows come from.
func (p *parser) inputRows(in *Input) {
	if p.d.Family == PostgreSQL && p.accept(kwOverriding) {
		in.Overriding = strings.ToUpper(p.textOf(p.tok)) + " VALUE"
		p.next()
		p.expect(kwValue)
	}
	switch {
	case p.at(kwValues), p.mysql && p.at(kwValue):
		p.next()
		p.tuples(in)
	case p.mysql && !in.HasColumns && p.accept(kwSet):
		p.inputSet(in)
	case !p.mysql && p.acceptTexts("DEFAULT", "VALUES"):
		in.Default = true
	case p.atQuery():
		in.Query = p.query()
	default:
		p.fail()
	}
}

// inputSet reads MySQL's INSERT … SET as one row.
func (p *parser) inputSet(in *Input) {
	row := Row{}
	from := p.tok.start
	for _, a := range p.assignments() {
		in.Columns = append(in.Columns, a.Columns[0].last())
		row.Values = append(row.Values, a.Value)
	}
	row.Span = p.since(from)
	in.Rows, in.HasColumns, in.ByColumns = []Row{row}, true, true
}

// tuples reads the rows behind VALUES. A row with the same bytes as the row
// before it is not read again.
func (p *parser) tuples(in *Input) {
	for {
		marks := p.params.marks
		row := p.tuple()
		in.Rows = append(in.Rows, row)
		if p.atSymbol(comma) && !p.out.Executable {
			p.repeatedTuples(in, row, p.params.marks-marks)
		}
		if !p.acceptSymbol(comma) {
			return
		}
	}
}

func (p *parser) tuple() Row {
	from := p.tok.start
	p.accept(kwRow)
	p.expectSymbol(leftParen)
	row := Row{}
	if !p.mysql || !p.atSymbol(rightParen) {
		row.Values = p.exprs()
	}
	p.expectSymbol(rightParen)
	row.Span = p.since(from)
	return row
}

// repeatedTuples reads the tuples behind the comma at tok that are written like a
// row with so many ?.
func (p *parser) repeatedTuples(in *Input, row Row, marks int) {
	bytes := row.Of(p.text)
	again := row
	end := p.tok.start // of the last row
	for {
		at := p.skipSpace(end)
		if at == len(p.text) || p.text[at] != ',' {
			break
		}
		at = p.skipSpace(at + 1)
		if !strings.HasPrefix(p.text[at:], bytes) {
			break
		}
		if len(in.Rows) == cap(in.Rows) {
			in.Rows = slices.Grow(in.Rows, p.expectedTuples(len(in.Rows), len(bytes)))
		}
		end = at + len(bytes)
		again.Span = Span{at, end}
		again.FirstParam += marks
		in.Rows = append(in.Rows, again)
	}
	if again.From == row.From {
		return
	}
	p.params.marks += again.FirstParam
	p.out.Args += again.FirstParam
	p.scanner.Skip(end - p.tok.end)
	p.tok = token{start: end - 1, end: end, kind: p.tok.kind, symbol: rightParen}
	p.next()
}

func (p *parser) skipSpace(at int) int {
	for at < len(p.text) && (p.text[at] == ' ' || p.text[at] >= '\t' && p.text[at] <= '\r') {
		at++
	}
	return at
}

// expectedTuples returns how many tuples of a length there can be in the rest of
// the text, but no more than four times those that were read.
func (p *parser) expectedTuples(read, length int) int {
	return min((len(p.text)-p.tok.start)/(length+1), 4*read+64) + 1
}

// rowAlias reads MySQL's AS new (a, b) behind the rows.
func (p *parser) rowAlias(in *Input) {
	s := &Source{}
	s.Alias = p.ident()
	if p.atSymbol(leftParen) {
		s.Columns = p.identList()
	}
	s.Span = p.since(s.Alias.From)
	in.RowAlias = s
}

// conflict reads ON DUPLICATE KEY UPDATE and ON CONFLICT.
func (p *parser) conflict() Conflict {
	c := Conflict{}
	from := p.tok.start
	p.expect(kwOn)
	if p.mysql {
		p.expectText("DUPLICATE")
		p.expectText("KEY")
		p.expect(kwUpdate)
		c.Duplicate = true
		c.Set = p.assignments()
	} else {
		p.expect(kwConflict)
		p.conflictTarget(&c)
		p.expect(kwDo)
		p.conflictAction(&c)
	}
	c.Span = p.since(from)
	return c
}

func (p *parser) conflictTarget(c *Conflict) {
	if p.accept(kwOn) {
		p.expectText("CONSTRAINT")
		c.Constraint = p.ident()
		return
	}
	if !p.acceptSymbol(leftParen) {
		return
	}
	c.Target = p.exprs()
	p.expectSymbol(rightParen)
	if p.accept(kwWhere) {
		c.Partial = p.expr()
	}
}

func (p *parser) conflictAction(c *Conflict) {
	if p.acceptText("NOTHING") {
		c.Nothing = true
		return
	}
	p.expect(kwUpdate)
	p.expect(kwSet)
	c.Set = p.setList()
	if p.accept(kwWhere) {
		c.Where = p.expr()
	}
}
