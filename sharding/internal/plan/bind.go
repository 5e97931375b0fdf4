// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/proof"
)

// Bind returns the route of the statement with these arguments. Its errors are
// [sharding.RouteError]s.
func (p *Plan) Bind(args []any, hint sharding.Hint) (*Route, error) {
	if p.modified != nil {
		return routeParts(&binding{p, args, hint})
	}
	on := binding{p, args, hint} // it stays on the stack
	return on.route()
}

// binding is a plan with a caller's arguments and hint.
type binding struct {
	*Plan

	args []any
	hint sharding.Hint
}

// route is Bind without the data-modifying CTEs of a statement.
func (p *binding) route() (*Route, error) {
	switch {
	case p.hint.Unsharded:
		return p.atHome(), nil
	case p.barred != nil:
		return nil, p.barred
	case len(p.Refs) == 0 && p.Refused == nil:
		return p.home, nil
	}
	if err := p.given(); err != nil {
		return nil, err
	}
	switch {
	case p.origin != nil:
		return p.atOrigin()
	case p.arrays.areEmpty(p.args):
		return p.nowhere(p.Insert.Of.Table.Map.Targets()[0])
	case p.Refused != nil:
		return nil, p.Refused
	case len(p.sharded) == 0 && len(p.broadcast) == 0:
		return p.home, nil
	case len(p.sharded) == 0:
		return p.copies()
	case p.ungrouped != nil:
		return nil, p.ungrouped
	case p.Insert != nil && p.Insert.Input.Query == nil:
		return p.chosen()
	}
	if err := p.checkSelected(); err != nil {
		return nil, err
	}
	if p.hint.Placed() {
		return p.chosen()
	}
	return p.shards()
}

// chosen returns the route of the rows of an INSERT, or of a statement whose hint chooses its target.
func (p *binding) chosen() (*Route, error) {
	var target sharding.Target
	hinted := p.hint.Placed()
	if hinted {
		var err error
		if target, _, err = p.Snapshot.Hinted(p.sharded[0].Table.Name, p.formedHint()); err != nil {
			return nil, err
		}
	}
	if p.Insert != nil && p.Insert.Input.Query == nil {
		return insertion{p, p.Insert}.rows(target, hinted)
	}
	if err := p.agree(target, p.hint.Table != ""); err != nil {
		return nil, err
	}
	return p.one(target)
}

// formedHint returns the hint with its key in the form in which the key's column returns it.
func (p *binding) formedHint() sharding.Hint {
	h := p.hint
	for _, r := range p.sharded {
		if strings.EqualFold(r.Table.Name, h.Table) {
			h.Key, _ = r.FormedKey(h.Key)
		}
	}
	return h
}

// shards returns the route of a statement whose conditions lead to its targets.
func (p *binding) shards() (*Route, error) {
	first, all := p.sharded[0], slotsOf(p.sharded, p.args)
	target, single, err := targetOf(first.Table, all)
	switch {
	case all.Empty() && p.otherwise != nil:
		return p.one(*p.otherwise)
	case err != nil:
		return nil, p.Refusal(first.Table.Name, err, "")
	case !single:
		return p.spread(all)
	}
	if all.Empty() && len(p.Refs) == len(p.sharded) && p.Insert == nil {
		return p.nowhere(target)
	}
	return p.one(target)
}

// spread returns the route of a statement for several targets.
func (p *binding) spread(all proof.Slots) (*Route, error) {
	first := p.sharded[0].Table
	switch {
	case p.Statement.Explains:
		return nil, p.Refusal(first.Name, sharding.ErrUnmergeable, "EXPLAIN shows how one database executes a query; choose a shard with sharding.On, or send it to the shards yourself with the texts of shardsql.Explain")
	case p.union != nil:
		return &Route{Kind: One, United: true, Pooled: true, Target: p.union.first, Text: p.union.text, Args: p.sent(slices.Clone(p.union.args))}, nil
	case p.Statement.Change != nil:
		return p.routeChange(all)
	case all.All && !p.hint.All && (first.OnMissing == sharding.Refuse || p.Insert != nil):
		return nil, p.missing()
	}
	return p.scatter(all)
}

