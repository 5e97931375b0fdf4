package gormplugin

import (
	"strings"

	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/internal/sqltext"
)

// fragment reads a raw condition: the parts between its outermost ANDs, of
// which those that say `key = ?` or `key IN ?` count. Text in which AND might
// not be the weakest operator proves nothing.
func (r reader[E]) fragment(e clause.Expr) keyset[E] {
	// A backslash makes the extent of a string depend on the server's settings.
	if e.WithoutParentheses || strings.IndexByte(e.SQL, '\\') >= 0 {
		return keyset[E]{all: true}
	}
	set := keyset[E]{all: true}
	text := fragment{e.SQL, e.Vars, nil}
	s := sqltext.NewScanner(e.SQL, r.flavor)
	for depth := 0; ; {
		t, ok := s.NextCode()
		if !ok {
			break
		}
		depth += text.nesting(t)
		if depth == 0 && t.Is(e.SQL, "AND") {
			set = set.and(r.predicate(text))
			text.tokens = text.tokens[:0]
			continue
		}
		if depth == 0 && text.weak(t) {
			return keyset[E]{all: true}
		}
		text.tokens = append(text.tokens, t)
	}
	return set.and(r.predicate(text))
}

// fragment is a part of a raw condition.
type fragment struct {
	sql    string
	vars   []any
	tokens []sqltext.Token
}

func (f fragment) nesting(t sqltext.Token) int {
	switch {
	case t.Is(f.sql, "("):
		return 1
	case t.Is(f.sql, ")"):
		return -1
	}
	return 0
}

// weak reports whether t may be, or belong to, an operator that binds no more
// tightly than AND or that has an AND of its own.
func (f fragment) weak(t sqltext.Token) bool {
	for _, word := range [...]string{"OR", "XOR", "BETWEEN", "CASE", "|", ":=", ","} {
		if t.Is(f.sql, word) {
			return true
		}
	}
	return false
}

// predicate reads [table.]key = value, key IN ?, key IN (value, …).
func (r reader[E]) predicate(f fragment) keyset[E] {
	rest, ok := r.column(f)
	if !ok || len(rest) < 2 {
		return keyset[E]{all: true}
	}
	operator, operand := rest[0], rest[1:]
	switch {
	case operator.Is(f.sql, "=") && len(operand) == 1:
		if v, ok := f.value(operand[0]); ok {
			return r.key(v)
		}
	case operator.Is(f.sql, "IN"):
		if list, ok := f.list(operand); ok {
			return r.keys(list)
		}
	}
	return keyset[E]{all: true}
}

// column cuts the sharding key off the front of f.
func (r reader[E]) column(f fragment) ([]sqltext.Token, bool) {
	t := f.tokens
	if len(t) > 2 && t[1].Is(f.sql, ".") {
		if !f.isName(t[0]) || !r.isOwn(sqltext.Ident(f.sql, t[0])) {
			return nil, false
		}
		t = t[2:]
	}
	if len(t) == 0 || !f.isName(t[0]) || !strings.EqualFold(sqltext.Ident(f.sql, t[0]), r.table.Key) {
		return nil, false
	}
	return t[1:], true
}

func (f fragment) isName(t sqltext.Token) bool {
	return t.Kind == sqltext.Word || t.Kind == sqltext.QuotedIdent
}

// value returns what a parameter or a number stands for.
func (f fragment) value(t sqltext.Token) (any, bool) {
	switch t.Kind {
	case sqltext.Number:
		return t.Text(f.sql), true
	case sqltext.Param:
		// gorm replaces every question mark in turn, wherever it stands.
		n := strings.Count(f.sql[:t.Start], "?")
		if n < len(f.vars) {
			return f.vars[n], true
		}
	}
	return nil, false
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
		// gorm spreads a slice when its question mark follows the parenthesis.
		if i == 1 && isList(v) && operand[0].End == operand[1].Start {
			list = append(list, elements(v)...)
			continue
		}
		list = append(list, v)
	}
	return list, true
}
