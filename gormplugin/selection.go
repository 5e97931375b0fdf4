package gormplugin

import (
	"slices"
	"strings"

	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/internal/sqltext"
)

// selection is the list of a SELECT, read from its text: what gorm was given
// takes too many forms.
type selection struct {
	text     string // SELECT …
	vars     []any
	distinct bool
	items    []item
}

// item is one element of the list.
type item struct {
	kind     itemKind
	text     string // as written, without its alias
	name     string // of the output column
	column   string // of a column, or of an aggregate over one: its name
	function string // of an aggregate: COUNT, SUM, MIN, MAX, AVG
	distinct bool   // the aggregate counts equal values once
	argument string // of an aggregate, as written
}

type itemKind uint8

const (
	otherItem  itemKind = iota
	starItem            // * or orders.*
	columnItem          // a column of the statement's table
	scalarItem          // an expression over one row
	foldItem            // an aggregate that answers of several shards make up
)

// text is a statement's clause as it will be written.
func (s *step) text(name string) (text string, vars []any, err error) {
	stmt := s.copied(map[string]clause.Clause{name: s.stmt.Clauses[name]})
	stmt.TableExpr = nil
	stmt.Build(name)
	return strings.TrimSpace(stmt.SQL.String()), stmt.Vars, stmt.DB.Error
}

// tokensOf returns the tokens of a clause; false when servers may read them
// in different ways.
func (r *routing) tokensOf(text string) ([]sqltext.Token, bool) {
	if strings.IndexByte(text, '\\') >= 0 || r.mysql && strings.IndexByte(text, '"') >= 0 {
		return nil, false
	}
	var tokens []sqltext.Token
	scanner := sqltext.NewScanner(text, r.guard.readings[0])
	for t, ok := scanner.NextCode(); ok; t, ok = scanner.NextCode() {
		tokens = append(tokens, t)
	}
	return tokens, !scanner.Unclosed()
}

// selected reads the statement's list; false when it cannot be read.
func (s *step) selected() (selection, bool) {
	var sel selection
	var err error
	if sel.text, sel.vars, err = s.text("SELECT"); err != nil {
		return sel, false
	}
	tokens, ok := s.routing.tokensOf(sel.text)
	if !ok || len(tokens) < 2 || !tokens[0].Is(sel.text, "SELECT") {
		return sel, false
	}
	tokens = tokens[1:]
	if tokens[0].Is(sel.text, "DISTINCT") {
		sel.distinct = true
		tokens = tokens[1:]
	}
	for _, part := range split(sel.text, tokens) {
		sel.items = append(sel.items, s.item(sel.text, part))
	}
	return sel, len(sel.items) > 0
}

// split cuts tokens at the commas outside of parentheses.
func split(text string, tokens []sqltext.Token) [][]sqltext.Token {
	var parts [][]sqltext.Token
	depth, begin := 0, 0
	for i, t := range tokens {
		switch {
		case t.Is(text, "("):
			depth++
		case t.Is(text, ")"):
			depth--
		case t.Is(text, ",") && depth == 0:
			parts = append(parts, tokens[begin:i])
			begin = i + 1
		}
	}
	return append(parts, tokens[begin:])
}

func textOf(text string, tokens []sqltext.Token) string {
	if len(tokens) == 0 {
		return ""
	}
	return text[tokens[0].Start:tokens[len(tokens)-1].End]
}

// item reads one element.
func (s *step) item(text string, tokens []sqltext.Token) item {
	tokens, alias := cutAlias(text, tokens)
	it := item{text: textOf(text, tokens), name: alias}
	if len(tokens) == 0 {
		return it
	}
	last := len(tokens) - 1
	column, isColumn := s.ownColumn(text, tokens)
	switch {
	case tokens[last].Is(text, "*") && (last == 0 || last == 2 && tokens[1].Is(text, ".") && s.isTable(text, tokens[0])):
		it.kind = starItem
	case isColumn:
		it.kind, it.column = columnItem, column
	case s.fold(text, tokens, &it):
		it.kind = foldItem
	case isScalar(text, tokens):
		it.kind = scalarItem
	}
	if it.name == "" {
		if it.name = it.text; isColumn {
			it.name = column
		}
	}
	return it
}

// cutAlias cuts [AS] name off the end.
func cutAlias(text string, tokens []sqltext.Token) (rest []sqltext.Token, alias string) {
	n := len(tokens)
	if n < 2 || !isName(tokens[n-1]) {
		return tokens, ""
	}
	name := sqltext.Ident(text, tokens[n-1])
	before := tokens[n-2]
	switch {
	case n > 2 && before.Is(text, "AS"):
		return tokens[:n-2], name
	case before.Is(text, ")"), isName(before), before.Kind == sqltext.Number, before.Kind == sqltext.String:
		if !tokens[n-1].Is(text, "END") {
			return tokens[:n-1], name
		}
	}
	return tokens, ""
}

