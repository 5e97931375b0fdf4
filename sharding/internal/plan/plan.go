// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/combine"
	"github.com/shardid/shardid/sharding/internal/flat"
)

// Plan returns the route of a statement for its arguments. It is immutable, belongs to the snapshot
// that it was made for, and is safe for concurrent use.
type Plan struct {
	analysis.Reading
	// Stateless: it is a query that leaves no state in its session: no variable, lock, temporary table or generated
	// number.
	Stateless  bool
	Routed     bool // it names a table of the router
	Owned      bool // a lookup table or a search may lead to its rows
	Sought     bool // a search may, if the statement is in a transaction of one database
	Singles    bool // a table has a column that is Single, or the statement may return a value of that kind
	SetsLastID bool // it is no INSERT, and may set what last_insert_id() or lastval() returns
	// Instants are its functions that read the clock, if their values can be written into it.
	Instants []analysis.Instant
	// Zones are the time zones that it converts to and from. Each database reads named ones from tables of its own.
	Zones []analysis.Zone

	sharded     []*analysis.Reference
	broadcast   []*analysis.Reference
	written     *analysis.Reference // the broadcast table that it writes, or nil
	home        *Route              // of a statement without a sharded table
	routes      *routes
	labelled    []sqlparse.Span // see labelled
	clocks      []int           // parameters for which functions of SQLite may read the clock
	changes     bool            // it calls a function that is known to change something
	mayBeNumber bool            // see StandsAlone

	// Why it is refused: with any arguments or hint, unless it is Unsharded; because its sharded tables are in several groups;
	// because a write would not leave all copies equal; and because the results of several shards cannot be combined, or a write
	// cannot be divided.
	barred, ungrouped, uncopied, unmerged *sharding.RouteError
	unknown                               bool   // uncopied only says that the columns of the table are unknown
	untyped                               bool   // unmerged only says that the type of a column is unknown
	misspelt                              string // see analysis.Analysis.Misspelt

	// How the results of several shards are combined, or nil.
	combination *combine.Combination
	flat        *Plan       // of a query of groups that has the same rows, or nil
	replaceable replaceable // of a query that is not combined: see withLiterals
	lists       []list      // long lists of values, which are divided among the shards
	union       *union      // for a query with a unique value that searches all tables in one text, or nil
	leadingHome bool        // a subquery that may be executed first reads a table of the home database

	own       []ownCondition // the places for conditions that leave out the rows of other shards
	separable bool           // all its tables have such a place
	ownRows   bool           // the conditions are in its texts

	origin   *sharding.Target // nil unless the source of a migration serves the tables
	onDemand *onDemand

	arrays     *arrays               // of an INSERT … SELECT unnest(…), or nil
	slotsFound bool                  // its slots were found by a search, not by conditions on keys: see Owners
	otherwise  *sharding.Target      // see Owners
	modified   []*Plan               // of its data-modifying CTEs
	allSharded []*analysis.Reference // the sharded tables of it and of modified, if there are any
}

// Of returns the plan of a statement. It always returns one; [Plan.Bind] refuses a statement that
// cannot be routed.
func Of(statement *sqlparse.Statement, snapshot *sharding.Snapshot, options analysis.Options) *Plan {
	b := analysis.Of(statement, snapshot, options)
	stayAtHome(b)
	p := &Plan{
		Reading: b.Reading, Instants: b.EveryInstant(statement), Zones: b.Zones, clocks: b.Times, changes: b.Changes, misspelt: b.Misspelt(),
		routes: &routes{}, onDemand: &onDemand{}, origin: movesFrom(&b.Reading), barred: cmp.Or(physical(&b.Reading), unserved(&b.Reading)),
		lists: lists(b), arrays: arraysOf(b), mayBeNumber: combine.MayBeNumber(b),
	}
	if statement.Verb == sqlparse.Select {
		if p.combination, p.untyped, p.unmerged = combine.Of(b); p.unmerged != nil && !p.untyped {
			if p.flat = flattened(p, b); p.flat == nil {
				p.replaceable = replaceableOf(b)
			}
		}
	} else {
		p.unmerged = divide(b)
	}
	takeTables(p, b)
	leavesNone := leavesNoState(statement, options.Reads)
	p.Stateless = b.VolatileReason == "" && leavesNone
	p.Singles, p.SetsLastID = hasSingles(b.Refs) || b.MySQL && deviates(statement), !p.Stateless && setsLastID(statement)
	p.home = homeOf(p, b, leavesNone)
	p.labelled = labelled(p, b)
	p.own, p.separable = ownConditions(b)
	if p.Owned {
		p.union = unite(p)
	}
	p.leadingHome = len(p.sharded) > 0 && readsHomeFirst(p)
	takeWrites(p)
	return p
}

