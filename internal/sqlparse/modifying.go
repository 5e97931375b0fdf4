// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"slices"
	"strings"
)

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
		c.Write, c.Query = w, returned(w)
	}
}

// shareText gives the data-modifying CTEs what they have in common with the whole statement.
func shareText(out *Statement) {
	for _, w := range out.Writes {
		w.Text, w.Params, w.Args, w.Executable, w.Limiting = out.Text, out.Params, out.Args, out.Executable, out.Limiting
	}
}

// returned returns a query that stands for the rows which a write returns. Of the rows of an INSERT it says nothing.
func returned(w *Statement) *Query {
	c := &Core{}
	if in := w.Insert; in != nil {
		c.Span, c.Items, c.From = in.Span, in.Returning, sources(&in.Table, nil)
	} else {
		of := w.Change
		c.Span, c.Items, c.From, c.Where = of.Span, of.Returning, sources(&of.Targets[0], of.From), lasting(of)
	}
	c.ItemsEnd = c.To
	return &Query{Span: c.Span, Parts: []*Part{{Span: c.Span, Select: c}}, After: c.To}
}

// sources returns a table and others behind it.
func sources(table *Table, others []Source) []Source {
	return append([]Source{{Span: table.Span, Table: table}}, others...)
}

// lasting returns the conditions of an UPDATE or DELETE that its rows satisfy also when it returns them: those without the
// columns to which SET assigns. It leaves out conditions with subqueries, which may have these columns in them.
func lasting(c *Change) Expr {
	if c.Set == nil {
		return c.Where
	}
	left := slices.DeleteFunc(Conjuncts(c.Where), func(e Expr) bool { return mayChange(e, c.Set) })
	switch len(left) {
	case 0:
		return nil
	case 1:
		return left[0]
	}
	return &Operation{Span: c.Where.Bytes(), Op: And, Operands: left}
}

// mayChange reports whether SET may change the value of an expression.
func mayChange(e Expr, set []Assignment) bool {
	switch e := e.(type) {
	case *Subquery:
		return true
	case *Column:
		return slices.ContainsFunc(set, func(a Assignment) bool {
			return slices.ContainsFunc(a.Columns, func(n Name) bool { return strings.EqualFold(n.Last().Name, e.Last().Name) })
		})
	}
	return slices.ContainsFunc(Operands(e), func(e Expr) bool { return mayChange(e, set) })
}
