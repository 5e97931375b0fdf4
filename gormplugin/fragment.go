package gormplugin

import (
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// fragment is a raw condition as far as its text alone tells what it means: ANDs,
// ORs and parentheses, and of the comparisons between them those that say
// `column = value` or `column IN list`. It is immutable.
type fragment struct {
	root   node
	quoted bool // it has a literal or a quoted name
	// simple says that it is one comparison, or several joined by AND, of columns
	// with numbers and parameters: parentheses around it would change nothing.
	simple bool
}

// node is a part of a condition.
type node struct {
	kind  nodeKind
	parts []node // of a conjunction or a disjunction

	column    name      // of a comparison
	right     []operand // its values
	inParens  bool      // … are written (a, b)
	adjoining bool      // the first of them follows the parenthesis at once
}

type nodeKind uint8

const (
	opaque nodeKind = iota // it proves nothing: NOT, BETWEEN, every other comparison
	conjunction
	disjunction
	equality   // column = value
	membership // column IN list
)

// name is [table.]column, without quotes.
type name struct {
	table, column string
	qualified     bool
}

// operand is one value in a comparison.
type operand struct {
	kind     operandKind
	text     string // the name of an @name parameter
	number   any    // int64 or uint64; nil for a number that is written in any other way
	variable int    // which of the values a question mark stands for
}

type operandKind uint8

const (
	literal operandKind = iota // a number
	variable
	named
)

// maxFragment keeps conditions out that are long and may differ each time.
const maxFragment = 512

// fragments are the raw conditions of statements, each parsed once. It is safe for
// concurrent use.
type fragments struct {
	flavor sqltext.Flavor
	known  *memory[fragment]
}

func newFragments(flavor sqltext.Flavor) fragments {
	return fragments{flavor, newMemory[fragment](maxFragment)}
}

// of returns the condition with this text.
func (f fragments) of(text string) *fragment {
	if known := f.known.get(text); known != nil {
		return known
	}
	return f.known.put(text, parseFragment(text, f.flavor))
}

// parseFragment reads a whole condition. Text in which AND and OR might not bind as the
// standard says proves nothing at all, nor does an unmatched parenthesis.
func parseFragment(text string, flavor sqltext.Flavor) fragment {
	// A backslash makes the extent of a string depend on the server's settings, and
	// its version says whether it skips a comment.
	if strings.IndexByte(text, '\\') >= 0 || sqltext.Versioned(text, []sqltext.Flavor{flavor}) {
		return fragment{quoted: true}
	}
	p := parser{sql: text, simple: true}
	f := fragment{quoted: strings.ContainsAny(text, "'\"`")}
	if !p.tokenize(flavor) {
		return f
	}
	root := p.disjunction()
	if p.at < len(p.tokens) {
		return f
	}
	f.root, f.simple = root, p.simple && !f.quoted
	return f
}

// parser reads a fragment's tokens by descending into its parentheses.
type parser struct {
	sql    string
	tokens []sqltext.Token
	at     int
	depth  int
	simple bool // nothing was read that is not simple
}

// tokenize scans the text; false when it has an operator that decides the
// meaning of AND and OR in a way of its own.
func (p *parser) tokenize(flavor sqltext.Flavor) bool {
	s := sqltext.NewScanner(p.sql, flavor)
	for t, ok := s.Next(); ok; t, ok = s.Next() {
		switch {
		case p.isOdd(t):
			return false
		case t.Kind == sqltext.Comment:
			p.simple = false
		case t.Kind != sqltext.Space:
			p.tokens = append(p.tokens, t)
		}
	}
	return true
}

// isOdd reports whether t may be, or belong to, an operator that binds neither
// more tightly than AND nor as OR, or that has an AND of its own.
func (p *parser) isOdd(t sqltext.Token) bool {
	if t.Kind == sqltext.Op {
		c := p.sql[t.Start]
		return c == '|' || c == '&' || c == ';' || t.Text(p.sql) == ":="
	}
	return t.Is(p.sql, "XOR") || t.Is(p.sql, "CASE")
}

// maxDepth is how deep parentheses are followed; what lies deeper proves nothing.
const maxDepth = 50

func (p *parser) disjunction() node { return p.joined("OR", disjunction, p.conjunction) }

func (p *parser) conjunction() node { return p.joined("AND", conjunction, p.comparison) }

// joined reads what stands between operators of one kind.
func (p *parser) joined(operator string, kind nodeKind, operand func() node) node {
	first := operand()
	if !p.accept(operator) {
		return first
	}
	p.simple = p.simple && kind == conjunction
	all := node{kind: kind, parts: []node{first, operand()}}
	for p.accept(operator) {
		all.parts = append(all.parts, operand())
	}
	return all
}

func (p *parser) accept(word string) bool {
	if p.at < len(p.tokens) && p.is(word) {
		p.at++
		return true
	}
	return false
}

// comparison reads a group in parentheses or what stands between two operators.
func (p *parser) comparison() node {
	begin := p.at
	if group, ok := p.group(); ok {
		return group
	}
	p.at = begin
	p.skip()
	t := p.tokens[begin:p.at]
	p.simple = p.simple && isSimple(p.sql, t)
	return p.predicate(t)
}

// group reads a parenthesised condition, false if it is only the beginning of a
// comparison, like a function's arguments or (a, b) = (1, 2).
func (p *parser) group() (node, bool) {
	if p.depth >= maxDepth || !p.accept("(") {
		return node{}, false
	}
	p.simple = false
	p.depth++
	inner := p.disjunction()
	p.depth--
	if !p.accept(")") {
		return node{}, false
	}
	end := p.at == len(p.tokens) || p.is("AND") || p.is("OR") || p.is(")")
	return inner, end
}

func (p *parser) is(word string) bool { return p.tokens[p.at].Is(p.sql, word) }

// skip goes to the end of a comparison: to the next AND, OR or closing
// parenthesis that is not its own. The AND of a BETWEEN is its own.
func (p *parser) skip() {
	for depth, betweens := 0, 0; p.at < len(p.tokens); p.at++ {
		switch {
		case p.is("("):
			depth++
		case p.is(")"):
			if depth--; depth < 0 {
				return
			}
		case depth > 0:
		case p.is("BETWEEN"):
			betweens++
		case p.is("AND") && betweens > 0:
			betweens--
		case p.is("AND"), p.is("OR"):
			return
		}
	}
}

// predicate reads [table.]column = value, column IN ?, column IN (value, …).
func (p *parser) predicate(t []sqltext.Token) node {
	column, rest, ok := p.name(t)
	if !ok || len(rest) < 2 {
		return node{}
	}
	n := node{column: column}
	switch operator, right := rest[0], rest[1:]; {
	case operator.Is(p.sql, "=") && len(right) == 1:
		n.kind = equality
		ok = p.operands(&n, right)
	case operator.Is(p.sql, "IN"):
		n.kind = membership
		ok = p.list(&n, right)
	default:
		ok = false
	}
	if !ok {
		return node{}
	}
	return n
}

// name cuts a column off the front of t.
func (p *parser) name(t []sqltext.Token) (column name, rest []sqltext.Token, ok bool) {
	if len(t) > 2 && t[1].Is(p.sql, ".") {
		if !isName(t[0]) {
			return name{}, nil, false
		}
		column.table, column.qualified = sqltext.Ident(p.sql, t[0]), true
		t = t[2:]
	}
	if len(t) == 0 || !isName(t[0]) {
		return name{}, nil, false
	}
	column.column = sqltext.Ident(p.sql, t[0])
	return column, t[1:], true
}

func isName(t sqltext.Token) bool {
	return t.Kind == sqltext.Word || t.Kind == sqltext.QuotedIdent
}

// list reads IN's right side.
func (p *parser) list(n *node, t []sqltext.Token) bool {
	if len(t) == 1 {
		return p.operands(n, t)
	}
	last := len(t) - 1
	if !t[0].Is(p.sql, "(") || !t[last].Is(p.sql, ")") {
		return false
	}
	n.inParens, n.adjoining = true, t[0].End == t[1].Start
	return p.operands(n, t[1:last])
}

// operands reads values with commas between them.
func (p *parser) operands(n *node, t []sqltext.Token) bool {
	for i, token := range t {
		if i%2 == 1 {
			if !token.Is(p.sql, ",") {
				return false
			}
			continue
		}
		value, ok := p.operand(token)
		if !ok {
			return false
		}
		n.right = append(n.right, value)
	}
	return len(t)%2 == 1
}

// operand reads a parameter or a number.
func (p *parser) operand(t sqltext.Token) (operand, bool) {
	text := t.Text(p.sql)
	switch {
	case t.Kind == sqltext.Number:
		return operand{kind: literal, number: numberOf(text)}, true
	case t.Kind == sqltext.Param:
		// gorm replaces every question mark in turn, wherever it stands.
		return operand{kind: variable, variable: strings.Count(p.sql[:t.Start], "?")}, true
	case t.Kind == sqltext.Word && text[0] == '@' && p.endsName(t.End):
		return operand{kind: named, text: text[1:]}, true
	}
	return operand{}, false
}

// numberOf returns an integer, nil for what is none or what a database may take for
// a text (0x5). It is a number, not the text that it is written with: a column of
// texts is compared with it in another way.
func numberOf(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n
	}
	return nil
}

// endsName reports whether gorm, too, ends an @name at i.
func (p *parser) endsName(i int) bool {
	return i == len(p.sql) || strings.IndexByte(" ,)\r\n;", p.sql[i]) >= 0
}