// takeTables records the tables of the router that a statement names.
func takeTables(p *Plan, b *analysis.Analysis) {
	for _, r := range b.Refs {
		switch {
		case r.Returned:
		case r.Role == analysis.Sharded:
			p.sharded = append(p.sharded, r)
			p.takeOwned(r)
		case r.Role == analysis.Broadcast:
			p.broadcast = append(p.broadcast, r)
		}
	}
	if at := slices.IndexFunc(p.broadcast, func(r *analysis.Reference) bool { return r.Written }); at >= 0 {
		p.written = p.broadcast[at]
		p.uncopied, p.unknown = uncopied(b, p.written)
	}
	p.ungrouped = ungrouped(p)
	p.Routed = len(p.sharded) > 0 || slices.ContainsFunc(b.Statement.Names, func(name string) bool {
		_, ok := b.Snapshot.Lookup(name)
		return ok
	})
}

// ungrouped returns the refusal of a sharded table that is not in the group of the first one.
func ungrouped(p *Plan) *sharding.RouteError {
	all := tablesOf(p)
	for _, r := range all {
		first := all[0].Table
		switch {
		case p.Snapshot.SameGroup(first.Name, r.Table.Name):
			continue
		case (first.Origin() == nil) != (r.Table.Origin() == nil):
			return p.Refusal(r.Table.Name, sharding.ErrCrossShard,
				fmt.Sprintf("shards serve only one of %s and %[2]s, and the source of their migration the other; move tables of one group in one job", first.Name, r.Table.Name))
		}
		return p.Refusal(r.Table.Name, sharding.ErrCrossShard,
			fmt.Sprintf("it is not in one group with %s; read one of them first and give its values as arguments, or give both tables the same Group if their rows belong together", first.Name))
	}
	return nil
}

// flattened returns the plan of a query of groups that has the same rows as one that reads them from a derived table. It returns nil if
// there is none, or if its results cannot be combined either.
func flattened(p *Plan, b *analysis.Analysis) *Plan {
	text := flat.Of(b)
	if text == "" {
		return nil
	}
	if as := planAgain(p, text); as.combination != nil {
		return as
	}
	return nil
}

// homeOf returns the route of a statement without a sharded table, of which it is known whether its words leave a state.
func homeOf(p *Plan, b *analysis.Analysis, leavesNone bool) *Route {
	onlyBroadcast := p.written == nil && len(p.broadcast) > 0 && len(p.broadcast) == len(p.Refs)
	namesInText := b.Postgres && sqltext.Mentions(b.Statement.Text, "reg") // it may look for the name of a table or a type, as 'orders'::regclass does
	// It names no table, and each database would return the same but for the clock and random values.
	anywhere := len(b.Refs) == 0 && !b.Foreign && b.Ranks == 0 && leavesNone && !namesInText
	// PostgreSQL would return the same in another transaction, too.
	timeless := anywhere && (b.VolatileReason == "" || !b.Postgres)
	to := p.atHome()
	to.Anywhere, to.Nowhere = anywhere || onlyBroadcast, timeless
	return to
}

// atHome returns the route of the unchanged statement to the home database.
func (p *Plan) atHome() *Route {
	return &Route{Kind: Home, Text: p.Statement.Text, Pooled: p.Stateless}
}

// stayAtHome refuses a function that takes a lock or changes a setting of its connection in a statement on shards: no later statement would find its lock or setting,
// and the pool would keep it.
func stayAtHome(b *analysis.Analysis) {
	remedy := "send " + b.Remains + " in a statement without the table, with the values as arguments"
	if b.Remains == "set_config" {
		remedy = "set it with SET LOCAL, which is executed on all databases of the transaction, or " + remedy
	}
	for _, r := range b.Refs {
		if r.Role == analysis.Sharded && b.Remains != "" {
			b.RecordRefusal(r.Table.Name, fmt.Errorf("%w: %s holds on one connection, and the session keeps none to a shard", sharding.ErrSettings, b.Remains),
				remedy)
		}
	}
}

// leavesNoState is Plan.Stateless without a check of functions, of which deterministic ones leave no state.
func leavesNoState(st *sqlparse.Statement, reads sqlparse.Dialect) bool {
	return st.ReadsOnly() && !st.Executable && !sqltext.WordsMention(st.Text, reads.Rules(), "@", "into", "found_rows", "last_insert_id")
}

// setsLastID searches for the words first: a regular expression is slow on a long text.
func setsLastID(st *sqlparse.Statement) bool {
	switch {
	case st.Verb == sqlparse.Insert || st.Verb == sqlparse.Replace:
		return false
	case st.Writes != nil:
		return true
	}
	return sqltext.Mentions(st.Text, "call", "nextval", "setval", "last_insert_id") && lastIDs.MatchString(st.Text)
}

// lastIDs matches a statement that sets it.
var lastIDs = regexp.MustCompile(`(?i)^\s*call\b|\b(nextval|setval|last_insert_id)\s*\(\s*[^)\s]`)

