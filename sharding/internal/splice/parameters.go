// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
)

// Named reports whether the parameters of a statement have names.
func Named(st *sqlparse.Statement) bool {
	return len(st.Params) > 0 && st.Params[0].Name != ""
}

// Numbered reports whether the parameters of a statement have numbers.
func Numbered(st *sqlparse.Statement) bool {
	return len(st.Params) > 0 && !Named(st) && st.Params[0].To-st.Params[0].From > 1
}

// ArgsIn returns the arguments of the parameters in a part of the text.
func ArgsIn(st *sqlparse.Statement, part sqlparse.Span) (args []int) {
	for _, q := range paramsIn(st, part) {
		args = append(args, q.Index)
	}
	return args
}

func paramsIn(st *sqlparse.Statement, part sqlparse.Span) []*sqlparse.Param {
	before := func(at int) int {
		n, _ := slices.BinarySearchFunc(st.Params, at, func(q *sqlparse.Param, at int) int { return q.From - at })
		return n
	}
	return st.Params[before(part.From):before(part.To)]
}

// Around returns the arguments of a text with these edits: the text may lack a parameter, or
// contain a copied one twice.
func Around(st *sqlparse.Statement, edits []Edit) (args []int, with Renumbering) {
	next := slices.Clone(edits)
	slices.SortStableFunc(next, inText)
	for _, q := range st.Params {
		for len(next) > 0 && next[0].From <= q.From {
			args, next = append(args, next[0].Args...), next[1:]
		}
		if !slices.ContainsFunc(edits, func(e Edit) bool { return q.Span.In(e.Span) }) {
			args = append(args, q.Index)
		}
	}
	for _, e := range next {
		args = append(args, e.Args...)
	}
	return Renumbered(st, args)
}

// Alone returns a part of the text for a text of its own, and its arguments.
func Alone(st *sqlparse.Statement, part sqlparse.Span) (text string, args []int) {
	var out strings.Builder
	args, with := Renumbered(st, ArgsIn(st, part))
	Copied(st, &out, part, with)
	return out.String(), args
}

// Marked returns a text with ? for these arguments in the form of numbered parameters.
func Marked(st *sqlparse.Statement, text string, args []int) string {
	sign, out := "$", strings.Builder{}
	if Numbered(st) {
		sign = st.Text[st.Params[0].From:][:1]
	}
	for i, part := range strings.Split(text, "?") {
		if i > 0 {
			out.WriteString(sign + strconv.Itoa(args[i-1]+1))
		}
		out.WriteString(part)
	}
	return out.String()
}

// Written returns the text with edits. An edit in a part that another one replaces has no effect. reads are the rules by
// which the text is read.
func Written(st *sqlparse.Statement, edits []Edit, with Renumbering, reads sqltext.Flavor) string {
	slices.SortStableFunc(edits, inText)
	var out strings.Builder
	end := 0
	for _, e := range edits {
		if e.From < end {
			continue
		}
		Copied(st, &out, sqlparse.Span{From: end, To: e.From}, with)
		if with != nil && len(e.Args) > 0 {
			with.renumber(&out, e.With, reads)
		} else {
			out.WriteString(e.With)
		}
		end = e.To
	}
	Copied(st, &out, sqlparse.Span{From: end, To: len(st.Text)}, with)
	return out.String()
}

// Copied writes a part of the text.
func Copied(st *sqlparse.Statement, out *strings.Builder, part sqlparse.Span, with Renumbering) {
	text := st.Text
	if with != nil {
		for _, q := range paramsIn(st, part) {
			out.WriteString(text[part.From : q.From+1])
			out.WriteString(strconv.Itoa(with[q.Index]))
			part.From = q.To
		}
	}
	out.WriteString(text[part.From:part.To])
}

// Renumbered returns arguments in the order of their parameters in a text. If these have numbers, it
// returns each argument once, in their order, and the new numbers of the parameters.
func Renumbered(st *sqlparse.Statement, args []int) ([]int, Renumbering) {
	if !Numbered(st) {
		return args, nil
	}
	slices.Sort(args)
	args = slices.Compact(args)
	if len(args) == 0 {
		return args, Renumbering{}
	}
	with := make(Renumbering, args[len(args)-1]+1)
	for i, arg := range args {
		with[arg] = i + 1
	}
	return args, with
}

// Renumbering maps the old number of each numbered parameter, less one, to its new number. It is
// needed if a text has only some of them, because a database requires numbers without gaps. It is
// nil for parameters without numbers.
type Renumbering []int

// renumber writes a text that copies parameters.
func (r Renumbering) renumber(out *strings.Builder, text string, reads sqltext.Flavor) {
	scanner, end := sqltext.NewScanner(text, reads), 0
	for t, ok := scanner.NextCode(); ok; t, ok = scanner.NextCode() {
		if t.Kind != sqltext.Param {
			continue
		}
		after := strings.TrimLeft(text[t.Start+1:], "0123456789") // SQLite's ?2 are two tokens
		out.WriteString(text[end : t.Start+1])
		end = len(text) - len(after)
		number, _ := strconv.Atoi(text[t.Start+1 : end]) // the parser has accepted it
		out.WriteString(strconv.Itoa(r[number-1]))
	}
	out.WriteString(text[end:])
}
