// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// reader parses one statement.
type reader struct {
	sql     string
	tokens  []sqltext.Token // without white space and comments
	at      int
	dialect string // the name of a dialect.Dialect
	known   *catalog
	out     *statement
}

// read parses the statement, or returns ErrStatement.
func read(text, dialectName string, flavor sqltext.Flavor, known *catalog) (s *statement, err error) {
	r := &reader{sql: strings.TrimSpace(text), dialect: dialectName, known: known}
	r.out = new(statement)
	if err := r.scan(flavor); err != nil {
		return nil, err
	}
	if err := r.statement(); err != nil {
		return nil, fmt.Errorf("%w: %w: %s", ErrStatement, err, shortened(r.sql))
	}
	slices.SortFunc(r.out.names, func(a, b name) int { return a.Start - b.Start })
	return r.out, nil
}

func shortened(text string) string {
	const most = 120
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + " …"
	}
	return text
}

// scan fills tokens.
func (r *reader) scan(flavor sqltext.Flavor) error {
	s := sqltext.NewScanner(r.sql, flavor)
	end := len(r.sql)
	for {
		t, ok := s.Next()
		if !ok {
			break
		}
		text := t.Text(r.sql)
		switch {
		case t.Kind == sqltext.Comment && (strings.HasPrefix(text, "/*!") || strings.HasPrefix(text, "/*M!")):
			return fmt.Errorf("%w: %s", ErrStatement, sqltext.VersionedHint)
		case t.Kind == sqltext.Comment || t.Kind == sqltext.Space:
			continue
		case text == ";" && end == len(r.sql):
			end = t.Start
			continue
		case end < len(r.sql):
			return fmt.Errorf("%w: there are several statements; end each with a semicolon at the end of its line: %s", ErrStatement, shortened(r.sql))
		}
		r.tokens = append(r.tokens, t)
	}
	if s.Unclosed() {
		return fmt.Errorf("%w: a quote or a comment is not closed: %s", ErrStatement, shortened(r.sql))
	}
	r.sql = r.sql[:end]
	r.out.sql = r.sql
	return nil
}

// is reports whether the next tokens are these words, in any case.
func (r *reader) is(words ...string) bool {
	for i, word := range words {
		if r.at+i >= len(r.tokens) || !r.tokens[r.at+i].Is(r.sql, word) {
			return false
		}
	}
	return true
}

// skip skips the words if they are next.
func (r *reader) skip(words ...string) bool {
	if !r.is(words...) {
		return false
	}
	r.at += len(words)
	return true
}

// any skips the first of the words that is next, and returns it.
func (r *reader) any(words ...string) string {
	for _, word := range words {
		if r.skip(word) {
			return word
		}
	}
	return ""
}

// done reports whether no token is left.
func (r *reader) done() bool { return r.at >= len(r.tokens) }

// ident reads a name and returns it and its token.
func (r *reader) ident() (string, sqltext.Token, error) {
	if r.done() {
		return "", sqltext.Token{}, errEnd
	}
	t := r.tokens[r.at]
	if t.Kind != sqltext.Word && t.Kind != sqltext.QuotedIdent {
		return "", t, fmt.Errorf("expected a name, found %q", t.Text(r.sql))
	}
	r.at++
	return sqltext.Ident(r.sql, t), t, nil
}

// table reads the name of a table.
func (r *reader) table() (string, error) {
	text, t, err := r.ident()
	if err != nil {
		return "", err
	}
	if r.is(".") {
		return "", fmt.Errorf("%s is a schema or a database; write names of tables without one", text)
	}
	r.out.names = append(r.out.names, name{Token: t, kind: tableName, text: text})
	r.out.add(text)
	return text, nil
}

// owned reads the name of an index or a constraint of the table.
func (r *reader) owned(kind nameKind, table string) (string, error) {
	text, t, err := r.ident()
	if err == nil {
		r.out.names = append(r.out.names, name{Token: t, kind: kind, text: text, table: table})
	}
	return text, err
}
