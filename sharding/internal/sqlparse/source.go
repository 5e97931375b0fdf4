package sqlparse

// sources reads the list of FROM.
func (p *parser) sources() []Source {
	var list []Source
	for {
		list = append(list, p.joined(len(list) > 0))
		if !p.acceptSymbol(comma) {
			return list
		}
	}
}

// joined reads one element of a list: a source and what is joined to it. SQLite
// joins to all elements before it, which makes a difference for some joins.
func (p *parser) joined(behindComma bool) Source {
	s := p.source()
	for {
		word := p.tok
		kind, natural, ok := p.joinWords()
		if !ok {
			return s
		}
		right := p.source()
		j := &Join{Kind: kind, Natural: natural, Left: &Source{}, Right: &right}
		*j.Left = s
		p.joinCondition(j)
		j.Span = p.since(s.From)
		if behindComma && p.d.Family == SQLite && (natural || j.Using != nil || kind == RightJoin || kind == FullJoin) {
			p.failAt(word)
		}
		s = Source{Span: j.Span, Join: j}
	}
}

func (p *parser) joinCondition(j *Join) {
	switch {
	case p.at(kwOn) && p.peek().word != kwConflict && !p.isText(p.peek(), "DUPLICATE"):
		p.next()
		j.On = p.expr()
	case p.accept(kwUsing):
		j.Using = p.identList()
	default:
		return
	}
	if j.Kind == CrossJoin {
		j.Kind = InnerJoin
	}
}

// joinWords reads JOIN and the words before it.
func (p *parser) joinWords() (kind JoinKind, natural, ok bool) {
	if p.mysql && p.accept(kwStraightJoin) {
		return InnerJoin, false, true
	}
	natural = p.accept(kwNatural)
	switch {
	case p.accept(kwInner):
	case p.accept(kwCross):
		kind = CrossJoin
	case p.accept(kwLeft):
		kind = LeftJoin
	case p.accept(kwRight):
		kind = RightJoin
	case !p.mysql && p.accept(kwFull):
		kind = FullJoin
	case p.at(kwJoin):
	case natural:
		p.fail()
	default:
		return 0, false, false
	}
	if kind == LeftJoin || kind == RightJoin || kind == FullJoin {
		p.accept(kwOuter)
	}
	p.expect(kwJoin)
	return kind, natural, true
}

// source reads one table, subquery, table function or list in parentheses.
func (p *parser) source() Source {
	from := p.tok.start
	if !p.enter() {
		return Source{}
	}
	defer p.leave()
	lateral := p.accept(kwLateral)
	s := Source{Lateral: lateral}
	switch {
	case p.atSymbol(leftParen) && p.atSourceQuery():
		s.Query = p.parenthesized()
		p.sourceAlias(&s)
	case p.atSymbol(leftParen):
		s = p.sourceList(lateral)
	case p.d.Family == PostgreSQL && p.at(kwOnly):
		s.Table = p.onlyTable()
	default:
		p.namedSource(&s)
	}
	s.Span = p.since(from)
	return s
}

// atSourceQuery is [parser.atNestedQuery] in FROM, where VALUES is no function.
func (p *parser) atSourceQuery() bool {
	return p.peek().word == kwValues || p.atNestedQuery()
}

// sourceList reads (a JOIN b) and MySQL's (a, b).
func (p *parser) sourceList(lateral bool) Source {
	p.expectSymbol(leftParen)
	s := p.joined(false)
	for p.acceptSymbol(comma) {
		left, right := s, p.joined(true)
		s = Source{Join: &Join{Kind: CrossJoin, Left: &left, Right: &right}}
		s.Span = p.since(left.From)
		s.Join.Span = s.Span
	}
	p.expectSymbol(rightParen)
	if lateral || p.alias(true).Name != "" {
		p.fail() // an alias of a whole join hides the names in it
	}
	return s
}

// namedSource reads a table or a table function.
func (p *parser) namedSource(s *Source) {
	name := p.name()
	p.names.add(name.last().Name)
	if !p.atSymbol(leftParen) {
		s.Table = p.table(name)
		return
	}
	s.Function = p.call(name)
	p.sourceAlias(s)
}

// sourceAlias reads [AS] alias [(columns)].
func (p *parser) sourceAlias(s *Source) {
	s.Alias = p.alias(p.d.Family == SQLite)
	if s.Alias.Name != "" && p.atSymbol(leftParen) {
		s.Columns = p.identList()
	}
}

// onlyTable reads PostgreSQL's ONLY name and ONLY (name).
func (p *parser) onlyTable() *Table {
	from := p.tok.start
	p.expect(kwOnly)
	parens := p.acceptSymbol(leftParen)
	t := &Table{Name: p.name(), Only: true}
	p.names.add(t.Name.last().Name)
	if parens {
		p.expectSymbol(rightParen)
	}
	t.Alias = p.alias(false)
	t.Span = p.since(from)
	return t
}

// tableName reads the name of a table alone.
func (p *parser) tableName() *Table {
	name := p.name()
	p.names.add(name.last().Name)
	return &Table{Span: name.Span, Name: name}
}

// table reads what stands behind the name of a table.
func (p *parser) table(name Name) *Table {
	t := &Table{Name: name}
	if p.d.Family == PostgreSQL && p.acceptSymbol(star) {
		t.Only = true
	}
	if p.mysql && p.at(kwPartition) {
		t.Partition = p.partition()
	}
	t.Alias = p.alias(p.d.Family == SQLite)
	if p.d.Family == PostgreSQL && t.Alias.Name != "" && p.atSymbol(leftParen) {
		p.fail() // other names for the columns
	}
	t.Hints = p.tableHints()
	t.Span = p.since(name.From)
	return t
}

func (p *parser) partition() Span {
	from := p.tok.start
	p.expect(kwPartition)
	if !p.atSymbol(leftParen) {
		p.fail()
		return Span{}
	}
	p.skipParens()
	return p.since(from)
}

// tableHints reads MySQL's USE INDEX (…) and SQLite's INDEXED BY.
func (p *parser) tableHints() Span {
	from := p.tok.start
	found := false
	for {
		switch {
		case p.mysql && (p.at(kwUse) || p.at(kwForce) || p.at(kwIgnore)):
			p.next()
			p.indexHint()
		case p.d.Family == SQLite && p.accept(kwIndexed):
			p.expect(kwBy)
			p.ident()
		case p.d.Family == SQLite && p.at(kwNot):
			p.next()
			p.expect(kwIndexed)
		case !found:
			return Span{}
		default:
			return p.since(from)
		}
		found = true
	}
}

func (p *parser) indexHint() {
	if !p.acceptText("INDEX") {
		p.expectText("KEY")
	}
	if p.accept(kwFor) {
		if !p.accept(kwJoin) {
			if !p.accept(kwOrder) {
				p.expect(kwGroup)
			}
			p.expect(kwBy)
		}
	}
	if !p.atSymbol(leftParen) {
		p.fail()
		return
	}
	p.skipParens()
}
