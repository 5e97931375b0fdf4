// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"strings"
	"sync"

	"github.com/shardid/shardid/internal/sqltext"
)

// parser reads statements. A reader has the one below it inside, on whose rules its own
// stand: tokens (cursor), names, values, operands, expressions, sources, queries. The way
// back up is operandReader.inner.
type parser struct{ queryReader }

// Parse reads a statement. It never fails: what it cannot read is [Unknown] or
// [Opaque]. It is safe for concurrent use.
func Parse(text string, d Dialect) *Statement {
	p, _ := parsers.Get().(*parser)
	p.d, p.mysql, p.text, p.scanner = d, d.Family != SQLite && d.Family != PostgreSQL, text, sqltext.NewScanner(text, d.Rules())
	p.inner = &p.queryReader
	statement := p.parse()
	*p = parser{} // it keeps neither the text nor the tree
	parsers.Put(p)
	return statement
}

var parsers = sync.Pool{New: func() any { return &parser{} }}

func (p *parser) parse() *Statement {
	p.begin()
	p.next()
	if strings.IndexByte(p.text, 0) >= 0 {
		p.fail() // SQLite's text ends there
	}
	p.statement()
	for p.accept(";") {
	}
	if p.tok.kind != 0 || p.scanner.Unclosed() {
		p.fail()
	}
	if p.failed {
		out := p.out
		p.out = &Statement{Text: p.text, Why: out.Why, Executable: out.Executable, Limiting: out.Limiting}
		p.out.Names = p.identifiers()
	}
	return p.out
}

func (p *parser) statement() {
	from := p.tok.start
	with := p.with()
	switch {
	case p.at("insert"), p.at("replace"):
		p.input(from, with)
	case p.accept("update"):
		p.out.Verb = Update
		p.out.Change = p.update(from, with)
	case p.accept("delete"):
		p.out.Verb = Delete
		p.out.Change = p.delete(from, with)
	case p.atQuery():
		p.out.Verb, p.out.Query = Select, p.queryWith(from, with)
	default:
		p.fail()
	}
}
