// SPDX-License-Identifier: Apache-2.0

// Package tablewalk finds the names in table positions of a statement without a parser, for tests
// that compare a parser with it.
package tablewalk

import "github.com/shardid/shardid/internal/sqltext"

// Tables scans a statement and finds the names that may be names of tables. In SELECT, INSERT,
// REPLACE, UPDATE and DELETE these are the names after FROM, JOIN, INTO, UPDATE and similar words.
// In any other statement, and where the nesting is too deep or the syntax unknown, every name
// counts. So it may treat a column or an alias as a table, but never omits a table. It is a value
// and not safe for concurrent use.
type Tables struct {
	scanner  sqltext.Scanner
	sql      string
	current  sqltext.Token
	previous sqltext.Token
	plain    bool // one of the five statements
	begun    bool
	place    place
	outer    [maxNesting]place // the place outside of each parenthesis
	depth    int
}

// place is the kind of position of a name in a statement.
type place uint8

const (
	anywhere  place = iota // in a statement that Tables does not know
	sources                // a list of tables
	target                 // the table of an INSERT
	condition              // an ON in a list of tables, which a comma ends
	values                 // expressions and columns
)

const maxNesting = 32

// New returns a Tables at the start of sql.
func New(sql string, f sqltext.Flavor) Tables {
	return Tables{scanner: sqltext.NewScanner(sql, f), sql: sql}
}

// Next returns the next token that is neither white space nor a comment, and whether it is a name
// that may be a table's: a word, a quoted identifier, or a string, which SQLite accepts as one. It
// returns false at the end of the text.
func (t *Tables) Next() (token sqltext.Token, table, ok bool) {
	t.previous = t.current
	if t.current, ok = t.scanner.NextCode(); !ok {
		return t.current, false, false
	}
	return t.current, t.step(t.current), true
}

// Previous returns the token before the one that Next returned last.
func (t *Tables) Previous() sqltext.Token { return t.previous }

// Rest returns a scanner after the token that Next returned last.
func (t *Tables) Rest() sqltext.Scanner { return t.scanner }

// Unclosed is [sqltext.Scanner.Unclosed] of the scan.
func (t *Tables) Unclosed() bool { return t.scanner.Unclosed() }

// step processes a token and reports whether it may name a table.
func (t *Tables) step(token sqltext.Token) bool {
	if !t.begun {
		t.begun = true
		t.begin(token)
		return false
	}
	switch token.Kind {
	case sqltext.Op:
		t.punctuate(t.sql[token.Start])
		return false
	case sqltext.Word:
		if !t.expectsName(token) && t.keyword(token) {
			return false
		}
		return t.named()
	case sqltext.QuotedIdent, sqltext.String:
		return t.named()
	}
	return false
}

// begin reads the first word of a statement.
func (t *Tables) begin(token sqltext.Token) {
	t.place, t.plain = anywhere, true
	switch {
	case t.isAny(token, "SELECT"):
		t.place = values
	case t.isAny(token, "UPDATE", "DELETE"):
		t.place = sources
	case t.isAny(token, "INSERT", "REPLACE"):
		t.place = target
	default:
		t.plain = false
	}
}

// punctuate follows parentheses and ends of statements. Names between parentheses in a list of
// tables are tables; after INSERT's table they are columns.
func (t *Tables) punctuate(c byte) {
	switch c {
	case '(':
		if t.depth < maxNesting {
			t.outer[t.depth] = t.place
		} else {
			t.plain = false
		}
		t.depth++
		if t.place == target || t.place == condition {
			t.place = values
		}
	case ',':
		if t.place == condition {
			t.place = sources
		}
	case ')':
		if t.depth--; t.depth < 0 {
			t.plain, t.depth = false, 0
		}
		if t.depth < maxNesting {
			t.place = t.outer[t.depth]
		}
	case ';':
		t.begun, t.depth = false, 0
	}
}

// keyword processes a word that changes the place; it returns false for other words.
func (t *Tables) keyword(w sqltext.Token) bool {
	switch {
	case t.isAny(w, "FROM", "JOIN", "STRAIGHT_JOIN"):
		t.place = sources
	case t.isAny(w, "INTO"):
		t.place = target
	case t.isAny(w, "TABLE"):
		t.place = anywhere
	case t.isAny(w, "UPDATE"):
		t.place = sources
		if t.previous.Is(t.sql, "KEY") { // ON DUPLICATE KEY UPDATE
			t.place = values
		}
	case t.isAny(w, "USING", "IN"):
		// Without parentheses they are DELETE FROM a USING b, and SQLite's x IN orders, which reads
		// that table.
		if next, ok := t.peek(); !ok || !next.Is(t.sql, "(") {
			t.place = sources
		}
	case t.isAny(w, "WITH", "WINDOW", "PROCEDURE"):
		t.plain = false
	default:
		return t.expression(w)
	}
	return true
}

// expression processes a word after which no table follows.
func (t *Tables) expression(w sqltext.Token) bool {
	if t.isAny(w, "ON") && (t.place == sources || t.place == condition) {
		t.place = condition
		return true
	}
	if t.isAny(w, "SELECT", "WHERE", "ON", "SET", "VALUES", "GROUP", "ORDER", "HAVING", "LIMIT", "RETURNING") {
		t.place = values
		return true
	}
	return false
}

// expectsName reports whether the word can only be a name, although it is also a keyword that a
// server accepts as a name.
func (t *Tables) expectsName(w sqltext.Token) bool {
	if t.previous.Is(t.sql, ".") {
		return true
	}
	return t.isAny(t.previous, "FROM", "JOIN", "STRAIGHT_JOIN", "INTO", "UPDATE", ",") &&
		t.isAny(w, "RETURNING", "WITH", "WINDOW", "PROCEDURE", "USING")
}

func (t *Tables) peek() (sqltext.Token, bool) {
	ahead := t.scanner
	return ahead.NextCode()
}

// named reports whether the name after previous may be a table's.
func (t *Tables) named() bool {
	if !t.plain || t.place == anywhere {
		return true
	}
	return t.place != values && t.place != condition && !t.previous.Is(t.sql, "AS")
}

// isAny reports whether the token is one of the keywords.
func (t *Tables) isAny(token sqltext.Token, words ...string) bool {
	for _, w := range words {
		if len(w) == token.End-token.Start && token.Is(t.sql, w) {
			return true
		}
	}
	return false
}
