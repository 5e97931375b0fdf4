package gormplugin

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// change is what one statement of a text does to tables, as far as its words tell.
type change struct {
	verb   string   // in capitals
	tables []string // what it changes; when in doubt, every name in the text

	// Of an INSERT or a REPLACE.
	columns []string
	rows    [][][]sqltext.Token // the words of each value, nil when they cannot be seen

	sets []setting // of an UPDATE, and of an INSERT that updates rows
}

// setting is `table.column = value`.
type setting struct {
	table, column string
	value         []sqltext.Token
}

// changesOf returns what each statement of a text does.
func changesOf(sql string, f sqltext.Flavor) []change {
	var all []change
	w := wording{sql: sql}
	scanner := sqltext.NewScanner(sql, f)
	for {
		t, ok := scanner.NextCode()
		if ok && !t.Is(sql, ";") {
			w.tokens = append(w.tokens, t)
			continue
		}
		if len(w.tokens) > 0 {
			all = append(all, w.change())
		}
		if !ok {
			return all
		}
		w = wording{sql: sql}
	}
}

// readVerbs begin statements that change nothing.
var readVerbs = strings.Fields("SELECT VALUES TABLE SHOW EXPLAIN DESCRIBE DESC PRAGMA HELP")

// wording walks over the tokens of one statement.
type wording struct {
	sql    string
	tokens []sqltext.Token
	at     int
}

func (w *wording) change() change {
	for w.accept("(") { // (SELECT …) UNION …
	}
	c := change{verb: strings.ToUpper(w.text())}
	w.at++
	switch {
	case c.verb == "INSERT" || c.verb == "REPLACE":
		w.insertion(&c)
	case c.verb == "UPDATE":
		w.update(&c)
	case c.verb == "DELETE":
		w.deletion(&c)
	case c.verb == "EXPLAIN" && w.is("ANALYZE"), c.verb == "WITH" && w.writes(), c.verb != "WITH" && !slices.Contains(readVerbs, c.verb):
		c.tables = w.names()
	}
	return c
}

func (w *wording) insertion(c *change) {
	w.modifiers()
	w.accept("INTO")
	_, table := w.name()
	if table == "" {
		c.tables = w.names()
		return
	}
	c.tables = []string{table}
	if w.accept("AS") {
		w.at++
	}
	c.columns = w.columns()
	switch {
	case w.accept("VALUES") || w.accept("VALUE"):
		for more := true; more && w.is("("); more = w.accept(",") {
			c.rows = append(c.rows, w.tuple())
		}
	case w.accept("SET"):
		row := [][]sqltext.Token{}
		for _, s := range w.settings("ON", "AS", "RETURNING") {
			c.columns = append(c.columns, s.column)
			row = append(row, s.value)
		}
		c.rows = append(c.rows, row)
	}
	for w.skip("UPDATE"); w.at < len(w.tokens); w.skip("UPDATE") {
		w.at++ // ON DUPLICATE KEY UPDATE, or DO UPDATE SET
		w.accept("SET")
		c.sets = append(c.sets, w.settings("WHERE", "ON", "RETURNING")...)
	}
}

func (w *wording) update(c *change) {
	w.modifiers()
	from := w.sources("SET")
	if len(from) == 0 || !w.accept("SET") {
		c.tables = w.names()
		return
	}
	c.sets = w.settings("WHERE", "FROM", "ORDER", "LIMIT", "RETURNING")
	for _, s := range c.sets {
		c.tables = append(c.tables, meant(from, s.table)...)
	}
	if len(c.sets) == 0 {
		c.tables = w.names()
	}
}

func (w *wording) deletion(c *change) {
	w.modifiers()
	behind := []string{"WHERE", "ORDER", "LIMIT", "RETURNING"}
	var list, from []source
	if w.accept("FROM") {
		list = w.sources(append(behind, "USING")...)
		if from = list; w.accept("USING") {
			from = w.sources(behind...)
		}
	} else {
		list = w.sources("FROM")
		w.accept("FROM")
		from = w.sources(behind...)
	}
	if len(list) == 0 {
		c.tables = w.names()
	}
	for _, s := range list {
		c.tables = append(c.tables, meant(from, s.table)...)
	}
}

// source is a table that an UPDATE or a DELETE reads.
type source struct{ table, alias string }

// meant returns the tables that a name stands for, all when there is none.
func meant(from []source, name string) []string {
	var tables []string
	for _, s := range from {
		if name == "" || strings.EqualFold(s.table, name) || strings.EqualFold(s.alias, name) {
			tables = append(tables, s.table)
		}
	}
	if tables == nil {
		return []string{name}
	}
	return tables
}

// sources reads a list of tables up to one of the keywords.
func (w *wording) sources(until ...string) []source {
	var all []source
	expected, depth := true, 0
	for ; w.at < len(w.tokens); w.at++ {
		switch {
		case depth == 0 && slices.ContainsFunc(until, w.is):
			return all
		case w.is("("):
			depth++
		case w.is(")"):
			depth--
		case w.is(","), w.is("JOIN"), w.is("STRAIGHT_JOIN"), w.is("FROM"):
			expected = true
		case expected:
			if _, table := w.name(); table != "" {
				all = append(all, source{table, w.alias()})
				w.at--
			}
			expected = false
		}
	}
	return all
}

