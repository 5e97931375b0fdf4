// SPDX-License-Identifier: Apache-2.0

package sqltext

import "bytes"

// Fingerprint returns the common part of statements that differ only in their values: the text with
// ? instead of literals and parameters, and with one space instead of white space and comments. An
// element of a list that equals the one before it is omitted, and so are rows after VALUES; …
// replaces such elements.
func Fingerprint(sql string, f Flavor) string {
	s, p := NewScanner(sql, f), fingerprint{}
	for t, ok := s.Next(); ok; t, ok = s.Next() {
		p.write(t, t.Text(sql))
	}
	return string(p.out)
}

// fingerprint is a fingerprint that is being computed.
type fingerprint struct {
	out   []byte
	space bool  // write a space before the next token
	open  []int // the offsets of the open parentheses
}

func (p *fingerprint) write(t Token, text string) {
	switch t.Kind {
	case Space, Comment:
		p.space = len(p.out) > 0
		return
	case String, Number, Param, Named:
		text = "?"
	}
	if p.space {
		p.out = append(p.out, ' ')
	}
	p.space = false
	begin := len(p.out)
	p.out = append(p.out, text...)
	switch {
	case text == "?":
		p.collapse(begin)
	case text == "(":
		p.open = append(p.open, begin)
	case text == ")" && len(p.open) > 0:
		begin = p.open[len(p.open)-1]
		p.open = p.open[:len(p.open)-1]
		p.collapse(begin)
	}
}

// collapse removes an element of a list that equals the one before it.
func (p *fingerprint) collapse(begin int) {
	const more = ", …"
	before := bytes.TrimRight(p.out[:begin], " ")
	if !bytes.HasSuffix(before, []byte(",")) {
		return
	}
	before = bytes.TrimSuffix(before[:len(before)-1], []byte(more))
	if bytes.HasSuffix(before, p.out[begin:]) {
		p.out = append(p.out[:len(before)], more...)
	}
}
