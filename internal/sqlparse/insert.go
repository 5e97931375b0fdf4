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
		in.Overridden = strings.EqualFold(p.textOf(p.tok), "user")
		if !in.Overridden && !strings.EqualFold(p.textOf(p.tok), "system") {
			p.fail()
		}
		p.next()
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
			shift := p.sharing(in, row, p.numbers.marks-marks, p.repeated)
			p.numbers.marks += shift
			p.out.Args += shift
		case areConsecutive(row.Values):
			shift := p.sharing(in, row, len(row.Values), p.renumbered)
			p.out.Args = max(p.out.Args, row.Values[0].(*Param).Index+len(row.Values)+shift)
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

// maxRows limits the number of rows for which memory is allocated before they are read.
const maxRows = 1 << 10

// sharing reads the tuples after the comma at tok, as long as next finds one that can share the expressions of a row and takes
// so many other arguments. It returns by how many arguments the last one is behind the row.
func (p *parser) sharing(in *Input, row Row, args int, next func(row Row, comma, shift int) (from, to int)) (shift int) {
	end := p.tok.start
	for {
		from, to := next(row, end, shift+args)
		if to < 0 {
			break
		}
		end, shift = to, shift+args
		if len(in.Rows) == cap(in.Rows) {
			in.Rows = slices.Grow(in.Rows, min((len(p.text)-from)/(to-from), maxRows))
		}
		in.Rows = append(in.Rows, Row{Span{from, to}, row.Values, shift})
	}
	if end > p.tok.start {
		p.scanner.Skip(end - p.tok.end)
		p.tok = token{start: end - 1, end: end, kind: p.tok.kind, id: idOf(")")}
		p.next()
	}
	return shift
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

// renumbered returns the span of the tuple after a comma if it consists of parameters with the numbers of the row's, moved:
// after ($1, $2) the tuples ($3, $4) and ($5, $6). Otherwise to is -1.
func (p *cursor) renumbered(row Row, comma, shift int) (from, to int) {
	first := row.Values[0].(*Param) // see areConsecutive
	if first.Index+shift+len(row.Values) > math.MaxInt32 {
		return 0, -1
	}
	at := skipByte(p.text, skipByte(p.text, comma, ','), '(')
	from = at - 1
	var digits [20]byte
	for i := range row.Values {
		if i > 0 {
			at = skipByte(p.text, at, ',')
		}
		at = skipByte(p.text, at, p.text[first.From])
		number := strconv.AppendInt(digits[:0], int64(first.Index+shift+i+1), 10)
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

// repeated returns the span of the tuple after a comma if it has the same bytes as the row. Otherwise to is -1.
func (p *cursor) repeated(row Row, comma, _ int) (from, to int) {
	from = skipByte(p.text, comma, ',')
	if from < 0 {
		return 0, -1
	}
	if from = skipSpace(p.text, from); !strings.HasPrefix(p.text[from:], row.Of(p.text)) {
		return 0, -1
	}
	return from, from + row.To - row.From
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
