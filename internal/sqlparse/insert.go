// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"math"
	"slices"
	"strconv"
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
		in.Columns = parens(&p.cursor, func() []Ident { return list(&p.cursor, p.inputColumn) })
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
// again, and neither is one with the next numbers.
func (p *parser) tuples(in *Input) {
	for {
		marks := p.numbers.marks
		row := p.tuple()
		in.Rows = append(in.Rows, row)
		switch {
		case !p.at(",") || p.out.Executable:
		case p.numbers.kind != numbered:
			p.repeatedTuples(in, row, p.numbers.marks-marks)
		case areConsecutive(row.Values):
			p.numberedTuples(in, row)
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
		end = at + len(bytes)
		again.Span = Span{at, end}
		again.FirstParam += marks
		in.add(again, len(p.text))
	}
	p.numbers.marks += again.FirstParam
	p.out.Args += again.FirstParam
	p.skipTuples(end)
}

// maxRows limits the number of rows for which memory is allocated before they are read.
const maxRows = 1 << 10

// add adds a row of a text of some length, and memory for the rows that may follow it.
func (in *Input) add(row Row, length int) {
	if len(in.Rows) == cap(in.Rows) {
		in.Rows = slices.Grow(in.Rows, min((length-row.From)/(row.To-row.From), maxRows))
	}
	in.Rows = append(in.Rows, row)
}

// skipTuples moves past tuples that end there, if there are any after tok.
func (p *parser) skipTuples(end int) {
	if end == p.tok.start {
		return
	}
	p.scanner.Skip(end - p.tok.end)
	p.tok = token{start: end - 1, end: end, kind: p.tok.kind, id: idOf(")")}
	p.next()
}

// areConsecutive reports whether values are parameters with consecutive numbers: $1, $2, $3.
func areConsecutive(values []Expr) bool {
	for i, v := range values {
		q, ok := v.(*Param)
		if !ok || q.Index != values[0].(*Param).Index+i { //nolint:forcetypeassert // it was one
			return false
		}
	}
	return len(values) > 0
}

// numberedTuples reads the tuples after the comma at tok whose parameters have the next numbers:
// after ($1, $2) the tuples ($3, $4) and ($5, $6).
func (p *parser) numberedTuples(in *Input, row Row) {
	first, again, end := row.Values[0].(*Param), row, p.tok.start //nolint:forcetypeassert // see areConsecutive
	for next := first.Index + len(row.Values); next+len(row.Values) <= math.MaxInt32; next += len(row.Values) {
		at, to := p.numberedTuple(end, p.text[first.From], next, len(row.Values))
		if to < 0 {
			break
		}
		end = to
		again.Span = Span{at, end}
		again.FirstParam += len(row.Values)
		in.add(again, len(p.text))
		p.out.Args = max(p.out.Args, next+len(row.Values))
	}
	p.skipTuples(end)
}

// numberedTuple returns the span of the tuple after a comma if it consists of n parameters with
// numbers from index+1 on. Otherwise to is -1.
func (p *cursor) numberedTuple(comma int, sign byte, index, n int) (from, to int) {
	at := skipByte(p.text, skipByte(p.text, comma, ','), '(')
	from = at - 1
	var digits [20]byte
	for i := range n {
		if i > 0 {
			at = skipByte(p.text, at, ',')
		}
		at = skipByte(p.text, at, sign)
		number := strconv.AppendInt(digits[:0], int64(index+i+1), 10)
		if at < 0 || !strings.HasPrefix(p.text[at:], string(number)) {
			return 0, -1
		}
		at += len(number)
	}
	return from, skipByte(p.text, at, ')') // a longer number ends with another byte
}

// skipByte returns the offset after spaces and a byte. It returns -1 if another byte is there, and
// after an offset of -1.
func skipByte(text string, at int, b byte) int {
	if at < 0 {
		return -1
	}
	if at = skipSpace(text, at); at == len(text) || text[at] != b {
		return -1
	}
	return at + 1
}

// repeated returns the start of the tuple after a comma if it has the same bytes as another one,
// otherwise -1.
func (p *cursor) repeated(at int, bytes string) int {
	if at = skipByte(p.text, at, ','); at < 0 {
		return -1
	}
	if at = skipSpace(p.text, at); !strings.HasPrefix(p.text[at:], bytes) {
		return -1
	}
	return at
}

func skipSpace(text string, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] >= '\t' && text[at] <= '\r') {
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
			c.Constraint = p.ident()
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
