// SPDX-License-Identifier: Apache-2.0

package sqlparse

// sourceReader reads the text after FROM.
type sourceReader struct{ exprReader }

func (p *sourceReader) sources() []Source { return list(&p.cursor, p.joined) }

// joined reads one element of a list: a source and its joins. SQLite joins to all preceding
// elements, which makes a difference for some joins.
func (p *sourceReader) joined() Source {
	behindComma := p.last.is() == ","
	s := p.source()
	for {
		word := p.tok
		j, natural := p.joinWords()
		if j == nil {
			return s
		}
		left, right := s, p.source()
		j.Left, j.Right = &left, &right
		switch {
		case p.at("on") && p.peek().is() != "conflict" && p.peek().is() != "duplicate":
			p.next()
			j.On = p.expr()
		case p.accept("using"):
			if j.Using = p.identList(); j.Using == nil {
				p.fail()
			}
		}
		if j.Kind == CrossJoin && (j.On != nil || j.Using != nil) {
			j.Kind = InnerJoin
		}
		j.Span = p.since(s.From)
		if behindComma && p.d.Family == SQLite && (natural || j.Using != nil || j.Kind == RightJoin || j.Kind == FullJoin) {
			p.failAt(word)
		}
		s = Source{Span: j.Span, Join: j}
	}
}

var joinKinds = map[string]JoinKind{"inner": InnerJoin, "left": LeftJoin, "right": RightJoin, "full": FullJoin, "cross": CrossJoin}

// joinWords reads JOIN and the words before it. It returns nil if there is no JOIN.
func (p *sourceReader) joinWords() (j *Join, natural bool) {
	if p.mysql && p.accept("straight_join") {
		return &Join{}, false
	}
	natural = p.accept("natural")
	kind, known := joinKinds[p.tok.is()]
	switch {
	case known && !(p.mysql && kind == FullJoin):
		p.next()
		p.accept("outer")
	case !natural && !p.at("join"):
		return nil, false
	}
	p.expect("join")
	return &Join{Kind: kind}, natural
}

// source reads one table, subquery, table function or list in parentheses.
func (p *sourceReader) source() Source {
	from := p.tok.start
	p.enter()
	defer p.leave()
	s := Source{Lateral: p.accept("lateral")}
	switch {
	case p.at("("):
		p.parenSource(&s)
	case p.d.Family == PostgreSQL && p.at("only"):
		s.Table = p.table()
	default:
		name := p.tableName()
		if !p.at("(") {
			s.Table = p.tableOf(from, name)
			break
		}
		s.Function = p.call(name)
		s.Ordinal = p.d.Family == PostgreSQL && p.accept("with", "ordinality")
		if s.Alias = p.alias(p.d.Family == SQLite); s.Alias.Name != "" && p.at("(") {
			s.Columns = parens(&p.cursor, func() []Ident { return list(&p.cursor, p.functionColumn) })
		}
	}
	s.Span = p.since(from)
	return s
}

// functionColumn reads the name of a column of a table function, and on PostgreSQL its type if it has one.
func (p *sourceReader) functionColumn() Ident {
	name := p.ident()
	if p.d.Family == PostgreSQL && !p.at(",") && !p.at(")") {
		p.castType()
	}
	return name
}

// parenSource reads (query) alias, or sources in parentheses.
func (p *sourceReader) parenSource(s *Source) {
	p.expect("(")
	if p.atRows() {
		s.Query = p.inner.query()
	} else {
		inner := p.sourceList()
		if inner.Query == nil || inner.Alias.Name != "" || inner.Lateral {
			p.expect(")")
			if s.Lateral || p.alias(true).Name != "" {
				p.fail() // an alias of a whole join hides the names in it
			}
			*s = inner
			return
		}
		s.Query = p.inner.nested(inner.Span, inner.Query)
	}
	p.expect(")")
	p.sourceAlias(s)
}

// sourceList reads (a JOIN b) and MySQL's (a, b).
func (p *sourceReader) sourceList() Source {
	s := p.joined()
	for p.accept(",") {
		left, right := s, p.joined()
		span := p.since(left.From)
		s = Source{Span: span, Join: &Join{Span: span, Kind: CrossJoin, Left: &left, Right: &right}}
	}
	return s
}

// sourceAlias reads [AS] alias [(columns)].
func (p *sourceReader) sourceAlias(s *Source) {
	if s.Alias = p.alias(p.d.Family == SQLite); s.Alias.Name != "" {
		s.Columns = p.identList()
	}
}

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
	t := &Table{Name: name}
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
