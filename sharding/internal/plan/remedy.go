// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

var operations = map[sqlparse.Verb]string{
	sqlparse.Select: "query", sqlparse.Insert: "insert", sqlparse.Replace: "insert", sqlparse.Update: "update", sqlparse.Delete: "delete",
}

// operation returns the operation of a statement, for messages: "query", "DROP of".
func operation(st *sqlparse.Statement) string {
	if name := operations[st.Verb]; name != "" {
		return name
	}
	if word := definition(st); word != "" {
		return word + " of"
	}
	return "statement"
}

// definition returns the first word of a statement that creates, changes or empties tables, "" for
// any other statement.
func definition(st *sqlparse.Statement) string {
	s := sqltext.NewScanner(st.Text, 0)
	t, ok := s.Next()
	for ok && t.Kind != sqltext.Word {
		t, ok = s.Next()
	}
	switch word := strings.ToUpper(t.Text(st.Text)); word {
	case "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE":
		return word
	}
	return ""
}

// unread refuses a statement that was not parsed if it names a table of the router.
func (r *reading) unread(hint string) {
	st := r.statement
	for _, name := range st.Names {
		if t, ok := r.snapshot.Lookup(name); ok {
			r.recordRefusal(t.Name, sharding.ErrRawTable, hint)
		} else if r.snapshot.IsBroadcast(name) {
			if definition(st) != "" {
				hint = "create and change it in every database that has a copy: shardid ddl and gormplugin.Migrate do that; or run the statement on Router.DB for each of Router.Databases, and on the home database"
			}
			r.recordRefusal(name, sharding.ErrRawTable, hint)
		}
	}
}

// physical refuses a physical name: it is not routed, so the conditions of the statement would not
// apply.
func (r *reading) physical() *sharding.RouteError {
	for _, name := range r.statement.Names {
		t := r.snapshot.Physical(name)
		if t != nil && (!slices.Contains(r.ctes, name) || r.refersTo(name)) {
			return r.refusal(name, sharding.ErrRawTable, fmt.Sprintf("it is a physical table of %[1]s; write %[1]s, with a condition on %[2]s, "+
				"or send it to Router.DB; sharding.Unsharded is for another table of this name", t.Name, t.Key))
		}
	}
	return nil
}

// unreadHint says what to do instead of a statement that was not parsed.
func unreadHint(st *sqlparse.Statement) string {
	switch definition(st) {
	case "":
		return "it cannot be parsed " + st.Why + "; rewrite it, or send it with physical names to Router.DB"
	case "TRUNCATE":
		return "empty its tables with DELETE and sharding.AllShards, or run the statement for each of Router.Targets on Router.DB"
	}
	return "create and change its tables on every target: shardid ddl and gormplugin.Migrate do that; or run the statement for each of Router.Targets on Router.DB"
}

// copyOrRead says what to do if a table of the home database is needed in another database.
const copyOrRead = "declare it with sharding.Broadcast if every database has a copy, or read it first and give its values as arguments, in place of a subquery or join"

const (
	orReport  = ", or run it as a report (docs/reports.md)"
	readFirst = "; read it first and give its result as an argument, "
)

// apart says why the rows of a SELECT do not come from one slot each, and what to do instead.
func (c *combiner) apart(s *scope) string {
	var root, outer *reference
	for _, r := range slices.Backward(s.refs) {
		switch {
		case r.role == sharded && r.nullable == 0:
			root = r
		case r.role == sharded:
			outer = r
		}
	}
	inner := slices.IndexFunc(s.inside, func(r *reference) bool { return r.role == sharded && !slices.Contains(s.refs, r) })
	switch {
	case root != nil:
		return c.astray(s, root, c.strays(root)[0])
	case slices.ContainsFunc(s.refs, func(r *reference) bool { return r.role == derived }):
		return "a subquery or CTE in FROM needs rows of several shards together" + readFirst + "or group it by the sharding key" + orReport
	case outer != nil:
		return "each shard would return the rows that have none in " + outer.label() + "; make the outer join an inner join, or read the two tables separately"
	case inner >= 0:
		return "a subquery reads " + s.inside[inner].label() + ", and each shard has only its own rows" + readFirst + "in place of the subquery"
	}
	return "each shard would return the rows of tables that are not sharded; read them with a separate statement"
}

// astray is apart for a sharded table whose rows may be in another slot than the root's row.
func (c *combiner) astray(s *scope, root, r *reference) string {
	return away(root, r, slices.Contains(s.refs, r), "or run it as a report (docs/reports.md), ")
}

