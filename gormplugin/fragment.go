package gormplugin

import (
	"database/sql"
	"maps"
	"strings"

	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/internal/sqltext"
)

// fragment reads a raw condition: ANDs, ORs and parentheses, and of the
// comparisons between them those that say `key = value` or `key IN list`. NOT,
// BETWEEN and every other comparison prove nothing by themselves. Text in which
// AND and OR might not bind as the standard says proves nothing at all.
func (r reader[E]) fragment(e clause.Expr) keyset[E] {
	f, ok := r.scan(e)
	if !ok {
		return keyset[E]{all: true}
	}
	set, _ := r.parse(f, false)
	return set
}

// scan returns the tokens of a raw condition; false when they prove nothing.
func (r reader[E]) scan(e clause.Expr) (fragment, bool) {
	// A backslash makes the extent of a string depend on the server's settings.
	if e.WithoutParentheses || strings.IndexByte(e.SQL, '\\') >= 0 {
		return fragment{}, false
	}
	f := fragment{sql: e.SQL, vars: e.Vars, tokens: r.scratch}
	return f, f.tokenize(r.flavor)
}

// named reads a raw condition with @name parameters.
func (r reader[E]) named(e clause.NamedExpr) keyset[E] {
	if strings.ContainsAny(e.SQL, "\\?'\"`") { // gorm looks for names inside of literals, too
		return keyset[E]{all: true}
	}
	names, ok := namedValues(e.Vars)
	if !ok {
		return keyset[E]{all: true}
	}
	f := fragment{sql: e.SQL, names: names, tokens: r.scratch}
	if !f.tokenize(r.flavor) {
		return keyset[E]{all: true}
	}
	set, _ := r.parse(f, false)
	return set
}

// namedValues returns the values of @name parameters; false for the structs that
// gorm also takes them from.
func namedValues(vars []any) (map[string]any, bool) {
	names := map[string]any{}
	for _, v := range vars {
		switch v := v.(type) {
		case sql.NamedArg:
			names[v.Name] = v.Value
		case map[string]any:
			maps.Copy(names, v)
		default:
			return nil, false
		}
	}
	return names, true
}

// fragment is a raw condition.
type fragment struct {
	sql    string
	vars   []any
	names  map[string]any // of @name parameters
	tokens []sqltext.Token
}

// tokenize scans the text; false when it has an operator that decides the
// meaning of AND and OR in a way of its own.
func (f *fragment) tokenize(flavor sqltext.Flavor) bool {
	s := sqltext.NewScanner(f.sql, flavor)
	for t, ok := s.NextCode(); ok; t, ok = s.NextCode() {
		if f.isOdd(t) {
			return false
		}
		f.tokens = append(f.tokens, t)
	}
	return true
}

// isOdd reports whether t may be, or belong to, an operator that binds neither
// more tightly than AND nor as OR, or that has an AND of its own.
func (f fragment) isOdd(t sqltext.Token) bool {
	if t.Kind == sqltext.Op {
		c := f.sql[t.Start]
		return c == '|' || c == '&' || c == ';' || f.sql[t.Start:t.End] == ":="
	}
	return t.Is(f.sql, "XOR") || t.Is(f.sql, "CASE")
}

// parser reads a fragment's tokens by descending into its parentheses.
type parser[E comparable] struct {
	reader[E]
	fragment
	at    int
	depth int

	collect bool
	lists   []keyList[E]
}

// keyList is a list of keys that is one of the values of a fragment, and that a
// row must be in to match.
type keyList[E comparable] struct {
	variable int
	place    func(any) (E, error)
}

// parse reads a whole fragment, and collects its lists if asked to.
func (r reader[E]) parse(f fragment, collect bool) (keyset[E], []keyList[E]) {
	p := parser[E]{reader: r, fragment: f, collect: collect}
	set := p.disjunction()
	if p.at < len(f.tokens) { // an unmatched parenthesis
		return keyset[E]{all: true}, nil
	}
	return set, p.lists
}

// maxDepth is how deep parentheses are followed; what lies deeper proves nothing.
const maxDepth = 50

func (p *parser[E]) disjunction() keyset[E] {
	either := p.conjunction()
	for p.accept("OR") {
		either = either.or(p.conjunction())
	}
	return either
}

func (p *parser[E]) conjunction() keyset[E] {
	both := p.comparison()
	for p.accept("AND") {
		both = both.and(p.comparison())
	}
	return both
}

func (p *parser[E]) accept(word string) bool {
	if p.at < len(p.tokens) && p.tokens[p.at].Is(p.sql, word) {
		p.at++
		return true
	}
	return false
}

// comparison reads a group in parentheses or what stands between two operators.
func (p *parser[E]) comparison() keyset[E] {
	begin, lists := p.at, len(p.lists)
	if set, ok := p.group(); ok {
		return set
	}
	p.at, p.lists = begin, p.lists[:lists]
	p.skip()
	return p.predicate(p.tokens[begin:p.at])
}

