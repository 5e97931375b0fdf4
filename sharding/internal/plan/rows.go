// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
)

// rows routes the rows of an INSERT: it sends the whole text if all belong to one target, otherwise
// a text with its rows to each target.
func (p *binding) rows(hinted sharding.Target, byHint bool) (Route, error) {
	in := p.insert
	var first sharding.Target
	var parts []Part // set from the second target on
	unplaced := 0
	for i := range in.input.Rows {
		if in.isUnplaced(&in.input.Rows[i], p.args) {
			unplaced++
			continue
		}
		at, err := p.row(&in.input.Rows[i])
		if err != nil {
			return Route{}, err
		}
		if i == unplaced {
			first = at
		}
		switch {
		case parts != nil:
			parts = placed(parts, at, i)
		case at != first:
			parts = placed([]Part{{Target: first, Rows: upTo(i)}}, at, i)
		}
	}
	everywhere := in.of.table.Map.Targets()
	if in.filled != "" && unplaced == len(in.input.Rows) { // none has a known target
		return Route{Kind: One, Target: everywhere[0], Unplaced: Unplaced{max(unplaced, 1), true, everywhere}}, nil
	}
	if byHint && (parts != nil || hinted != first) {
		return Route{}, p.refusal(in.of.table.Name, sharding.ErrMisplaced, "the context chooses "+hinted.String()+"; leave the hint out")
	}
	to, err := p.placedRows(first, parts)
	if unplaced > 0 {
		to.Unplaced = Unplaced{unplaced, false, everywhere}
	}
	return to, err
}

// row returns the target of a row of an INSERT.
func (p *binding) row(row *sqlparse.Row) (at sharding.Target, err error) {
	in := p.insert
	if l := in.empty(row, p.args); l != nil {
		return at, p.refusal(in.of.table.Name, numbers(l), numbersLeadNowhere)
	}
	slot, err := in.slot(row, p.args)
	if err != nil {
		return at, p.refusal(in.of.table.Name, err, "give each row a "+in.of.table.Key+" that leads to its shard")
	}
	if at, err = in.of.table.On(slot); err != nil {
		return at, p.refusal(in.of.table.Name, err, "")
	}
	return at, nil
}

// placedRows routes rows by their targets: all rows of the INSERT to the first, or its parts.
func (p *binding) placedRows(first sharding.Target, parts []Part) (Route, error) {
	if parts != nil {
		return p.divided(parts)
	}
	if err := p.checkSubqueries(first); err != nil {
		return Route{}, err
	}
	return p.one(first)
}

// upTo returns the numbers below n.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// placed adds a row to the part of its target.
func placed(parts []Part, at sharding.Target, row int) []Part {
	for i := range parts {
		if parts[i].Target == at {
			parts[i].Rows = append(parts[i].Rows, row)
			return parts
		}
	}
	return append(parts, Part{Target: at, Rows: []int{row}})
}

// divided returns, for each target, a text with its rows, and their arguments.
func (p *binding) divided(parts []Part) (Route, error) {
	if err := p.divisible(); err != nil {
		return Route{}, err
	}
	rows := p.insert.input.Rows
	w := &Writes{Parts: parts, Rows: len(rows)}
	recognised, err := p.recognised(w)
	if err != nil {
		return Route{}, err
	}
	all := sqlparse.Span{From: rows[0].From, To: rows[len(rows)-1].To}
	params := parameters{p.statement}
	argsOf := p.insert.arguments(params, all)
	for i := range parts {
		part := &parts[i]
		var with renumbering
		part.Args, with = argsOf(part.Rows)
		part.Text, err = p.edited(part.Target, with, edit{Span: all, with: p.insert.some(part.Rows, params, with)}, recognised)
		if err != nil {
			return Route{}, err
		}
		part.Args = p.sent(part.Args)
	}
	return Route{Kind: Several, Writes: w}, nil
}

// recognised adds a unique key to the returned columns if some rows may be skipped.
func (p *binding) recognised(w *Writes) (e edit, err error) {
	if !p.insert.leavesOut() || p.insert.filled != "" {
		return e, nil
	}
	s := p.insert.returned()
	e = inserted(p.insert.input.To, "")
	for _, column := range s.columns {
		e.with += ", " + p.options.Quote(column)
	}
	w.Keys, w.Hidden = make([]string, w.Rows), len(s.columns)
	for i := range w.Keys {
		key, err := s.key(&p.insert.input.Rows[i], p.args)
		if err == nil && slices.Contains(key, nil) {
			err = fmt.Errorf("%w: row %d has NULL in %s, so it could not be matched", sharding.ErrCrossShard, i, strings.Join(s.columns, ", "))
		}
		if err != nil {
			return e, p.refusal(p.insert.of.table.Name, err, "leave RETURNING out")
		}
		w.Keys[i] = Text(key)
	}
	return e, nil
}

// arguments returns a function that selects the arguments of some rows, and of the text before and
// after the rows. all is the part of the text with the rows.
func (in *insertion) arguments(params parameters, all sqlparse.Span) func(rows []int) ([]int, renumbering) {
	rows := in.input.Rows
	first, _ := slices.BinarySearchFunc(params.of.Params, all.From, func(q *sqlparse.Param, at int) int { return q.From - at })
	before, rest := params.of.Params[:first], params.of.Params[first:]
	own := make([][]*sqlparse.Param, len(rows))
	for i, row := range rows {
		if row.FirstParam != 0 { // it has the expressions of the row before it
			own[i] = own[i-1]
			continue
		}
		n := 0
		for n < len(rest) && rest[n].To <= row.To {
			n++
		}
		own[i], rest = rest[:n], rest[n:]
	}
	return func(some []int) ([]int, renumbering) {
		args := appendArgs(nil, before, 0)
		for _, row := range some {
			args = appendArgs(args, own[row], rows[row].FirstParam)
		}
		return params.renumbered(appendArgs(args, rest, 0))
	}
}

func appendArgs(args []int, params []*sqlparse.Param, shift int) []int {
	for _, q := range params {
		args = append(args, q.Index+shift)
	}
	return args
}

// some returns the text of some rows.
func (in *insertion) some(rows []int, params parameters, with renumbering) string {
	var text strings.Builder
	all := in.input.Rows
	text.Grow(len(rows) * (2 + all[rows[0]].To - all[rows[0]].From))
	for i, row := range rows {
		if i > 0 {
			text.WriteString(", ")
		}
		params.copied(&text, all[row].Span, with)
	}
	return text.String()
}
