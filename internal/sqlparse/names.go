// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// nameReader reads names of tables and columns.
type nameReader struct{ cursor }

// noteTable adds the name of a table to the names of the statement.
func (p *nameReader) noteTable(name string) {
	name = strings.ToLower(name)
	if name != "" && !slices.Contains(p.out.Names, name) {
		p.out.Names = append(p.out.Names, name)
	}
}

// identifiers returns every name in a text that was not parsed, and records the effects of its
// comments. Texts count as well, and the words in them: PREPARE s FROM 'DELETE FROM orders'.
func (p *nameReader) identifiers() []string {
	var list []string
	seen := map[string]bool{"": true}
	add := func(name string) {
		name = strings.ToLower(name)
		if !seen[name] {
			seen[name] = true
			list = append(list, name)
		}
	}
	s := sqltext.NewScanner(p.text, p.d.Rules())
	for t, ok := s.Next(); ok; t, ok = s.Next() {
		switch text := t.Text(p.text); t.Kind {
		case sqltext.Comment:
			p.comment(text)
		case sqltext.Word:
			if p.d.Family == PostgreSQL || !sqltext.Reserved(text) {
				add(text)
			}
		case sqltext.QuotedIdent:
			name := sqltext.Ident(p.text, t)
			add(name)
			if t.Start > 0 && p.text[t.Start-1] == '&' { // PostgreSQL's U&"…"
				add(unicodeName(name))
			}
		case sqltext.String:
			if text[0] == '\'' || text[0] == '"' {
				add(unquoted(text))
			}
			for word := range strings.FieldsFuncSeq(text, isBetweenNames) {
				add(word)
			}
		}
	}
	return list
}

func isBetweenNames(r rune) bool {
	return r < 0x80 && r != '_' && r != '$' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
}

// atName reports whether tok may be a name that is not after a dot.
func (p *nameReader) atName() bool {
	switch p.tok.kind {
	case sqltext.QuotedIdent:
		return true
	case sqltext.String:
		return p.d.Family == SQLite && p.text[p.tok.start] == '\''
	case sqltext.Word:
		return !p.tok.class().is(reserved) && p.isPlainWord(p.tok)
	}
	return false
}

func (p *nameReader) ident() Ident {
	if !p.atName() {
		p.fail()
		return Ident{}
	}
	return p.takeIdent()
}

// anyIdent reads a name in a place where keywords are names as well: after a dot and after AS.
func (p *nameReader) anyIdent() Ident {
	if p.tok.kind == sqltext.Word && p.isPlainWord(p.tok) {
		return p.takeIdent()
	}
	return p.ident()
}

func (p *nameReader) takeIdent() Ident {
	t := p.tok
	p.next()
	id := Ident{Span: Span{t.start, t.end}}
	if t.kind == sqltext.String {
		id.Name = unquoted(p.textOf(t))
	} else {
		id.Name = sqltext.Ident(p.text, sqltext.Token{Kind: t.kind, Start: t.start, End: t.end})
	}
	if p.mysql && id.Name == "" && t.kind == sqltext.QuotedIdent {
		p.failAt(t) // MySQL has no empty names
	}
	return id
}

// unquoted returns the value of a literal without backslashes.
func unquoted(literal string) string {
	quote := literal[:1]
	return strings.ReplaceAll(strings.TrimSuffix(literal[1:], quote), quote+quote, quote)
}

// name reads a name with its qualifiers.
func (p *nameReader) name() Name {
	n, all := p.nameOrStar()
	if all {
		p.fail()
	}
	return n
}

const maxParts = 4

// nameOrStar reads a name, or a name with a star after its last dot.
func (p *nameReader) nameOrStar() (n Name, all bool) {
	parts, count := [maxParts]Ident{p.ident()}, 1
	for p.at(".") && !all {
		p.next()
		switch {
		case p.accept("*"):
			all = true
		case count == maxParts:
			p.fail()
		default:
			parts[count] = p.anyIdent()
			count++
		}
	}
	n.Parts = slices.Clone(parts[:count])
	n.Span = Span{parts[0].From, parts[count-1].To}
	return n, all
}

// Last returns the name without its qualifiers.
func (n Name) Last() Ident { return n.Parts[len(n.Parts)-1] }

func (p *nameReader) tableName() Name {
	n := p.name()
	p.noteTable(n.Last().Name)
	return n
}

// noteName adds the name at tok to those that could be tables.
func (p *nameReader) noteName() {
	if p.atName() && !p.tok.class().is(constant) {
		ahead := *p
		ahead.out = &Statement{}
		if n := ahead.name(); !ahead.failed {
			p.noteTable(n.Last().Name)
		}
	}
}

// alias reads an alias with or without AS, which may be a text if text is set; Name is "" if there
// is none.
func (p *nameReader) alias(text bool) Ident {
	as := p.accept("as")
	switch {
	case p.tok.kind == sqltext.QuotedIdent,
		p.tok.kind == sqltext.String && text && (as || p.d.Family != PostgreSQL),
		p.tok.kind == sqltext.Word && !as && !p.tok.class().is(reserved|bound) && p.isPlainWord(p.tok):
		return p.takeIdent()
	case as:
		return p.anyIdent()
	}
	return Ident{}
}

// identList reads (a, b, …), if it follows.
func (p *nameReader) identList() []Ident {
	if !p.at("(") {
		return nil
	}
	return parens(&p.cursor, func() []Ident { return list(&p.cursor, p.ident) })
}