// joining are words that may follow a table and are no alias.
var joining = strings.Fields("INNER LEFT RIGHT CROSS NATURAL OUTER FULL JOIN STRAIGHT_JOIN USE IGNORE FORCE PARTITION INDEXED NOT USING LIMIT RETURNING FOR")

func (w *wording) alias() string {
	w.accept("AS")
	if !w.isName() || slices.ContainsFunc(joining, w.is) {
		return ""
	}
	w.at++
	return sqltext.Name(w.sql, w.tokens[w.at-1])
}

// settings reads a list of assignments up to one of the keywords.
func (w *wording) settings(until ...string) []setting {
	var all []setting
	for w.at < len(w.tokens) {
		var left []setting
		if w.is("(") { // (a, b) = (1, 2)
			for _, cell := range w.tuple() {
				inner := wording{sql: w.sql, tokens: cell}
				table, column := inner.name()
				left = append(left, setting{table: table, column: column})
			}
		} else {
			table, column := w.name()
			left = append(left, setting{table: table, column: column})
		}
		w.accept("=")
		value := w.value(until)
		for _, s := range left {
			if s.value = value; len(left) > 1 {
				s.value = nil
			}
			all = append(all, s)
		}
		if !w.accept(",") {
			break
		}
	}
	return all
}

// value reads up to a comma, a parenthesis that closes more than was opened, or one
// of the keywords.
func (w *wording) value(until []string) []sqltext.Token {
	begin, depth := w.at, 0
	for ; w.at < len(w.tokens); w.at++ {
		switch {
		case w.is("("):
			depth++
		case depth > 0 && w.is(")"):
			depth--
		case depth == 0 && (w.is(",") || w.is(")") || slices.ContainsFunc(until, w.is)):
			return w.tokens[begin:w.at]
		}
	}
	return w.tokens[begin:]
}

// tuple reads (value, value).
func (w *wording) tuple() [][]sqltext.Token {
	var cells [][]sqltext.Token
	for w.at++; w.at < len(w.tokens); {
		cells = append(cells, w.value(nil))
		if !w.accept(",") {
			w.accept(")")
			break
		}
	}
	return cells
}

// columns reads the list of an INSERT, nil when there is none.
func (w *wording) columns() []string {
	if !w.is("(") || w.at+1 < len(w.tokens) && w.tokens[w.at+1].Is(w.sql, "SELECT") {
		return nil
	}
	var names []string
	for _, cell := range w.tuple() {
		inner := wording{sql: w.sql, tokens: cell}
		_, name := inner.name()
		names = append(names, name)
	}
	return names
}

// name reads [qualifier.]name, of which it returns the last two parts, "" for none.
func (w *wording) name() (qualifier, name string) {
	for w.isName() {
		qualifier, name = name, sqltext.Name(w.sql, w.tokens[w.at])
		w.at++
		if !w.accept(".") {
			break
		}
	}
	return qualifier, name
}

// modifiers reads IGNORE, OR REPLACE and their like.
func (w *wording) modifiers() {
	for {
		switch {
		case w.accept("OR"):
			w.at++
		case w.accept("LOW_PRIORITY"), w.accept("HIGH_PRIORITY"), w.accept("DELAYED"), w.accept("QUICK"), w.accept("IGNORE"):
		default:
			return
		}
	}
}

// writes reports whether a statement that begins with WITH is no query.
func (w *wording) writes() bool {
	for _, verb := range rowVerbs[1:] {
		for i, t := range w.tokens {
			if t.Is(w.sql, verb) && !w.follows(i, "(") {
				return true
			}
		}
	}
	return false
}

func (w *wording) follows(i int, word string) bool {
	return i+1 < len(w.tokens) && w.tokens[i+1].Is(w.sql, word)
}

// names returns every name in the statement but those of tables it refers to.
func (w *wording) names() []string {
	var all []string
	for i, t := range w.tokens {
		if isNameLike(t) && (i == 0 || !w.tokens[i-1].Is(w.sql, "REFERENCES")) {
			all = append(all, sqltext.Name(w.sql, t))
		}
	}
	return all
}

func isNameLike(t sqltext.Token) bool {
	return t.Kind == sqltext.Word || t.Kind == sqltext.QuotedIdent || t.Kind == sqltext.String
}

// isName reports whether a name may stand here.
func (w *wording) isName() bool {
	if w.at >= len(w.tokens) || !isNameLike(w.tokens[w.at]) {
		return false
	}
	t := w.tokens[w.at]
	return t.Kind != sqltext.Word || !sqltext.Reserved(t.Text(w.sql)) || w.at > 0 && w.tokens[w.at-1].Is(w.sql, ".")
}

func (w *wording) is(word string) bool {
	return w.at < len(w.tokens) && w.tokens[w.at].Is(w.sql, word)
}

func (w *wording) accept(word string) bool {
	if !w.is(word) {
		return false
	}
	w.at++
	return true
}

// skip goes on to the next such word.
func (w *wording) skip(word string) {
	for w.at < len(w.tokens) && !w.is(word) {
		w.at++
	}
}

func (w *wording) text() string {
	if w.at >= len(w.tokens) {
		return ""
	}
	return w.tokens[w.at].Text(w.sql)
}
