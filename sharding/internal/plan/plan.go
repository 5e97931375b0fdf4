// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// Plan says where a statement goes, as soon as its arguments are known. It is
// immutable, belongs to the snapshot that it was made for, and is safe for
// concurrent use.
type Plan struct {
	reading
	options   Options
	sharded   []*reference
	broadcast []*reference
	routed    bool                 // it names a table of the router
	quiet     bool                 // it leaves nothing in its session
	physical  *sharding.RouteError // it names a physical table
	texts     *texts
	origin    *sharding.Target // nil unless a migration's source serves the tables
	unread    string           // a table of which nobody has read yet what serves it
	// combination is how several shards answer, or nil, and unmerged why they cannot
	// answer or write.
	combination *combination
	unmerged    *sharding.RouteError
	uncopied    *sharding.RouteError // why a write would not leave all copies the same, or nil
	ahead       *ahead
	owned       bool   // a lookup table may know where its rows are
	union       *union // of a query with a unique value that all tables are asked for in one text, or nil
}

// Options are what a plan depends on besides the statement.
type Options struct {
	Schema Schema
	// Home is the name of the router's database that is the home database as well,
	// "" when none is.
	Home string
	// Alone: the home database is the only one, so that no table has copies.
	Alone bool
	// Merge is the arithmetic by which answers of several shards are combined.
	Merge merge.Dialect
	// Reads are the lexical rules of the dialect.
	Reads sqltext.Flavor
	// Quote encloses a name, as the dialect does.
	Quote func(name string) string
}

// Of returns the plan of a statement. It makes one for every statement: what
// cannot be routed is refused by [Plan.Bind].
func Of(statement *sqlparse.Statement, snapshot *sharding.Snapshot, options Options) *Plan {
	b := newBuilder(statement, snapshot, options.Schema)
	b.sqlite, b.postgres = options.Merge.Engine == merge.SQLite, options.Merge.Engine == merge.PostgreSQL
	b.walk()
	b.complete()
	if statement.Executable {
		b.unread(sqltext.VersionedHint)
	}
	b.pass()
	b.prove()
	b.clocks = b.times
	p := &Plan{reading: b.reading, options: options, texts: &texts{}, ahead: &ahead{}, origin: b.movesFrom(), unread: b.unserved(), physical: b.physical()}
	if statement.Verb == sqlparse.Select {
		p.combination, p.unmerged = b.combine(options.Merge)
	} else {
		p.unmerged, p.uncopied = divider{b}.divide(), b.copied()
	}
	for _, r := range b.refs {
		switch r.role {
		case sharded:
			p.sharded = append(p.sharded, r)
			eachOwned(r.proof, func(*owned) { p.owned = b.insert == nil })
		case broadcast:
			p.broadcast = append(p.broadcast, r)
		}
	}
	p.routed = len(p.sharded) > 0 || slices.ContainsFunc(statement.Names, func(name string) bool {
		_, ok := snapshot.Lookup(name)
		return ok
	})
	p.quiet = b.restless == "" && leavesNothing(statement)
	if p.owned {
		p.union = p.unite()
	}
	return p
}

// Kind is what a bound plan does.
type Kind uint8

// The kinds.
const (
	Home    Kind = iota + 1 // the text as it is goes to the home database
	One                     // one text goes to one database
	Scatter                 // a text goes to each of several tables, and the answers are merged
	Several                 // each of several tables gets its part of a write
	Copies                  // the text as it is goes to every database
)

// String returns the word that Explain shows.
func (k Kind) String() string {
	return [...]string{"?", "home", "one", "scatter", "several", "copies"}[k]
}

// Route is a plan with its arguments.
type Route struct {
	Kind Kind
	// Target is that of One, of the first sharded table of the statement.
	Target sharding.Target
	Text   string
	// Args are the arguments of One's Text: which of the statement's, in the text's order. It
	// is nil where the text takes them as the statement does.
	Args []int
	// Anywhere says of Home that it reads broadcast tables alone, so that any database
	// has its rows.
	Anywhere bool
	// Pooled says that any connection may execute it: it is about a shard, or Quiet.
	Pooled bool
	Shards *Shards // of Scatter
	Writes *Writes // of Several
	// Nowhere says of One that no row satisfies its conditions, so that any target, and
	// any session, tells the same.
	Nowhere bool
}