// away says that rows of r, which is joined or in a subquery, may be in another slot than the root's row, and what to do
// instead.
func away(root, r *reference, joined bool, or string) string {
	by := "the sharding key, " + root.table.Key
	if !strings.EqualFold(root.table.Key, r.table.Key) {
		by = fmt.Sprintf("a column that leads to the shards of both: the sharding keys are %s.%s and %s.%s, and Table.Also declares others",
			root.name, root.table.Key, r.name, r.table.Key)
	}
	if joined {
		return fmt.Sprintf("joined rows of %s and %s may be on different shards; read one of them first and give its values as arguments, or join them by %s", root.label(), r.label(), by)
	}
	return fmt.Sprintf("a subquery reads %s, and each shard has only its own rows%s%sor relate it to %s by %s", r.label(), readFirst, or, root.label(), by)
}

// remedy says what leads a statement to fewer shards, or allows all.
func (p *Plan) remedy(t *sharding.Table) string {
	condition, also := "add a condition on "+t.Key, ", or on a column that Table.Also says leads to the shard"
	for _, alt := range t.Also {
		condition, also = condition+" or "+alt.Column, ""
	}
	switch {
	case p.insert != nil:
		return condition
	case p.statement.Change != nil:
		return condition + ", choose the shard with sharding.OnKey or sharding.On, or let it go to every shard with sharding.AllShards" + p.spans(t)
	case p.probes():
		return "GORM's AutoMigrate sends this query: create the tables with gormplugin.Migrate, or with AutoMigrate on Router.DB for each of Router.Targets; otherwise " + condition + ", or use sharding.AllShards"
	}
	return condition + also + "; or let it go to every shard with sharding.AllShards, or always with Table.OnMissing: sharding.FanOutReads"
}

// whyNoSlot names a value that a condition gives for a column that leads to shards, if that value does not, and
// says why: otherwise the user would be told to add the condition that is there.
func whyNoSlot(p proof, args []any) string {
	var among []proof
	switch p := p.(type) {
	case allOf:
		among = p
	case anyOf:
		among = p
	case *equals:
		for _, o := range p.values {
			if why := p.lead.whyNoSlot(o.value(args)); why != "" {
				return why
			}
		}
	case *within:
		return p.whyEverySlot(args)
	}
	for _, each := range among {
		if why := whyNoSlot(each, args); why != "" {
			return why
		}
	}
	return ""
}

// whyEverySlot says why a condition with a lower or upper end does not exclude slots.
func (p *within) whyEverySlot(args []any) string {
	for _, end := range []*operand{p.low, p.high} {
		if end == nil {
			continue
		}
		if v := end.value(args); p.lead.slotBy(v).all {
			if why := p.lead.whyNoSlot(v); why != "" {
				return why
			}
		}
	}
	if p.slots(args).all {
		return "the condition on " + p.lead.column + " allows rows of every shard"
	}
	return ""
}

func (l *lead) whyNoSlot(v any) string {
	if _, ok := v.(unbound); ok {
		return "the argument for " + l.column + " is missing"
	}
	v, err := plain(v)
	known := true
	if err == nil && v != nil {
		if v, known = l.formed(v); known {
			_, err = l.table.SlotBy(l.column, v)
		}
	}
	_, isTime := v.(time.Time)
	switch {
	case err != nil:
		return "the value of " + l.column + " leads to no shard: " + err.Error()
	case isTime && !l.comparesWith(v):
		return l.column + " is not a column of times with the precision of its rule, or it is one of SQLite, which compares times as texts"
	case v != nil && (!known || !l.comparesWith(v)):
		return fmt.Sprintf("the database compares a Go %T with %s otherwise than its rule does", v, l.column)
	}
	return ""
}

// spans says what a write to every shard needs besides [sharding.AllShards], "" if nothing.
func (p *Plan) spans(t *sharding.Table) string {
	targets := t.Map.Targets()
	if p.options.Mode != sharding.SingleShard || !slices.ContainsFunc(targets, func(at sharding.Target) bool { return at.DB != targets[0].DB }) {
		return ""
	}
	return ", which needs sharding.Transactions(sharding.Atomic) or BestEffort, because the shards are in several databases"
}

// probes reports whether a query is SELECT * FROM t LIMIT 1.
func (p *Plan) probes() bool {
	q := p.statement.Query
	core := coreOf(q)
	if core == nil || q.With != nil || q.Limit == nil || q.Limit.Offset != nil {
		return false
	}
	one, ok := q.Limit.Count.(*sqlparse.Literal)
	return ok && one.Value == "1" && core.Where == nil && len(core.Items) == 1 && core.Items[0].Star && len(p.refs) == 1
}
