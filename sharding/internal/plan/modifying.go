// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
)

// PostgreSQL's WITH may contain writes: WITH o AS (INSERT INTO orders … RETURNING id) INSERT INTO items SELECT …. Each of them is
// planned as a statement of its own. The whole text is sent to one target if all its parts lead there, and refused otherwise.

// takeWrites makes the plans of the data-modifying CTEs.
func takeWrites(p *Plan) {
	if p.Statement.Writes == nil {
		return
	}
	for _, w := range p.Statement.Writes {
		p.modified = append(p.modified, Of(w, p.Snapshot, p.Options))
	}
	known := map[*sqlparse.Table]bool{}
	for _, part := range append(slices.Clone(p.modified), p) {
		for _, r := range part.sharded {
			if !known[r.At] {
				known[r.At], p.allSharded = true, append(p.allSharded, r)
			}
		}
	}
	p.Owned, p.Sought, p.union, p.ungrouped = false, false, nil, ungrouped(p)
}

// routeParts returns the route of a statement with data-modifying CTEs.
func routeParts(p *binding) (*Route, error) {
	var on, empty *Route // of the first part that is on a shard, and of one without rows, which may be on any
	parts := []*binding{p}
	for _, part := range p.modified {
		parts = append(parts, &binding{part, p.args, p.hint})
	}
	for _, part := range parts {
		to, err := part.route()
		switch {
		case err != nil:
			return nil, err
		case p.origin != nil || to.Kind == Home:
			continue
		case to.Kind != One || to.Unplaced != nil:
			return nil, refuseSeveral(part.Plan)
		case to.Nowhere:
			empty = to
		case on == nil:
			on = to
		case p.ungrouped != nil:
			return nil, p.ungrouped
		case !isAt(on.Target, part.Plan, to.Target):
			return nil, refuseSeveral(part.Plan)
		}
		if err := isAlone(part.Plan, p.args, to); err != nil {
			return nil, err
		}
	}
	if on == nil {
		on = empty
	}
	switch {
	case p.origin != nil:
		return p.route()
	case on == nil:
		return p.atHome(), nil
	}
	for _, part := range parts {
		if err := part.together(on.Target.DB); err != nil {
			return nil, err
		}
	}
	return p.routes.to(p.Plan, on.Target)
}

// tablesOf returns the sharded tables of a statement, those of its data-modifying CTEs included.
func tablesOf(p *Plan) []*analysis.Reference {
	if p.modified != nil {
		return p.allSharded
	}
	return p.sharded
}

// isAt reports whether the target of a part has the rows of the same slots as another target.
func isAt(first sharding.Target, part *Plan, target sharding.Target) bool {
	at, err := besideTarget(part, part.sharded[0].Table, first)
	return err == nil && at == target
}

// refuseSeveral refuses a part that is on other shards than another one.
func refuseSeveral(part *Plan) error {
	return part.Refusal(part.Table(), sharding.ErrCrossShard, "a WITH that writes is executed on one shard; give each of its parts a condition on the sharding key, or send the parts separately in one transaction")
}

// isAlone refuses a part of a statement that needs other statements before or after it.
func isAlone(p *Plan, args []any, to *Route) error {
	searches, err := p.Searches(args, to, writehint.Hint{})
	if err != nil {
		return err
	}
	entries, err := LookupChangesOf(p, args, to)
	if err != nil {
		return err
	}
	if len(searches) > 0 || entries != nil {
		return p.Refusal(p.Table(), sharding.ErrCrossShard, "other shards or a lookup table have to be read before it, which is not done for a WITH that writes; send its parts separately in one transaction")
	}
	return nil
}