// deviates reports whether a query may return a standard deviation or a variance, of which MariaDB prints four digits
// more than the column has.
func deviates(st *sqlparse.Statement) bool {
	return st.Verb == sqlparse.Select && sqltext.Mentions(st.Text, "std", "variance", "var_")
}

func hasSingles(refs []*analysis.Reference) bool {
	return slices.ContainsFunc(refs, func(r *analysis.Reference) bool {
		for _, c := range r.Schema.Columns {
			if c.Single {
				return true
			}
		}
		return false
	})
}

// IsUntyped reports whether an error of Bind only says that a column, its type or the unique keys are unknown, so that
// the statement may be accepted once they are known.
func (p *Plan) IsUntyped(err error) bool {
	return p.untyped && errors.Is(err, p.unmerged) ||
		p.unknown && errors.Is(err, p.uncopied) ||
		p.Unsought && errors.Is(err, sharding.ErrMissingKey) ||
		p.Insert != nil && p.Insert.UniqueUnknown && errors.Is(err, p.Refused)
}

// Copied reports whether a copy of its databases may answer: it is a query of rows of shards, locks
// none of them, calls no function that changes something, and no source of a migration serves its tables.
func (p *Plan) Copied() bool {
	return p.Statement.ReadsOnly() && !p.Locks && !p.changes && len(p.sharded) > 0 &&
		!slices.ContainsFunc(p.sharded, func(r *analysis.Reference) bool { return r.Table.Origin() != nil })
}

// Single reports whether the statement was parsed. A text that was not parsed may contain several
// statements, some of which may have been executed when another fails.
func (p *Plan) Single() bool { return p.Statement.Verb != sqlparse.Unknown }

// First returns the first sharded table of a statement, nil if it has none.
func First(p *Plan) *sharding.Table {
	all := tablesOf(p)
	if len(all) == 0 {
		return nil
	}
	return all[0].Table
}

// ReadsShards reports whether a write depends on rows of shards that it does not write.
func ReadsShards(p *Plan) bool {
	return slices.ContainsFunc(p.sharded, func(r *analysis.Reference) bool { return !r.Written })
}

// WritesShards reports whether a statement writes rows of shards, and none by a CTE.
func WritesShards(p *Plan) bool {
	return p.Statement.Writes == nil && slices.ContainsFunc(p.sharded, func(r *analysis.Reference) bool { return r.Written })
}

// Returns reports whether a write returns rows.
func Returns(p *Plan) bool {
	if in := p.Statement.Insert; in != nil {
		return len(in.Returning) > 0
	}
	return p.Statement.Change != nil && len(p.Statement.Change.Returning) > 0
}

// Table returns the first table of the router that the statement names, or "".
func (p *Plan) Table() string {
	if len(p.sharded) > 0 {
		return p.sharded[0].Table.Name
	}
	for _, name := range p.Statement.Names {
		if t, ok := p.Snapshot.Lookup(name); ok {
			return t.Name
		}
		if p.Snapshot.IsBroadcast(name) {
			return name
		}
	}
	return ""
}

// Fingerprint returns the statement without its values: see [sqltext.Fingerprint].
func (p *Plan) Fingerprint() string {
	p.onDemand.printed.Do(func() { p.onDemand.fingerprint = sqltext.Fingerprint(p.Statement.Text, p.Options.Reads.Rules()) })
	return p.onDemand.fingerprint
}

// Arrange sorts named arguments in the order of the statement's parameters, which the plan expects;
// the caller may pass them in any order.
func (p *Plan) Arrange(args []driver.NamedValue) {
	first := map[string]int{}
	for _, a := range slices.Backward(args) {
		first[a.Name] = a.Ordinal
	}
	place := func(a driver.NamedValue) int {
		at := slices.IndexFunc(p.Statement.Params, func(q *sqlparse.Param) bool { return q.Name != "" && q.Name[1:] == a.Name })
		if at < 0 || a.Ordinal != first[a.Name] { // the database refuses it, or takes the first one of its name
			return len(p.Statement.Params)
		}
		return p.Statement.Params[at].Index
	}
	slices.SortStableFunc(args, func(a, b driver.NamedValue) int { return place(a) - place(b) })
	for i := range args {
		args[i].Ordinal = i + 1
	}
}

// Tables returns the tables on whose columns the plan of a statement depends, as they are written. It
// omits aliases and CTEs, and returns none for a text that was not parsed and is therefore never
// split.
func Tables(st *sqlparse.Statement, s *sharding.Snapshot) []string {
	if st.Executable {
		return nil
	}
	var names []string
	for _, part := range append(slices.Clone(st.Writes), st) {
		for _, r := range analysis.Walk(part, s, analysis.Options{}).Refs {
			name := r.Label()
			if !slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(other, name) }) {
				names = append(names, name)
			}
		}
	}
	return names
}
