// SPDX-License-Identifier: Apache-2.0

package sqlparse

// modifies lists the first words of data-modifying CTEs. MERGE is not parsed.
var modifies = map[string]bool{"insert": true, "update": true, "delete": true}

// readModifying reads a data-modifying CTE in parentheses, which sees the CTEs before it.
func readModifying(p *parser, c *CTE, earlier With) {
	if p.d.Family != PostgreSQL || earlier.Recursive {
		p.fail()
	}
	var with *With
	if earlier.Tables != nil {
		earlier.To = earlier.Tables[len(earlier.Tables)-1].To
		with = &earlier
	}
	p.expect("(")
	before := p.out.Names
	p.out.Names = nil
	if from := p.tok.start; p.at("insert") {
		p.input(from, with)
	} else {
		p.change(from, with)
	}
	p.expect(")")
	w := &Statement{Verb: p.out.Verb, Insert: p.out.Insert, Change: p.out.Change, Names: p.out.Names}
	p.out.Verb, p.out.Insert, p.out.Change, p.out.Names = Unknown, nil, nil, before
	for _, name := range w.Names {
		p.noteTable(name)
	}
	if p.out.Writes = append(p.out.Writes, w); !p.failed {
		c.Written, c.Query = returned(w)
	}
}

// shareText gives the data-modifying CTEs what they have in common with the whole statement.
func shareText(out *Statement) {
	for _, w := range out.Writes {
		w.Text, w.Params, w.Args, w.Executable, w.Limiting = out.Text, out.Params, out.Args, out.Executable, out.Limiting
	}
}

// returned returns the table of a write, and a query that stands for the rows which the write returns.
func returned(w *Statement) (*Table, *Query) {
	c := &Core{}
	var table *Table
	if in := w.Insert; in != nil {
		table, c.Span, c.Items, c.Where = &in.Table, in.Span, in.Returning, inserted(in)
	} else {
		table, c.Span, c.Items, c.Where = &w.Change.Targets[0], w.Change.Span, w.Change.Returning, w.Change.Where
		c.From = w.Change.From
	}
	c.From = append([]Source{{Span: table.Span, Table: table}}, c.From...)
	c.ItemsEnd = c.To
	return table, &Query{Span: c.Span, Parts: []*Part{{Span: c.Span, Select: c}}, After: c.To}
}

// inserted returns a condition that the rows of VALUES satisfy: each column has one of its values. It leaves out columns with
// DEFAULT, and returns nil if rows share expressions.
func inserted(in *Input) Expr {
	all := &Operation{Span: in.Span, Op: And}
	for i, c := range in.Columns {
		is := &Operation{Span: in.Span, Op: In, Operands: []Expr{&Column{Name{Span: c.Span, Parts: []Ident{c}}}}}
		for _, row := range in.Rows {
			if row.FirstParam != 0 || i >= len(row.Values) {
				return nil
			}
			if l, ok := row.Values[i].(*Literal); !ok || l.Kind != Default {
				is.Operands = append(is.Operands, row.Values[i])
			}
		}
		if len(is.Operands) == len(in.Rows)+1 && len(in.Rows) > 0 {
			all.Operands = append(all.Operands, is)
		}
	}
	switch len(all.Operands) {
	case 0:
		return nil
	case 1:
		return all.Operands[0]
	}
	return all
}