// agree refuses a statement that is sent to one target although its own conditions lead to another
// one. A statement without keys has no such conditions, and sharding.On names the target on
// purpose; but new rows must belong there.
func (p *binding) agree(target sharding.Target, keyed bool) error {
	for _, r := range p.sharded {
		if !keyed && (p.Insert == nil || r != p.Insert.Of) {
			continue
		}
		s := r.Slots(p.args)
		if s.All || s.Empty() {
			continue
		}
		is, err := p.isOn(r, target)
		switch {
		case is:
			continue
		case err == nil && !keyed:
			return p.Refusal(r.Table.Name, sharding.ErrMisplaced, "the context chooses "+target.String()+"; leave the hint out")
		case err == nil:
			err = fmt.Errorf("%w: its conditions lead to another shard than the key of the context", sharding.ErrCrossShard)
		}
		return p.Refusal(r.Table.Name, err, "leave sharding.OnKey out")
	}
	return nil
}

// isOn reports whether a target is known to have the rows of a reference.
func (p *binding) isOn(r *analysis.Reference, target sharding.Target) (bool, error) {
	at, single, err := targetOf(p.sharded[0].Table, r.Slots(p.args))
	return err == nil && single && at == target, err
}

// one returns the statement with the names of one target.
func (p *binding) one(target sharding.Target) (*Route, error) {
	if err := cmp.Or(p.keyStays(), p.together(target.DB)); err != nil {
		return nil, err
	}
	return p.routes.to(p.Plan, target)
}

// nowhere returns the route of a statement without rows, which any target answers in the same way.
func (p *binding) nowhere(target sharding.Target) (*Route, error) {
	to, err := p.one(target)
	if err != nil {
		return nil, err
	}
	of := *to
	of.Nowhere = true
	return &of, nil
}

// together refuses tables that are not in the database of the rows; db is "" if the rows are in
// several databases.
func (p *binding) together(db string) error {
	for _, r := range p.Refs {
		switch {
		case r.Role == analysis.Home && (db == "" || db != p.Options.Home):
			where := "on several shards"
			if db != "" {
				where = "in " + db
			}
			return p.Refusal(r.Label(), sharding.ErrCrossShard,
				fmt.Sprintf("it is a table of the home database, and the rows of %s are %s; declare it with sharding.Broadcast if every database has a copy, "+
					"or read it first and give its values as arguments, in place of a subquery or join", p.Table(), where))
		case r.Role == analysis.Broadcast && r.Written && (db == "" || !p.Options.Alone):
			return p.Refusal(r.Label(), sharding.ErrCrossShard, "write broadcast tables with a separate statement, which goes to every copy")
		}
	}
	return nil
}

// refuseClockArguments refuses an argument for which each of several databases would read its clock.
func (p *binding) refuseClockArguments(as error) error {
	for _, i := range p.clocks {
		v, err := proof.Plain(proof.Operand{Param: i}.Value(p.args))
		if text, ok := v.(string); err == nil && ok && strings.EqualFold(text, "now") {
			return p.Refusal(p.Refs[0].Label(), as, "each database would read its own clock for 'now'; pass the time as an argument")
		}
	}
	return nil
}

// missing returns the refusal of a statement that leads to all shards.
func (p *binding) missing() error {
	r := p.sharded[0]
	for _, other := range p.sharded {
		if other.Slots(p.args).All {
			r = other
			break
		}
	}
	err := sharding.ErrMissingKey
	if why := proof.WhyNoSlot(r.Proof, p.args); why != "" {
		err = fmt.Errorf("%w: %s", err, why)
	} else if r.Asked && p.Statement.Change != nil {
		err = fmt.Errorf("%w: the value of %s must be a literal or an argument, not a subquery; read it first", err, r.Vague)
	} else if r.Vague != "" && p.misspelt == "" {
		err = fmt.Errorf("%w: the condition on %[2]s leads to no single shard; %[2]s = … or %[2]s IN (…) does, beside other conditions with AND", err, r.Vague)
	}
	return p.Refusal(r.Table.Name, err, cmp.Or(p.misspelt, p.remedy(r.Table)))
}
