// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"strings"
	"sync"

	"github.com/shardid/shardid/internal/sqltext"
)

// parser reads statements. Each reader embeds the one below it, whose rules it uses: tokens
// (cursor), names, values, operands, expressions, sources, queries. operandReader.inner leads back
// to the highest one.
type parser struct {
	queryReader

	signals bool // it is NOTIFY, LISTEN or UNLISTEN, whose channel may have the name of a table
}

// Parse parses a statement. It never fails: a statement or expression that it cannot parse is
// [Unknown] or [Opaque]. It is safe for concurrent use.
func Parse(text string, d Dialect) *Statement {
	p, _ := parsers.Get().(*parser)
	p.d, p.mysql, p.text, p.scanner = d, d.Family != SQLite && d.Family != PostgreSQL, text, sqltext.NewScanner(text, d.Rules())
	p.inner = &p.queryReader
	statement := p.parse()
	*p = parser{} // so that the pool keeps neither the text nor the tree
	parsers.Put(p)
	return statement
}

var parsers = sync.Pool{New: func() any { return &parser{} }}

func (p *parser) parse() *Statement {
	p.out = &Statement{Text: p.text}
	p.next()
	if strings.IndexByte(p.text, 0) >= 0 {
		p.fail() // for SQLite the text ends there
	}
	p.statement()
	for p.accept(";") {
		p.out.HasMore = p.tok.kind != 0 && !p.at(";")
	}
	if p.tok.kind != 0 || p.scanner.Unclosed() {
		p.fail()
	}
	shareText(p.out)
	if len(p.texts) > 0 {
		takeShared(p.texts, p.out.Params)
	}
	if p.failed {
		out := p.out
		p.out = &Statement{Text: p.text, Why: out.Why, HasMore: out.HasMore, Executable: out.Executable, Limiting: out.Limiting}
		if !p.signals {
			p.out.Names = p.identifiers()
		}
	}
	return p.out
}

func (p *parser) statement() {
	p.out.Explains = p.explain()
	from := p.tok.start
	with := p.with(p)
	switch {
	case p.out.Explains && (p.at("table") || !p.atQuery() || p.out.Writes != nil): // ANALYZE TABLE is no query, and EXPLAIN ANALYZE executes a write
		p.fail()
	case p.at("insert"), p.at("replace"):
		p.input(from, with)
	case p.at("update"), p.at("delete"):
		p.change(from, with)
	case p.atQuery():
		p.out.Verb, p.out.Query = Select, p.queryWith(from, with)
	case p.d.Family == PostgreSQL && with == nil && (p.at("notify") || p.at("listen") || p.at("unlisten")):
		p.channel()
	default:
		p.fail()
	}
}

// channel reads NOTIFY, LISTEN or UNLISTEN with a channel and a payload, which are Unknown and name no table.
func (p *parser) channel() {
	verb := p.tok
	p.next()
	if !p.accept("*") {
		p.ident()
	}
	if p.accept(",") {
		p.inner.expr()
	}
	for p.accept(";") {
	}
	p.signals = !p.failed && p.tok.kind == 0 && !p.scanner.Unclosed()
	p.failAt(verb)
}

// explain moves past EXPLAIN and its options.
func (p *parser) explain() bool {
	isAnalyze := p.d.Family == MariaDB && p.accept("analyze")
	switch {
	case !isAnalyze && !p.accept("explain") && !(p.mysql && (p.accept("describe") || p.accept("desc"))):
		return false
	case p.d.Family == SQLite:
		p.accept("query", "plan")
	case p.d.Family == PostgreSQL && p.at("(") && !p.atQuery():
		p.skipParens()
	case p.d.Family == PostgreSQL:
		p.accept("analyze")
		p.accept("verbose")
	default:
		if !isAnalyze && !p.accept("analyze") && !p.accept("extended") {
			p.accept("partitions")
		}
		if p.accept("format") {
			p.expect("=")
			p.next()
		}
	}
	return true
}
