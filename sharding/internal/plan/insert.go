// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/combine"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/splice"
)

// checkSelected refuses INSERT … SELECT of values that do not lead to the shard of its rows.
func (p *binding) checkSelected() error {
	in := p.Insert
	if in == nil {
		return nil
	}
	if err := in.CheckApart(p.args); err != nil {
		return p.Refusal(in.Of.Table.Name, err, "select them from columns of one row that lead to its shard, or insert VALUES")
	}
	if in.Selected == nil {
		return nil
	}
	if l := in.Empty(in.Selected, p.args); l != nil {
		return p.Refusal(in.Of.Table.Name, analysis.Numbering(l), analysis.NumbersLeadNowhere)
	}
	if err := in.CheckSelected(p.args); err != nil {
		return p.Refusal(in.Of.Table.Name, err, "select a value of "+in.Of.Table.Key+" that leads to its shard")
	}
	return nil
}

// insertion is an INSERT … VALUES with a caller's arguments and hint.
type insertion struct {
	*binding
	*analysis.Insertion
}

// rows routes the rows of an INSERT: it sends the whole text if all belong to one target, otherwise
// a text with its rows to each target.
func (in insertion) rows(hinted sharding.Target, byHint bool) (*Route, error) {
	var first, at sharding.Target
	var parts []Part                       // set from the second target on
	last, unplaced := sharding.Slot(-1), 0 // the slot of at
	for i := range in.Input.Rows {
		if in.IsUnplaced(&in.Input.Rows[i], in.args) {
			unplaced++
			continue
		}
		slot, err := in.row(&in.Input.Rows[i])
		if err != nil {
			return nil, err
		}
		if slot != last {
			if at, err = in.Of.Table.On(slot); err != nil {
				return nil, in.Refusal(in.Of.Table.Name, err, "")
			}
			last = slot
		}
		if i == unplaced {
			first = at
		}
		switch {
		case parts != nil:
			parts = placed(parts, at, i)
		case at != first:
			for before := range i {
				parts = placed(parts, first, before)
			}
			parts = placed(parts, at, i)
		}
	}
	if in.Filled != "" && unplaced == len(in.Input.Rows) { // none has a known target
		everywhere := in.Of.Table.Map.Targets()
		return &Route{Kind: One, Pooled: true, Target: everywhere[0], Unplaced: &Unplaced{max(unplaced, 1), true, everywhere}}, nil
	}
	if byHint && (parts != nil || hinted != first) {
		return nil, in.Refusal(in.Of.Table.Name, sharding.ErrMisplaced, "the context chooses "+hinted.String()+"; leave the hint out")
	}
	to, err := in.placedRows(first, parts)
	if err == nil && unplaced > 0 {
		partly := *to
		partly.Unplaced = &Unplaced{unplaced, false, in.Of.Table.Map.Targets()}
		return &partly, nil
	}
	return to, err
}

func (in insertion) row(row *sqlparse.Row) (sharding.Slot, error) {
	if l := in.Empty(row, in.args); l != nil {
		return 0, in.Refusal(in.Of.Table.Name, analysis.Numbering(l), analysis.NumbersLeadNowhere)
	}
	slot, err := in.Slot(row, in.args)
	if err != nil {
		advice := "give each row a value of " + in.Of.Table.Key + " that leads to its shard"
		if errors.Is(err, sharding.ErrMisplaced) {
			advice = "give each row values of one slot; Router.NextID makes an id with the slot of " + in.Of.Table.Key
		}
		return 0, in.Refusal(in.Of.Table.Name, err, advice)
	}
	return slot, nil
}

// placedRows routes rows by their targets: all rows of the INSERT to the first, or its parts.
func (in insertion) placedRows(first sharding.Target, parts []Part) (*Route, error) {
	if parts != nil {
		return in.divided(parts)
	}
	if err := in.checkSubqueries(first); err != nil {
		return nil, err
	}
	return in.one(first)
}

// checkSubqueries refuses an INSERT with subqueries whose rows are not on the target of the inserted rows.
func (in insertion) checkSubqueries(target sharding.Target) error {
	for _, r := range in.sharded {
		if r == in.Of {
			continue
		}
		if is, err := in.isOn(r, target); !is {
			return in.Refusal(r.Table.Name, cmp.Or(err, sharding.ErrCrossShard), "its rows may not be on the shard of the inserted rows; read them first")
		}
	}
	return nil
}