// Bind returns where the statement goes with these arguments. Its errors are
// [sharding.RouteError]s.
func (p *Plan) Bind(args []any, hint sharding.Hint) (Route, error) {
	switch {
	case hint.Unsharded:
		return Route{Kind: Home}, nil
	case p.physical != nil:
		return Route{}, p.physical
	case len(p.refs) == 0 && p.refused == nil:
		return Route{Kind: Home}, nil
	case p.unread != "":
		return Route{}, p.refusal(p.unread, sharding.ErrRouteUnread, "call Router.Load when the program starts")
	}
	on := binding{p, args, hint}
	if err := on.given(); err != nil {
		return Route{}, err
	}
	switch {
	case p.origin != nil:
		return on.atOrigin()
	case p.refused != nil:
		return Route{}, p.refused
	case len(p.sharded) == 0 && len(p.broadcast) == 0:
		return Route{Kind: Home}, nil
	case len(p.sharded) == 0:
		return on.copies()
	}
	return on.shards()
}

// binding is a plan with what a caller gives.
type binding struct {
	*Plan

	args []any
	hint sharding.Hint
}

func (p *binding) shards() (Route, error) {
	first := p.sharded[0]
	for _, r := range p.sharded[1:] {
		if !p.snapshot.SameGroup(first.table.Name, r.table.Name) {
			return Route{}, p.refusal(r.table.Name, sharding.ErrCrossShard,
				fmt.Sprintf("it is not in one group with %s; give both tables the same Group if their rows belong together", first.table.Name))
		}
	}
	target, placed, err := p.snapshot.Hinted(first.table.Name, p.hint)
	if err != nil {
		return Route{}, err
	}
	switch {
	case p.insert != nil && p.insert.input.Query == nil:
		return p.rows(target, placed)
	case placed:
		if err := p.agree(target, p.hint.Table != ""); err != nil {
			return Route{}, err
		}
		return p.one(target)
	}
	all := first.slots(p.args)
	for _, r := range p.sharded[1:] {
		all = all.or(r.slots(p.args))
	}
	target, single, err := targetOf(first.table, all)
	switch {
	case err != nil:
		return Route{}, p.refusal(first.table.Name, err, "")
	case single:
		to, err := p.one(target)
		to.Nowhere = all.empty() && len(p.refs) == len(p.sharded) && p.insert == nil
		return to, err
	}
	if p.union != nil {
		return Route{Kind: One, Target: p.union.first, Text: p.union.text, Args: p.sent(slices.Clone(p.union.args))}, nil
	}
	if p.statement.Change != nil {
		return p.changes(all)
	}
	if all.all && !p.hint.All && (first.table.OnMissing == sharding.Refuse || p.insert != nil) {
		return Route{}, p.missing()
	}
	return p.scatter(all)
}

// agree refuses a statement that is sent to one target although its own conditions
// lead to another one. Without keys of its own it has none to disagree, and the target
// that sharding.On names is what the caller wants; but new rows must belong there.
func (p *binding) agree(target sharding.Target, keyed bool) error {
	for _, r := range p.sharded {
		if !keyed && (p.insert == nil || r != p.insert.of) {
			continue
		}
		s := r.slots(p.args)
		if s.all || s.empty() {
			continue
		}
		is, err := p.isOn(r, target)
		switch {
		case is:
			continue
		case err == nil && !keyed:
			return p.refusal(r.table.Name, sharding.ErrMisplaced, "the context chooses "+target.String()+"; leave the hint out")
		case err == nil:
			err = fmt.Errorf("%w: its conditions lead elsewhere than the key of the context", sharding.ErrCrossShard)
		}
		return p.refusal(r.table.Name, err, "leave sharding.OnKey out")
	}
	return nil
}

// isOn reports whether a target is known to have the rows of a reference.
func (p *binding) isOn(r *reference, target sharding.Target) (bool, error) {
	at, single, err := targetOf(p.sharded[0].table, r.slots(p.args))
	return err == nil && single && at == target, err
}

// slots returns the slots that the rows are in which a reference is about.
func (r *reference) slots(args []any) slots {
	if r.proof == nil {
		return everySlot
	}
	return r.proof.slots(args)
}