// ownColumn reads [orders.]name.
func (s *step) ownColumn(text string, tokens []sqltext.Token) (string, bool) {
	if len(tokens) == 3 && tokens[1].Is(text, ".") && s.isTable(text, tokens[0]) {
		tokens = tokens[2:]
	}
	if len(tokens) != 1 || !isName(tokens[0]) {
		return "", false
	}
	return sqltext.Ident(text, tokens[0]), true
}

func (s *step) isTable(text string, t sqltext.Token) bool {
	return isName(t) && strings.EqualFold(sqltext.Ident(text, t), s.alias)
}

// fold reads COUNT(…), SUM(…), MIN(…), MAX(…) and AVG(…).
func (s *step) fold(text string, tokens []sqltext.Token, it *item) bool {
	tokens = sumOrZero(text, tokens)
	if len(tokens) < 4 || !tokens[1].Is(text, "(") || closing(text, tokens, 1) != len(tokens)-1 {
		return false
	}
	name := strings.ToUpper(tokens[0].Text(text))
	if !slices.Contains([]string{"COUNT", "SUM", "MIN", "MAX", "AVG"}, name) {
		return false
	}
	argument := tokens[2 : len(tokens)-1]
	if argument[0].Is(text, "DISTINCT") {
		it.distinct, argument = true, argument[1:]
	}
	for len(argument) > 2 && argument[0].Is(text, "(") && closing(text, argument, 0) == len(argument)-1 {
		argument = argument[1 : len(argument)-1]
	}
	if len(split(text, argument)) > 1 {
		return false // SQLite's MAX(a, b) is about one row, and COUNT(DISTINCT a, b) about several columns
	}
	it.function, it.argument = name, textOf(text, argument)
	it.column, _ = s.ownColumn(text, argument)
	return name == "COUNT" && it.argument == "*" || isScalar(text, argument)
}

// sumOrZero returns the SUM(…) in COALESCE(SUM(…), 0) and IFNULL(SUM(…), 0), and
// other tokens as they are: a shard without a sum then has nothing to add, as
// it has with NULL.
func sumOrZero(text string, tokens []sqltext.Token) []sqltext.Token {
	last := len(tokens) - 1
	if last < 7 || !tokens[0].Is(text, "COALESCE") && !tokens[0].Is(text, "IFNULL") || !tokens[1].Is(text, "(") || closing(text, tokens, 1) != last {
		return tokens
	}
	sum, comma, zero := tokens[2:last-2], tokens[last-2], tokens[last-1]
	if !sum[0].Is(text, "SUM") || closing(text, sum, 1) != len(sum)-1 || !comma.Is(text, ",") || zero.Text(text) != "0" {
		return tokens
	}
	return sum
}

// isExtreme reports whether the item is one of the values themselves.
func (it item) isExtreme() bool { return it.function == "MIN" || it.function == "MAX" }

// closing returns the index of the parenthesis that closes the one at open.
func closing(text string, tokens []sqltext.Token, open int) int {
	depth := 0
	for i := open; i < len(tokens); i++ {
		switch {
		case tokens[i].Is(text, "("):
			depth++
		case tokens[i].Is(text, ")"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// isScalar reports whether an expression is computed from one row: it calls
// nothing but functions that are known to do so.
func isScalar(text string, tokens []sqltext.Token) bool {
	for i, t := range tokens {
		switch {
		case t.Kind == sqltext.Word && t.Text(text)[0] == '@':
			return false
		case t.Is(text, "OVER"), t.Is(text, "SELECT"):
			return false
		case i+1 < len(tokens) && tokens[i+1].Is(text, "(") && (t.Kind == sqltext.Word || t.Kind == sqltext.QuotedIdent):
			if t.Kind != sqltext.Word || !scalars[strings.ToUpper(t.Text(text))] {
				return false
			}
		}
	}
	return len(tokens) > 0
}

var scalars = wordSet(`ABS CAST CEIL CEILING CHAR_LENGTH COALESCE CONCAT CONCAT_WS CONVERT DATE DATE_ADD
	DATE_FORMAT DATE_SUB DATEDIFF DAY FLOOR FROM_UNIXTIME GREATEST HEX HOUR IF IFNULL IN INSTR JSON_EXTRACT JSON_UNQUOTE
	JULIANDAY LEAST LEFT LENGTH LOWER LPAD LTRIM MD5 MINUTE MOD MONTH NULLIF OR AND NOT QUARTER REPLACE RIGHT ROUND RPAD RTRIM
	SECOND SIGN STRFTIME SUBSTR SUBSTRING TRIM TRUNCATE UNHEX UNIX_TIMESTAMP UPPER WEEK WHEN THEN ELSE YEAR`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// isKey reports whether the item is the sharding key: rows, groups and distinct
// rows of different shards then differ in it.
func (s *step) isKey(it item) bool {
	return it.kind == columnItem && strings.EqualFold(it.column, s.table.Key)
}