// placed adds a row to the part of its target.
func placed(parts []Part, at sharding.Target, row int) []Part {
	for i := range parts {
		if parts[i].Target == at {
			parts[i].Rows = append(parts[i].Rows, row)
			return parts
		}
	}
	return append(parts, Part{combine.Shard{Target: at}, []int{row}})
}

// divided returns, for each target, a text with its rows, and their arguments.
func (in insertion) divided(parts []Part) (*Route, error) {
	if err := in.divisible(); err != nil {
		return nil, err
	}
	rows := in.Input.Rows
	w := &Writes{Parts: parts, Rows: len(rows), Numbered: in.Numbers(in.args)}
	recognised, err := in.recognised(w)
	if err != nil {
		return nil, err
	}
	all := sqlparse.Span{From: rows[0].From, To: rows[len(rows)-1].To}
	for i := range parts {
		part := &parts[i]
		var with splice.Renumbering
		part.Args, with = in.argumentsOf(part.Rows, all)
		part.Text, err = in.edited(part.Target, with, splice.Edit{Span: all, With: in.textOf(part.Rows, with)}, recognised)
		if err != nil {
			return nil, err
		}
		part.Args = in.sent(part.Args)
	}
	return &Route{Kind: Several, Pooled: in.Stateless, Writes: w, plan: in.Plan}, nil
}

// recognised adds a unique key to the returned columns if some rows may be skipped.
func (in insertion) recognised(w *Writes) (e splice.Edit, err error) {
	if !in.LeavesOut() || in.Filled != "" {
		return e, nil
	}
	s := in.Returned()
	e = splice.Insert(in.Input.To, "")
	for _, column := range s.Columns {
		e.With += ", " + quoted(in.Plan, in.Of.Table, column)
	}
	w.Keys, w.Hidden = make([]string, w.Rows), len(s.Columns)
	for i := range w.Keys {
		key, err := in.KeyOf(s, &in.Input.Rows[i], in.args)
		if err == nil && slices.Contains(key, nil) {
			err = fmt.Errorf("%w: row %d has NULL in %s, so it could not be matched", sharding.ErrCrossShard, i, strings.Join(s.Columns, ", "))
		}
		if err != nil {
			return e, in.Refusal(in.Of.Table.Name, err, "leave RETURNING out")
		}
		w.Keys[i] = proof.Text(key)
	}
	return e, nil
}

// argumentsOf returns the arguments of some rows, and of the text before and after the rows. all is the part of the text with
// the rows.
func (in insertion) argumentsOf(rows []int, all sqlparse.Span) ([]int, splice.Renumbering) {
	st := in.Statement
	args := splice.ArgsIn(st, sqlparse.Span{To: all.From})
	for _, n := range rows {
		row := in.Input.Rows[n] // it may have the expressions of an earlier one
		if values := row.Values; len(values) > 0 {
			for _, arg := range splice.ArgsIn(st, sqlparse.Span{From: values[0].Bytes().From, To: values[len(values)-1].Bytes().To}) {
				args = append(args, arg+row.FirstParam)
			}
		}
	}
	return splice.Renumbered(st, append(args, splice.ArgsIn(st, sqlparse.Span{From: all.To, To: len(st.Text)})...))
}

func (in insertion) textOf(rows []int, with splice.Renumbering) string {
	var text strings.Builder
	all := in.Input.Rows
	text.Grow(len(rows) * (2 + all[rows[0]].To - all[rows[0]].From))
	for i, row := range rows {
		if i > 0 {
			text.WriteString(", ")
		}
		if row := all[row]; with != nil && row.FirstParam != 0 {
			renumber(&text, in.Statement.Text, row, with)
		} else {
			splice.Copied(in.Statement, &text, row.Span, with)
		}
	}
	return text.String()
}

// renumber writes a row that shares the numbered parameters of an earlier one: it has nothing else.
func renumber(out *strings.Builder, text string, row sqlparse.Row, with splice.Renumbering) {
	for i, v := range row.Values {
		q := v.(*sqlparse.Param) // see sqlparse.Row
		out.WriteString([]string{"(", ", "}[min(i, 1)])
		out.WriteByte(text[q.From])
		out.WriteString(strconv.Itoa(with[q.Index+row.FirstParam]))
	}
	out.WriteByte(')')
}
