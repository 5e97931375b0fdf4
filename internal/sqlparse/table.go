// SPDX-License-Identifier: Apache-2.0

package sqlparse

// table reads a table's name with its alias and hints, PostgreSQL's ONLY (name) included.
func (p *nameReader) table() *Table {
	from := p.tok.start
	if p.d.Family == PostgreSQL && p.accept("only") && p.at("(") {
		return p.tableOf(from, parens(&p.cursor, p.tableName))
	}
	return p.tableOf(from, p.tableName())
}

// tableOf reads the text after the name of a table.
func (p *nameReader) tableOf(from int, name Name) *Table {
	t := p.tables.put(Table{Name: name})
	if p.d.Family == PostgreSQL {
		p.accept("*")
	}
	if p.mysql {
		t.Partition = p.partition()
	}
	t.Alias = p.alias(p.d.Family == SQLite)
	if p.d.Family == PostgreSQL && t.Alias.Name != "" && p.at("(") {
		p.fail() // a list of column names
	}
	p.hints()
	t.Span = p.since(from)
	return t
}

// partition reads PARTITION (a, b), if there is one.
func (p *nameReader) partition() Span {
	from := p.tok.start
	if !p.accept("partition") {
		return Span{}
	}
	p.skipParens()
	return p.since(from)
}

// hints reads MySQL's USE INDEX (…) and SQLite's INDEXED BY.
func (p *nameReader) hints() {
	for p.mysql && (p.accept("use") || p.accept("force") || p.accept("ignore")) {
		if !p.accept("index") {
			p.expect("key")
		}
		if p.accept("for") && !p.accept("join") && !p.accept("order", "by") {
			p.expect("group", "by")
		}
		p.skipParens()
	}
	if p.d.Family != SQLite {
		return
	}
	if p.accept("indexed", "by") {
		p.ident()
	}
	p.accept("not", "indexed")
}
