// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// text is SQL cut at its named parameters: parts[0] params[0] parts[1] and so on.
type text struct {
	parts  []string
	params []string
}

// size returns how many bytes the text needs at most, with its comma and its placeholders,
// whose numbers have at most five digits.
func (t *text) size() int {
	n := 1 + len(t.params)*len("$65535")
	for _, part := range t.parts {
		n += len(part)
	}
	return n
}

// statement is a parsed query. Its head and tail are written once, its VALUES group once per
// row. If there is no group, the whole query is the head.
type statement struct {
	head, group, tail text
	insert            bool       // INSERT or REPLACE
	replaces          bool       // REPLACE, IGNORE or OR: existing rows change what it does
	table             string     // the table of the INSERT
	columns           []string   // the column list; nil if there is none
	values            [][]string // the parameters in each value of the group
	groups            int        // VALUES groups in the text
	question, dollar  bool       // has "?", has "$1"
}

// parse reads the query in every flavor of the database. It fails if two flavors find
// different statements.
func parse(query string, f database) (*statement, error) {
	var first *statement
	for _, flavor := range f.readings() {
		s, err := parseAs(query, flavor)
		switch {
		case err != nil:
			return nil, err
		case first == nil:
			first = s
		case !reflect.DeepEqual(first, s):
			return nil, fmt.Errorf("%w: MySQL and SQLite read its literals in different ways: %w", ErrStatement, ErrDriver)
		}
	}
	return first, nil
}

func parseAs(query string, flavor sqltext.Flavor) (*statement, error) {
	p := &parser{sql: query}
	scanner := sqltext.NewScanner(query, flavor)
	for t, ok := scanner.NextCode(); ok; t, ok = scanner.NextCode() {
		p.tokens = append(p.tokens, t)
		if t.Kind == sqltext.Param {
			p.stmt.dollar = p.stmt.dollar || query[t.Start] == '$'
			p.stmt.question = p.stmt.question || query[t.Start] == '?'
		}
	}
	if scanner.Unclosed() {
		return nil, fmt.Errorf("%w: a literal or comment is not closed", ErrStatement)
	}
	start, end := p.parse()
	p.stmt.head = p.text(0, start)
	p.stmt.group = p.text(start, end)
	p.stmt.tail = p.text(end, len(query))
	return &p.stmt, nil
}

// parser walks over the tokens of a statement, without its comments and spaces.
type parser struct {
	sql    string
	tokens []sqltext.Token
	stmt   statement
}

// parse sets stmt and returns the start and end of the first VALUES group in the text. Both
// are the end of the text if there is no group.
func (p *parser) parse() (start, end int) {
	none := len(p.sql)
	i := p.verb()
	if i >= len(p.tokens) || !p.is(i, "INSERT") && !p.is(i, "REPLACE") {
		return none, none
	}
	p.stmt.insert, p.stmt.replaces = true, p.is(i, "REPLACE")
	i = p.target(i + 1)
	open, columns := p.values(i)
	if open < 0 {
		return none, none
	}
	if columns >= 0 {
		p.stmt.columns = p.names(columns)
	}
	first := open
	if p.is(open, "ROW") {
		open++
	}
	shut := p.closing(open)
	p.stmt.values = p.items(open, shut)
	p.stmt.groups = p.countGroups(shut)
	return p.tokens[first].Start, p.tokens[shut].End
}

// verb returns the index of the statement's verb: the first word, or for WITH
// the first verb outside parentheses.
func (p *parser) verb() int {
	if !p.is(0, "WITH") {
		return 0
	}
	for i := 0; i < len(p.tokens); i = p.after(i) {
		for _, verb := range []string{"INSERT", "REPLACE", "UPDATE", "DELETE", "SELECT"} {
			if p.is(i, verb) {
				return i
			}
		}
	}
	return len(p.tokens)
}

// target reads the name of the table at i, after INSERT, and returns the index after the
// name.
func (p *parser) target(i int) int {
	if p.is(i, "OR") { // SQLite's INSERT OR IGNORE
		p.stmt.replaces, i = true, i+2
	}
	for p.is(i, "LOW_PRIORITY") || p.is(i, "DELAYED") || p.is(i, "HIGH_PRIORITY") || p.is(i, "IGNORE") || p.is(i, "INTO") {
		p.stmt.replaces = p.stmt.replaces || p.is(i, "IGNORE")
		i++
	}
	for i+2 < len(p.tokens) && p.is(i+1, ".") {
		i += 2
	}
	if i < len(p.tokens) {
		p.stmt.table = sqltext.Name(p.sql, p.tokens[i])
	}
	return i + 1
}