// targetOf returns the target that has all of the slots, if one has. No slot at
// all is on every target: any of them tells that there is no such row.
func targetOf(t *sharding.Table, s slots) (target sharding.Target, single bool, err error) {
	if s.all {
		if all := t.Map.Targets(); len(all) == 1 {
			return all[0], true, nil
		}
		return target, false, nil
	}
	if s.one || s.empty() { // whose only slot is 0
		target, err = t.On(s.only)
		return target, err == nil, err
	}
	all, err := targetsOn(t, s.list())
	if err != nil {
		return target, false, err
	}
	return all[0], len(all) == 1, nil
}

// targetsOn returns the targets of some slots, each once, in slot order.
func targetsOn(t *sharding.Table, list []sharding.Slot) (all []sharding.Target, err error) {
	for _, slot := range list {
		at, err := t.On(slot)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all, nil
}

// targetsOf returns the targets of a set of slots. While rows are on two targets, as their
// slot moves, several targets would return them twice.
func targetsOf(t *sharding.Table, s slots) ([]sharding.Target, error) {
	everywhere, moving := t.Everywhere()
	if s.all {
		return everywhere, moving
	}
	all, err := targetsOn(t, s.list())
	if err == nil && len(all) > 1 {
		err = moving
	}
	return all, err
}

// missing is the refusal of a statement that nothing leads to fewer than all shards.
func (p *binding) missing() error {
	r := p.sharded[0]
	for _, other := range p.sharded {
		if other.slots(p.args).all {
			r = other
			break
		}
	}
	return p.refusal(r.table.Name, sharding.ErrMissingKey, p.remedy(r.table))
}

// one is the statement with the names of one target.
func (p *binding) one(target sharding.Target) (Route, error) {
	if err := cmp.Or(p.keyStays(), p.together(target.DB)); err != nil {
		return Route{}, err
	}
	text, err := p.text(target)
	if err != nil {
		return Route{}, err
	}
	return Route{Kind: One, Target: target, Text: text}, nil
}

// together refuses tables that are not where the rows are: in one database, or in several
// where db is "".
func (p *binding) together(db string) error {
	for _, r := range p.refs {
		switch {
		case r.role == home && (db == "" || db != p.options.Home):
			where := "on several shards"
			if db != "" {
				where = "in " + db
			}
			return p.refusal(r.label(), sharding.ErrCrossShard,
				fmt.Sprintf("it is a table of the home database, and the rows of %s are %s; "+copyOrRead, p.sharded[0].table.Name, where))
		case r.role == broadcast && r.written && (db == "" || !p.options.Alone):
			return p.refusal(r.label(), sharding.ErrCrossShard, "write broadcast tables by a statement of their own, which goes to every copy")
		}
	}
	return nil
}

// Quiet reports whether the statement is a query that leaves nothing in its session which
// another statement could ask for there: no variable, lock, temporary table or number.
func (p *Plan) Quiet() bool { return p.quiet }

// leavesNothing is Quiet but for functions, of which steady ones leave nothing.
func leavesNothing(st *sqlparse.Statement) bool {
	if st.Verb != sqlparse.Select || st.Executable {
		return false
	}
	text := strings.ToLower(st.Text)
	return !slices.ContainsFunc([]string{"@", "into", "found_rows", "last_insert_id"}, func(word string) bool { return strings.Contains(text, word) })
}

// Copied reports whether a copy of its databases may answer: it is a query about rows
// of shards, locks none of them, and no source of a migration serves its tables.
func (p *Plan) Copied() bool {
	return p.statement.Verb == sqlparse.Select && !p.locks && len(p.sharded) > 0 &&
		!slices.ContainsFunc(p.sharded, func(r *reference) bool { return r.table.Origin() != nil })
}

// Arrange puts named arguments into the order of the statement's parameters, by which
// a plan finds them; the caller may give them in any order.
func (p *Plan) Arrange(args []driver.NamedValue) {
	for i := 0; i < len(args); {
		at := p.place(args[i].Name)
		if at < 0 || at >= len(args) || at == i || args[at].Name == args[i].Name {
			i++
			continue
		}
		args[i], args[at] = args[at], args[i]
	}
	for i := range args {
		args[i].Ordinal = i + 1
	}
}

// place returns which argument a parameter takes, -1 for what no parameter is called.
func (p *Plan) place(name string) int {
	for _, q := range p.statement.Params {
		if q.Name != "" && q.Name[1:] == name {
			return q.Index
		}
	}
	return -1
}
