package sqlparse

import (
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// Parse reads a statement. It never fails: what it cannot read is [Unknown] or
// [Opaque]. It is safe for concurrent use.
func Parse(text string, d Dialect) *Statement {
	p := parser{d: d, mysql: d.isMySQL(), text: text, scanner: sqltext.NewScanner(text, d.flavor()), out: &Statement{Text: text}, arena: newArena()}
	p.next()
	if strings.IndexByte(text, 0) >= 0 {
		p.fail() // SQLite's text ends there
	}
	p.statement()
	p.end()
	if p.failed {
		p.out = &Statement{
			Text: text, Why: p.out.Why,
			Executable: p.out.Executable, Limiting: p.out.Limiting,
		}
		p.out.Names = p.identifiers()
		return p.out
	}
	p.out.Names = p.names.list
	return p.out
}

// end reads what may stand behind a statement.
func (p *parser) end() {
	for p.acceptSymbol(semicolon) {
	}
	if p.tok.kind != 0 || p.scanner.Unclosed() {
		p.fail()
	}
}

func (p *parser) statement() {
	from := p.tok.start
	var with *With
	if p.at(kwWith) {
		with = p.with()
	}
	switch p.tok.word {
	case kwInsert, kwReplace:
		p.input(from, with)
	case kwUpdate:
		p.out.Verb = Update
		p.out.Change = p.update(from, with)
	case kwDelete:
		p.out.Verb = Delete
		p.out.Change = p.delete(from, with)
	default:
		if !p.atQuery() {
			p.fail()
			return
		}
		p.out.Verb = Select
		p.out.Query = p.queryWith(from, with)
	}
}