// group reads a parenthesised condition, false if it is only the beginning of a
// comparison, like a function's arguments or (a, b) = (1, 2).
func (p *parser[E]) group() (keyset[E], bool) {
	if p.depth >= maxDepth || !p.accept("(") {
		return keyset[E]{}, false
	}
	p.depth++
	set := p.disjunction()
	p.depth--
	if !p.accept(")") {
		return keyset[E]{}, false
	}
	end := p.at == len(p.tokens) || p.is("AND") || p.is("OR") || p.is(")")
	return set, end
}

func (p *parser[E]) is(word string) bool { return p.tokens[p.at].Is(p.sql, word) }

// skip goes to the end of a comparison: to the next AND, OR or closing
// parenthesis that is not its own. The AND of a BETWEEN is its own.
func (p *parser[E]) skip() {
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

// predicate reads [table.]key = value, key IN ?, key IN (value, …).
func (p *parser[E]) predicate(t []sqltext.Token) keyset[E] {
	place, rest := p.column(t)
	if place == nil || len(rest) < 2 {
		return keyset[E]{all: true}
	}
	operator, operand := rest[0], rest[1:]
	switch {
	case operator.Is(p.sql, "=") && len(operand) == 1:
		if v, ok := p.value(operand[0]); ok {
			return p.key(place, v)
		}
	case operator.Is(p.sql, "IN"):
		if list, ok := p.list(operand); ok {
			p.note(operand, place)
			return p.keys(place, list)
		}
	}
	return keyset[E]{all: true}
}

// note collects the operand of an IN if it is a list in one value.
func (p *parser[E]) note(operand []sqltext.Token, place func(any) (E, error)) {
	if !p.collect || len(operand) != 1 && len(operand) != 3 {
		return
	}
	t := operand[len(operand)/2]
	if t.Kind != sqltext.Param {
		return
	}
	if n := p.variable(t); n < len(p.vars) && isList(p.vars[n]) {
		p.lists = append(p.lists, keyList[E]{n, place})
	}
}

// column cuts a key's column off the front of t and returns what its values
// stand for, nil if it is no key.
func (p *parser[E]) column(t []sqltext.Token) (func(any) (E, error), []sqltext.Token) {
	if len(t) > 2 && t[1].Is(p.sql, ".") {
		if !isName(t[0]) || !p.isOwn(sqltext.Ident(p.sql, t[0])) {
			return nil, nil
		}
		t = t[2:]
	}
	if len(t) == 0 || !isName(t[0]) {
		return nil, nil
	}
	return p.places(sqltext.Ident(p.sql, t[0])), t[1:]
}

func isName(t sqltext.Token) bool {
	return t.Kind == sqltext.Word || t.Kind == sqltext.QuotedIdent
}

// value returns what a parameter or a number stands for.
func (f fragment) value(t sqltext.Token) (any, bool) {
	switch t.Kind {
	case sqltext.Number:
		return t.Text(f.sql), true
	case sqltext.Param:
		if n := f.variable(t); n < len(f.vars) {
			return f.vars[n], true
		}
	case sqltext.Word:
		if name := t.Text(f.sql); name[0] == '@' && f.endsName(t.End) {
			v, ok := f.names[name[1:]]
			return v, ok
		}
	}
	return nil, false
}

// variable returns which of the values a question mark stands for: gorm replaces
// every one in turn, wherever it stands.
func (f fragment) variable(t sqltext.Token) int { return strings.Count(f.sql[:t.Start], "?") }

// endsName reports whether gorm, too, ends an @name at i.
func (f fragment) endsName(i int) bool {
	return i == len(f.sql) || strings.IndexByte(" ,)\r\n;", f.sql[i]) >= 0
}

// list returns the values of IN's right side.
func (f fragment) list(operand []sqltext.Token) ([]any, bool) {
	if len(operand) == 1 {
		v, ok := f.value(operand[0])
		if _, isBytes := v.([]byte); !ok || isBytes || !isList(v) {
			return nil, false
		}
		return elements(v), true
	}
	last := len(operand) - 1
	if !operand[0].Is(f.sql, "(") || !operand[last].Is(f.sql, ")") || last%2 == 1 {
		return nil, false
	}
	var list []any
	for i := 1; i < last; i += 2 {
		if i+1 < last && !operand[i+1].Is(f.sql, ",") {
			return nil, false
		}
		v, ok := f.value(operand[i])
		if !ok {
			return nil, false
		}
		// gorm spreads a slice when its parameter follows the parenthesis.
		if i == 1 && isList(v) && operand[0].End == operand[1].Start {
			list = append(list, elements(v)...)
			continue
		}
		list = append(list, v)
	}
	return list, true
}
