// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
)

// physical refuses a physical name: it is not routed, so the conditions of the statement would not
// apply.
func physical(r *analysis.Reading) *sharding.RouteError {
	for _, name := range r.Statement.Names {
		t := r.Snapshot.Physical(name)
		if t != nil && (!slices.Contains(r.CTEs, name) || r.RefersTo(name)) {
			return r.Refusal(name, sharding.ErrRawTable, fmt.Sprintf("it is a physical table of %[1]s; write %[1]s, with a condition on %[2]s, "+
				"or send it to Router.DB; sharding.Unsharded is for another table of this name", t.Name, t.Key))
		}
	}
	return nil
}

// remedy says what leads a statement to fewer shards, or allows all.
func (p *Plan) remedy(t *sharding.Table) string {
	condition, also := "add a condition on "+t.Key, ", or on a column that Table.Also says leads to the shard"
	for _, alt := range t.Also {
		condition, also = condition+" or "+alt.Column, ""
	}
	switch {
	case p.Insert != nil:
		return condition + ", or insert VALUES"
	case p.Statement.Change != nil:
		return condition + ", choose the shard with sharding.OnKey or sharding.On, or let it go to every shard with sharding.AllShards" + p.spans(t)
	case p.probes():
		return "GORM's AutoMigrate sends this query: create the tables with gormplugin.Migrate, or with AutoMigrate on Router.DB for each of Router.Targets; otherwise " + condition + ", or use sharding.AllShards"
	}
	return condition + also + "; or let it go to every shard with sharding.AllShards, or always with Table.OnMissing: sharding.FanOutReads"
}

// LetSpan is the remedy that every statement has that a transaction of one database cannot execute.
const LetSpan = "let transactions span databases with sharding.Transactions, Atomic or BestEffort"

// Spanning returns the refusal of a Scatter or Several statement that one transaction cannot execute, because its targets are
// in several databases.
func (r *Route) Spanning(first, other string) error {
	p, does, hint := r.plan, "writes to %s and to %s", "add a condition on the sharding key that leads to one database, or send one statement for each database, with the keys grouped by Router.Target"
	switch {
	case p.Insert != nil:
		hint = "insert the rows of each database with a statement of their own, grouped by Router.Target"
	case r.all:
		hint = "send it once for each target of Router.Targets, with the context sharding.On(ctx, target)"
	case r.Kind == Scatter && r.Shards.Locks:
		does = "locks rows in %s and in %s"
	case r.Kind == Scatter:
		does, hint = "reads rows in %s and in %s", "add a condition on the sharding key, send the query outside of the transaction"
	}
	return p.Refusal(p.FirstSharded(), fmt.Errorf("%w: this statement "+does, sharding.ErrCrossDatabase, first, other),
		hint+", or "+LetSpan)
}

// spans says what a write to every shard needs besides [sharding.AllShards], "" if nothing.
func (p *Plan) spans(t *sharding.Table) string {
	if p.Options.Mode != sharding.SingleShard || inOneDatabase(t.Map.Targets()) {
		return ""
	}
	return ", which needs sharding.Transactions(sharding.Atomic) or BestEffort, because the shards are in several databases"
}

// probes reports whether a query is SELECT * FROM t LIMIT 1.
func (p *Plan) probes() bool {
	q := p.Statement.Query
	core := analysis.CoreOf(q)
	if core == nil || q.With != nil || q.Limit == nil || q.Limit.Offset != nil {
		return false
	}
	one, ok := q.Limit.Count.(*sqlparse.Literal)
	return ok && one.Value == "1" && core.Where == nil && len(core.Items) == 1 && core.Items[0].Star && len(p.Refs) == 1
}
