package sqlparse

// comparison reads the comparison at tok, whose left operand was read. It returns
// nil where none is, and how many ANDs of BETWEEN it still waits for.
func (p *parser) comparison(x Expr) (c Expr, pending int) {
	if op := comparisonOf(p.tok.symbol); op != 0 {
		p.next()
		y := p.sum()
		return p.compares.put(Compare{p.since(x.Bytes().From), op, x, y}), 0
	}
	from := x.Bytes().From
	not := false
	if p.at(kwNot) {
		if p.peek().word == kwNull && !p.mysql {
			p.next()
			p.next()
			return &IsNull{p.since(from), x, true}, 0
		}
		p.next()
		not = true
	}
	switch p.tok.word {
	case kwIn:
		return p.in(x, not), 0
	case kwBetween:
		return p.between(x, not)
	case kwLike, kwIlike, kwRegexp, kwRlike, kwGlob, kwMatch:
		p.next()
		return p.like(x, not), 0
	case kwSimilar:
		p.next()
		p.expectText("TO")
		return p.like(x, not), 0
	case kwIs:
		return p.is(x), 0
	case kwIsNull, kwNotNull:
		null := IsNull{X: x, Not: p.at(kwNotNull)}
		p.next()
		null.Span = p.since(from)
		return &null, 0
	}
	if not {
		p.fail()
	}
	return nil, 0
}

// is reads IS NULL, and IS of a value where that is a comparison.
func (p *parser) is(x Expr) Expr {
	p.next()
	from := x.Bytes().From
	not := p.accept(kwNot)
	switch {
	case p.accept(kwNull):
		return &IsNull{p.since(from), x, not}
	case p.at(kwDistinct):
		p.next()
		p.distinctFrom()
		y := p.sum()
		if not {
			return &Compare{p.since(from), NullSafeEqual, x, y}
		}
		return &Opaque{p.since(from), flatten(flatten(nil, x), y)}
	case p.at(kwTrue), p.at(kwFalse), p.d.Family != SQLite:
		if p.tok.word == 0 && !p.atName() {
			p.fail()
		}
		p.next() // another test: IS TRUE, IS UNKNOWN
		return &Opaque{p.since(from), flatten(nil, x)}
	}
	y := p.sum()
	if not {
		return &Opaque{p.since(from), flatten(flatten(nil, x), y)}
	}
	return &Compare{p.since(from), NullSafeEqual, x, y}
}

// distinctFrom reads the FROM of IS DISTINCT FROM.
func (p *parser) distinctFrom() {
	p.expect(kwFrom)
	p.noteName()
}

// noteName puts the name at tok among those that could be of tables.
func (p *parser) noteName() {
	if p.atName() && !p.tok.word.is(constant) {
		ahead := *p
		ahead.out = &Statement{}
		if n := ahead.name(); !ahead.failed {
			p.names.add(n.last().Name)
		}
	}
}

// in reads x IN (list), x IN (query) and SQLite's x IN table.
func (p *parser) in(x Expr, not bool) Expr {
	in := &In{X: x, Not: not}
	from := x.Bytes().From
	p.expect(kwIn)
	switch {
	case !p.atSymbol(leftParen) && p.d.Family == SQLite:
		p.inTable(in)
	case !p.atSymbol(leftParen):
		// POSITION(x IN y), IN BOOLEAN MODE
		y := p.sum()
		return &Opaque{p.since(from), flatten(flatten(nil, x), y)}
	default:
		p.inParens(in)
	}
	in.Span = p.since(from)
	return in
}

func (p *parser) inTable(in *In) {
	t := p.tableName()
	if p.atSymbol(leftParen) {
		p.fail() // a table function
	}
	in.Inner = t.Span
	in.Query = &Query{Span: t.Span, Parts: []*Part{{Span: t.Span, Table: t}}, After: t.To}
}

func (p *parser) inParens(in *In) {
	query := p.peek()
	p.next()
	in.Inner.From = p.last.end
	switch {
	case query.word == kwSelect, query.word == kwWith, query.word == kwValues && !p.mysql, query.word == kwTable && p.d.Family != SQLite:
		in.Query = p.query()
	case !p.atSymbol(rightParen) || p.d.Family != SQLite:
		in.List = p.exprs()
	}
	in.Inner.To = max(in.Inner.From, p.tok.start)
	p.expectSymbol(rightParen)
}

func (p *parser) between(x Expr, not bool) (c Expr, pending int) {
	p.next()
	low := p.sum()
	if !p.at(kwAnd) {
		return &Opaque{p.since(x.Bytes().From), flatten(flatten(nil, x), low)}, 1
	}
	p.next()
	high := p.sum()
	return &Between{p.since(x.Bytes().From), x, low, high, not}, 0
}

func (p *parser) like(x Expr, not bool) Expr {
	l := &Like{X: x, Pattern: p.sum(), Not: not}
	if p.accept(kwEscape) {
		l.Escape = p.sum()
	}
	l.Span = p.since(x.Bytes().From)
	return l
}
