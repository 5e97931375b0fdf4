// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/splice"
)

// While slots move, shards have rows that belong to others: copies that a move has made, and rows that it has left behind. A
// query of several shards must not read them. So in the texts of these shards, WHERE gets a condition on the slot for each
// table; for the inner side of an outer join, ON gets it. A query of the table in its place would do as well, but MariaDB 10.11
// returns wrong rows if it merges one into an outer join with NOT EXISTS.

// ownCondition is the place for a condition that leaves out the rows of some slots of a table.
type ownCondition struct {
	of    *analysis.Reference
	where sqlparse.Span // the condition to which it is added, empty if it is a new WHERE there
}

// ownConditions returns the places for all sharded tables of a query, and false if one has none.
func ownConditions(b *analysis.Analysis) (all []ownCondition, ok bool) {
	if b.Statement.Verb != sqlparse.Select || b.Locks {
		return nil, false
	}
	placed := map[*analysis.Reference]bool{}
	for core, s := range b.Scopes {
		for _, r := range s.Refs {
			if r.Role != analysis.Sharded {
				continue
			}
			c := ownCondition{of: r}
			switch on := onOf(core.From, r); {
			case r.Nullable > 0 && on == nil:
				return nil, false
			case r.Nullable > 0:
				c.where = on.Bytes()
			case core.Where != nil:
				c.where = core.Where.Bytes()
			default:
				end := core.From[len(core.From)-1].Span.To
				c.where = sqlparse.Span{From: end, To: end}
			}
			all, placed[r] = append(all, c), true
		}
	}
	for _, r := range b.Refs {
		if _, known := slotSQL(r, ""); r.Role == analysis.Sharded && (!placed[r] || r.Renamed || !known) {
			return nil, false
		}
	}
	slices.SortFunc(all, func(a, b ownCondition) int { return a.of.At.From - b.of.At.From }) // the same text each time
	return all, true
}

// onOf returns the condition of the innermost outer join that has a table on its inner side: there it leaves out the rows before the
// join. It returns nil if there is none, as by USING, or if a full join of the table is inside.
func onOf(from []sqlparse.Source, r *analysis.Reference) (on sqlparse.Expr) {
	at := slices.IndexFunc(from, func(s sqlparse.Source) bool { return r.At.Span.In(s.Span) })
	for j := from[at].Join; j != nil; {
		side, inner := j.Left, sqlparse.RightJoin
		if r.At.Span.In(j.Right.Span) {
			side, inner = j.Right, sqlparse.LeftJoin
		}
		switch j.Kind {
		case inner:
			on = j.On
		case sqlparse.FullJoin:
			on = nil
		}
		j = side.Join
	}
	return on
}

// slotSQL returns the slot of a row in SQL, and false if SQL cannot express it.
func slotSQL(r *analysis.Reference, key string) (text string, known bool) {
	if r.Role != analysis.Sharded {
		return "", false
	}
	return sharding.Describe(r.Table.Rule).SQL(key, r.Table.Rule.Slots())
}

// ownTargets returns the targets of a query of several shards. While slots move, it changes the plan so that it reads the own rows
// of each shard.
func ownTargets(p *binding, set proof.Slots) ([]sharding.Target, error) {
	first := p.sharded[0].Table
	targets, err := targetsOf(p.Plan, set)
	isHeld := func(r *analysis.Reference) bool { return len(r.Table.Map.Held()) > 0 }
	if !errors.Is(err, sharding.ErrSlotMoving) || !p.separable || slices.ContainsFunc(p.sharded, isHeld) {
		return targets, err
	}
	p.Plan = withOwnRows(p.Plan)
	if set.All {
		return first.Map.Targets(), nil
	}
	return targetsOn(first, set.List())
}

// SlotsOf returns the slots whose rows a statement may read or write.
func SlotsOf(p *Plan, args []any) (all proof.Slots) {
	for _, r := range p.sharded {
		of := r.Slots(args)
		if p.Insert != nil && r == p.Insert.Of && p.Insert.Selected == nil {
			of = inserted(p.Insert, args)
		}
		all = all.Or(of)
	}
	for _, part := range p.modified {
		all = all.Or(SlotsOf(part, args))
	}
	return all
}

// inserted returns the slots of the rows of VALUES.
func inserted(in *analysis.Insertion, args []any) proof.Slots {
	list := make([]sharding.Slot, len(in.Input.Rows))
	for i := range in.Input.Rows {
		slot, err := in.Slot(&in.Input.Rows[i], args)
		if err != nil {
			return proof.EverySlot
		}
		list[i] = slot
	}
	return proof.SetOf(list)
}

// isMoving reports whether slots move of the tables of a query that can read the own rows of each shard.
func isMoving(p *Plan) bool { return p.separable && len(p.sharded[0].Table.Map.Shared()) > 0 }

// withOwnRows returns the plan that reads the own rows of each shard.
func withOwnRows(p *Plan) *Plan {
	own := *p
	own.routes, own.ownRows = &routes{}, true
	return &own
}

// leftOut returns the edits of the text for a target that leave out the rows of slots that belong to others.
func leftOut(p *Plan, target sharding.Target) (edits []splice.Edit, err error) {
	var wheres []splice.Edit // new ones, which follow a changed ON in the same place
	for _, c := range p.own {
		at, err := besideTarget(p, c.of.Table, target)
		if err != nil {
			return nil, err
		}
		condition := foreignLeftOut(p, c.of, at)
		switch i := slices.IndexFunc(wheres, func(e splice.Edit) bool { return e.From == c.where.From }); {
		case condition == "":
		case c.where.To > c.where.From:
			edits = append(edits, splice.Insert(c.where.From, condition+" AND ("), splice.Insert(c.where.To, ")"))
		case i >= 0:
			wheres[i].With += " AND " + condition
		default:
			wheres = append(wheres, splice.Insert(c.where.To, " WHERE "+condition))
		}
	}
	return append(edits, wheres...), nil
}

// foreignLeftOut returns the condition that leaves out the rows of slots that belong to others than a target, "" if it has none.
func foreignLeftOut(p *Plan, r *analysis.Reference, at sharding.Target) string {
	var foreign []string
	for _, slot := range r.Table.Map.Shared() {
		if on, err := r.Table.On(slot); err != nil || on != at {
			foreign = append(foreign, strconv.Itoa(int(slot)))
		}
	}
	if len(foreign) == 0 {
		return ""
	}
	key := r.Qualifier().Of(p.Statement.Text) + "." + quoted(p, r.Table, r.Table.Key)
	if p.Options.Reads.Family == sqlparse.PostgreSQL {
		key += "::bigint"
	}
	slot, _ := slotSQL(r, key)
	return slot + " NOT IN (" + strings.Join(foreign, ", ") + ")"
}