// values returns the index at which the first VALUES group opens, and the index at which the
// column list opens. Each is -1 if there is none.
func (p *parser) values(i int) (open, columns int) {
	columns = -1
	for ; i < len(p.tokens); i = p.after(i) {
		switch {
		case p.is(i, "("):
			if !p.is(i-1, "PARTITION") {
				columns = i
			}
		case p.is(i, "VALUES"), p.is(i, "VALUE"):
			if p.is(i+1, "(") || p.is(i+1, "ROW") && p.is(i+2, "(") {
				return i + 1, columns
			}
		case p.is(i, "SELECT"), p.is(i, "SET"), p.is(i, "ON"):
			return -1, columns
		}
	}
	return -1, columns
}

// names returns the identifiers of the list that opens at i. Of a qualified identifier it
// returns the last part.
func (p *parser) names(i int) []string {
	names := []string{}
	for end := p.closing(i); i < end; i++ {
		if k := p.tokens[i].Kind; (k == sqltext.Word || k == sqltext.QuotedIdent) && (p.is(i+1, ",") || i+1 == end) {
			names = append(names, sqltext.Ident(p.sql, p.tokens[i]))
		}
	}
	return names
}

// items returns the parameters of each value between the parentheses at open and shut.
func (p *parser) items(open, shut int) [][]string {
	var items [][]string
	for i := open + 1; i < shut; i++ {
		var params []string
		for depth := 0; i < shut && (depth > 0 || !p.is(i, ",")); i++ {
			switch t := p.tokens[i]; {
			case t.Kind == sqltext.Named:
				params = append(params, name(p.sql, t))
			case p.is(i, "("):
				depth++
			case p.is(i, ")"):
				depth--
			}
		}
		items = append(items, params)
	}
	return items
}

// countGroups counts the VALUES groups, the first of which closes at shut.
func (p *parser) countGroups(shut int) int {
	n := 1
	for i := shut + 1; p.is(i, ","); n++ {
		if i++; p.is(i, "ROW") {
			i++
		}
		i = p.closing(i) + 1
	}
	return n
}

// closing returns the index of the parenthesis that closes the one at open, or the index of
// the last token if none does.
func (p *parser) closing(open int) int {
	depth := 0
	for i := open; i < len(p.tokens); i++ {
		switch {
		case p.is(i, "("):
			depth++
		case p.is(i, ")"):
			depth--
		}
		if depth == 0 {
			return i
		}
	}
	return len(p.tokens) - 1
}

// after returns the index after the token at i. If a parenthesis opens there, it is the
// index after the closing one.
func (p *parser) after(i int) int {
	if p.is(i, "(") {
		return p.closing(i) + 1
	}
	return i + 1
}

func (p *parser) is(i int, s string) bool {
	return i >= 0 && i < len(p.tokens) && p.tokens[i].Is(p.sql, s)
}

// text returns sql[start:end], cut at its named parameters.
func (p *parser) text(start, end int) text {
	var t text
	for _, tok := range p.tokens {
		if tok.Kind == sqltext.Named && tok.Start >= start && tok.End <= end {
			t.parts = append(t.parts, p.sql[start:tok.Start])
			t.params = append(t.params, name(p.sql, tok))
			start = tok.End
		}
	}
	t.parts = append(t.parts, p.sql[start:end])
	return t
}

// name returns the name of a named parameter, without the colon.
func name(sql string, t sqltext.Token) string { return t.Text(sql)[1:] }

// sql returns the text of the statement for n rows.
func (s *statement) sql(n int, style style) string {
	var b strings.Builder
	number := 0
	write := func(t text) {
		for i, part := range t.parts {
			b.WriteString(part)
			if i < len(t.params) {
				number++
				style.write(&b, number)
			}
		}
	}
	write(s.head)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		write(s.group)
	}
	write(s.tail)
	return b.String()
}

// write appends the placeholder of this number.
func (s style) write(b *strings.Builder, number int) {
	if s == "" {
		b.WriteByte('?')
		return
	}
	b.WriteString(string(s))
	b.WriteString(strconv.Itoa(number))
}
