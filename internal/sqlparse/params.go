// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"strconv"

	"github.com/shardid/shardid/internal/sqltext"
)

// numbers counts the parameters of a text.
type numbers struct {
	kind  paramKind
	marks int            // the number of ? so far
	named map[string]int // the numbers of the names
}

// paramKind is the form of parameters. A text that mixes forms is Unknown, because drivers number
// them differently.
type paramKind uint8

const (
	mark     paramKind = iota + 1 // ?
	numbered                      // $2, ?2
	name                          // :name, @name, $name
)

func (p *valueReader) param() *Param {
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
	if p.numbers.kind != 0 && p.numbers.kind != kind {
		p.failAt(t)
	}
	p.numbers.kind = kind
	param := p.params.put(Param{Span: p.since(t.start)})
	switch kind {
	case mark:
		param.Index = p.numbers.marks
		p.numbers.marks++
	case numbered:
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil || n == 0 {
			p.failAt(t)
		}
		param.Index = int(n) - 1
	case name:
		param.Name = p.textOf(t)
		param.Index = p.numbers.of(param.Name)
	}
	p.out.Params = append(p.out.Params, param)
	p.out.Args = max(p.out.Args, param.Index+1)
	return param
}

// of returns the number of a name.
func (s *numbers) of(name string) int {
	n, known := s.named[name]
	if !known {
		if s.named == nil {
			s.named = map[string]int{}
		}
		n = len(s.named)
		s.named[name] = n
	}
	return n
}
