package plan

import (
	"cmp"
	"slices"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
)

// Writes is a statement that writes to several targets. All of them take their part,
// or none does.
type Writes struct {
	Parts []Part
	Rows  int // of VALUES; 0 of an UPDATE or DELETE
	// Keys are set where a row may be left out of those that are returned: the key of each
	// row of VALUES as a Text, which the last columns of its returned row have, too.
	Keys   []string
	Hidden int // how many of them there are
}

// Part is what one target gets.
type Part struct {
	Target sharding.Target
	Text   string
	Args   []int // which of the statement's arguments, in their order
	Rows   []int // which rows of VALUES, in their order
}

// divide returns why a write cannot be done by several targets, nil where it can.
func (b *builder) divide() *sharding.RouteError {
	st, why := b.statement, ""
	switch {
	case st.Insert != nil:
		why = b.dividesRows()
	case st.Change != nil:
		why = b.dividesChange(st.Change)
	}
	switch {
	case why != "":
	case st.Limiting:
		why = "a hint in a comment limits what each shard does; leave it out"
	default:
		why = b.differs()
	}
	if why == "" {
		return nil
	}
	return b.refusal(b.firstSharded(), sharding.ErrCrossShard, why)
}

// firstSharded returns the name of the first sharded table, for messages.
func (b *builder) firstSharded() string {
	for _, r := range b.refs {
		if r.role == sharded {
			return r.table.Name
		}
	}
	return ""
}

func (b *builder) dividesRows() string {
	in, to := b.statement.Insert, b.insert
	switch {
	case in.Query != nil:
		return "INSERT … SELECT reads and writes one shard" + addKey
	case in.Or == "FAIL" || in.Or == "ROLLBACK":
		return "INSERT OR " + in.Or + " undoes what one shard did; write INSERT"
	case len(b.refs) > 1 || in.With != nil:
		return "a subquery reads one shard; run it before, and give its value as an argument"
	case len(in.Returning) > 0 && slices.ContainsFunc(in.Conflicts, func(c sqlparse.Conflict) bool { return c.Where != nil }):
		return "which rows the WHERE of ON CONFLICT returns is known on each shard alone; leave RETURNING out, or insert the rows of each shard by themselves"
	case to.leavesOut() && to.returned() == nil:
		return "a row that is returned is recognised by a unique key, and all of them lack a column; give it a value, or leave RETURNING out"
	}
	if (parameters{b.statement}).named() {
		return "named parameters are not distributed over shards; write ? for each"
	}
	return ""
}

// leavesOut reports whether a row may be stored by none of the rows that are returned.
func (in *insertion) leavesOut() bool {
	return in != nil && len(in.input.Returning) > 0 &&
		(in.input.Ignore || slices.ContainsFunc(in.input.Conflicts, func(c sqlparse.Conflict) bool { return c.Nothing }))
}

// returned returns a unique key by which a row that was inserted is recognised, or nil.
func (in *insertion) returned() *seek {
	for _, key := range in.of.schema.Unique {
		if s := in.seekBy(key); !slices.Contains(s.at, -1) {
			return &s
		}
	}
	return nil
}

func (b *builder) dividesChange(c *sqlparse.Change) string {
	switch {
	case c.With != nil:
		return "a WITH is read on one shard" + addKey
	case c.Limit != nil:
		return "LIMIT counts the rows of one shard" + addKey
	case len(c.OrderBy) > 0:
		return "ORDER BY orders the rows of one shard" + addKey
	case c.Or == "FAIL" || c.Or == "ROLLBACK":
		return "UPDATE OR " + c.Or + " undoes what one shard did; write UPDATE"
	}
	for i := range c.From {
		if why := queried(&c.From[i]); why != "" {
			return why
		}
	}
	d := &combiner{builder: b}
	for _, r := range b.refs {
		if r.role == sharded && r.written && d.near(r) {
			return ""
		}
	}
	return "all tables have to be joined by the sharding key, so that each shard has the rows that go together"
}

// queried refuses what a shard may answer in another way than one table does.
func queried(s *sqlparse.Source) string {
	switch {
	case s.Join != nil:
		if why := queried(s.Join.Left); why != "" {
			return why
		}
		return queried(s.Join.Right)
	case s.Query != nil:
		return "a subquery among the tables is read on one shard" + addKey
	case s.Function != nil:
		return "a table function is read on one shard" + addKey
	}
	return ""
}

// changes routes an UPDATE or DELETE to several targets.
func (p *Plan) changes(set slots, args []any, hint sharding.Hint) (Route, error) {
	first := p.sharded[0].table
	if set.all && !hint.All {
		return Route{}, p.missing(args)
	}
	if err := cmp.Or(p.divisible(), p.timeless(args, sharding.ErrCrossShard), p.keyStays(args)); err != nil {
		return Route{}, err
	}
	targets, err := targetsOf(first, set)
	if err != nil {
		return Route{}, p.refusal(first.Name, err, "")
	}
	w := &Writes{Parts: make([]Part, len(targets))}
	for i, target := range targets {
		text, err := p.text(target)
		if err != nil {
			return Route{}, err
		}
		w.Parts[i] = Part{Target: target, Text: text, Args: upTo(len(args))}
	}
	return Route{Kind: Several, Writes: w}, nil
}

// divisible refuses a write that several targets cannot do.
func (p *Plan) divisible() error {
	if p.unmerged != nil {
		return p.unmerged
	}
	return p.together("")
}
