package sqlparse

import (
	"strconv"

	"github.com/shardid/shardid/internal/sqltext"
)

// params numbers the parameters of a text.
type params struct {
	slab  []Param
	kind  paramKind
	marks int            // how many ? there were
	named map[string]int // the numbers of the names
}

// paramKind is how parameters are written. A text that mixes kinds is Unknown:
// drivers number them differently.
type paramKind uint8

const (
	mark     paramKind = iota + 1 // ?
	numbered                      // $2, ?2
	name                          // :name, @name, $name
)

// atParam reports whether the token is a parameter.
func (p *parser) atParam() bool {
	switch p.tok.kind {
	case sqltext.Param:
		return true
	case sqltext.Named:
		return p.d.Family != PostgreSQL
	case sqltext.Word:
		c := p.text[p.tok.start]
		return p.d.Family == SQLite && (c == '@' || c == '$')
	}
	return false
}

// param reads the parameter at tok.
func (p *parser) param() *Param {
	t := p.tok
	p.next()
	kind, number := name, ""
	switch {
	case t.kind != sqltext.Param:
	case t.end-t.start > 1:
		kind, number = numbered, p.text[t.start+1:t.end]
	case p.d.Family == SQLite && p.tok.kind == sqltext.Number && p.tok.start == t.end:
		kind, number = numbered, p.textOf(p.tok)
		p.next()
	default:
		kind = mark
	}
	param := Param{Span: p.since(t.start)}
	switch kind {
	case mark:
	case numbered:
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil || n == 0 {
			p.failAt(t)
		}
		param.Index = int(n) - 1
	case name:
		param.Name = p.textOf(t)
		param.Index = p.params.number(param.Name)
	}
	if p.params.kind != 0 && p.params.kind != kind {
		p.failAt(t)
	}
	return p.addParam(kind, param)
}

// number returns the number of a name.
func (s *params) number(name string) int {
	n, known := s.named[name]
	if known {
		return n
	}
	if s.named == nil {
		s.named = map[string]int{}
	}
	n = len(s.named)
	s.named[name] = n
	return n
}

// addParam puts a parameter behind those before it.
func (p *parser) addParam(kind paramKind, param Param) *Param {
	s := &p.params
	s.kind = kind
	if kind == mark {
		param.Index = s.marks
		s.marks++
	}
	if len(s.slab) == 0 {
		s.slab = make([]Param, min(max(2, 2*len(p.out.Params)), 256))
	}
	added := &s.slab[0]
	s.slab = s.slab[1:]
	*added = param
	p.out.Params = append(p.out.Params, added)
	p.out.Args = max(p.out.Args, param.Index+1)
	return added
}
