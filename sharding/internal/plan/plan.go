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
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/splice"
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
	Zones     []analysis.Zone
	sharded   []*analysis.Reference
	broadcast []*analysis.Reference
	written   *analysis.Reference // the broadcast table that it writes, or nil
	changes   bool                // it calls a function that is known to change something
	// anywhere: it names no table, and each database would return the same but for the clock and random
	// values. timeless: PostgreSQL would return the same in another transaction, too.
	anywhere, timeless bool
	// standsAlone and mayBeNumber: see StandsAlone.
	standsAlone, mayBeNumber bool
	leadingHome              bool                 // a subquery that may be executed first reads a table of the home database
	physical                 *sharding.RouteError // it names a physical table
	ungrouped                *sharding.RouteError // its sharded tables are in several groups
	misspelt                 string               // see analysis.Analysis.Misspelt
	routes                   *routes
	home                     *Route           // of a statement without a sharded table
	origin                   *sharding.Target // nil unless the source of a migration serves the tables
	unread                   string           // a table whose route has not been read yet
	// combination says how the results of several shards are combined, or is nil. unmerged says why
	// they cannot be combined, or why a write cannot be divided.
	combination *combine.Combination
	unmerged    *sharding.RouteError
	flat        *Plan                // of a query of groups that has the same rows, or nil
	untyped     bool                 // unmerged only says that the type of a column is unknown
	uncopied    *sharding.RouteError // why a write would not leave all copies equal, or nil
	unknown     bool                 // uncopied only says that the columns of the table are unknown
	afterSwitch *switchedPlan
	labelled    []sqlparse.Span       // see labelled
	own         []ownCondition        // the places for conditions that leave out the rows of other shards
	separable   bool                  // all its tables have such a place
	ownRows     bool                  // the conditions are in its texts
	clocks      []int                 // parameters for which functions of SQLite may read the clock
	lists       []list                // long lists of values, which are divided among the shards
	union       *union                // for a query with a unique value that searches all tables in one text, or nil
	otherwise   *sharding.Target      // see Owners
	arrays      *arrays               // of an INSERT … SELECT unnest(…), or nil
	replaceable replaceable           // of a query that is not combined: see withLiterals
	modified    []*Plan               // of its data-modifying CTEs
	named       []*analysis.Reference // the sharded tables of it and of modified, if there are any
}

// Of returns the plan of a statement. It always returns one; [Plan.Bind] refuses a statement that
// cannot be routed.
func Of(statement *sqlparse.Statement, snapshot *sharding.Snapshot, options analysis.Options) *Plan {
	b := analysis.Of(statement, snapshot, options)
	stayAtHome(b)
	p := &Plan{lists: lists(&b.Knowledge, splice.Parameters{Statement: statement}), Instants: b.EveryInstant(statement), clocks: b.Times, Reading: b.Reading, routes: &routes{}, afterSwitch: &switchedPlan{}, origin: movesFrom(&b.Reading), unread: unserved(&b.Reading), physical: physical(&b.Reading)}
	if statement.Verb == sqlparse.Select {
		if p.combination, p.untyped, p.unmerged = combine.Of(b); p.unmerged != nil && !p.untyped {
			if p.flat = flattened(p, b); p.flat == nil {
				p.replaceable = replaceableOf(b)
			}
		}
	} else {
		p.unmerged = divider{b}.divide()
	}
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
	p.Routed = len(p.sharded) > 0 || slices.ContainsFunc(statement.Names, func(name string) bool {
		_, ok := snapshot.Lookup(name)
		return ok
	})
	p.changes, p.misspelt, p.Zones = b.Changes, b.Misspelt(), b.Zones
	p.Stateless = b.VolatileReason == "" && leavesNoState(statement, options.Reads)
	p.anywhere = len(b.Refs) == 0 && !b.Foreign && b.Ranks == 0 && leavesNoState(statement, options.Reads) && !mayNameTable(b)
	p.timeless = p.anywhere && (b.VolatileReason == "" || !b.Postgres)
	p.Singles, p.SetsLastID = hasSingles(b.Refs) || b.MySQL && deviates(statement), !p.Stateless && setsLastID(statement)
	p.standsAlone, p.mayBeNumber = p.Stateless && !b.Foreign, combine.MayBeNumber(b)
	p.labelled, p.arrays = labelled(p, b), arraysOf(b)
	p.own, p.separable = ownConditions(b)
	p.home = p.atHome(p.anywhere || p.written == nil && len(p.broadcast) > 0 && len(p.broadcast) == len(p.Refs), p.timeless)
	if p.Owned {
		p.union = p.unite()
	}
	p.leadingHome = len(p.sharded) > 0 && readsHomeFirst(p)
	takeWrites(p)
	return p
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

// Kind is the way in which a bound plan is executed.
type Kind uint8

// The kinds of execution.
const (
	Home    Kind = iota + 1 // the unchanged text goes to the home database
	One                     // one text goes to one database
	Scatter                 // a text goes to each of several tables, and the results are merged
	Several                 // each of several tables gets its part of a write
	Copies                  // the unchanged text goes to every database
)

// String returns the word that Explain and observers show.
func (k Kind) String() string {
	return [...]string{"?", "home", "one", "scatter", "several", "copies"}[k]
}

// Route is a plan with its arguments. Statements share routes, so that a route must not be changed.
type Route struct {
	Kind Kind
	// Anywhere says that a Home statement reads no tables but broadcast ones, so that any database has
	// its rows.
	Anywhere bool
	// Pooled says that any connection may execute it: its rows are on a shard, or it is Stateless.
	Pooled bool
	// Nowhere says that any target and any session returns the same: no row satisfies the conditions
	// of a One statement, or a Home statement names no table.
	Nowhere bool
	// Target is the target of One, which has the first sharded table of the statement.
	Target sharding.Target
	Text   string
	// Args selects arguments of the statement for One's Text, in the text's order. It is nil if the
	// text takes the statement's arguments unchanged.
	Args   []int
	Shards *combine.Shards // for Scatter
	Writes *Writes         // for Several
	// Unplaced is the rows of an INSERT whose targets only their ids determine, which an adapter will
	// fill, or nil: see [Plan.Filled].
	Unplaced *Unplaced

	plan *Plan // of Scatter and Several
	all  bool  // only sharding.AllShards sends a change to all its targets
}

// Targets returns the targets on shards, in the order of their texts.
func (r *Route) Targets() (all []sharding.Target) {
	switch r.Kind {
	case One:
		all = append(all, r.Target)
	case Scatter:
		for _, s := range r.Shards.Targets {
			all = append(all, s.Target)
		}
	case Several:
		for _, part := range r.Writes.Parts {
			all = append(all, part.Target)
		}
	}
	return all
}

// Unplaced is rows without a known target.
type Unplaced struct {
	Rows    int
	All     bool              // no row has a known target; Route.Target is any one
	Targets []sharding.Target // each row gets one of them
}

// Several reports whether the rows of the INSERT may be on several targets.
func (u *Unplaced) Several() bool {
	return u != nil && len(u.Targets) > 1 && (u.Rows > 1 || !u.All)
}

// Bind returns the route of the statement with these arguments. Its errors are
// [sharding.RouteError]s.
func (p *Plan) Bind(args []any, hint sharding.Hint) (*Route, error) {
	if p.modified != nil {
		return modifying{p}.bind(args, hint)
	}
	return unmodified(p, args, hint)
}

// unmodified is Bind without the data-modifying CTEs of a statement.
func unmodified(p *Plan, args []any, hint sharding.Hint) (*Route, error) {
	switch {
	case hint.Unsharded:
		return p.atHome(false, false), nil
	case p.physical != nil:
		return nil, p.physical
	case len(p.Refs) == 0 && p.Refused == nil:
		return p.home, nil
	case p.unread != "":
		return nil, p.Refusal(p.unread, sharding.ErrRouteUnread, "call Router.Load when the program starts")
	}
	on := binding{p, args, hint}
	if err := on.given(); err != nil {
		return nil, err
	}
	switch {
	case p.origin != nil:
		return on.atOrigin()
	case p.arrays.areEmpty(args):
		return on.nowhere(p.Insert.Of.Table.Map.Targets()[0])
	case p.Refused != nil:
		return nil, p.Refused
	case len(p.sharded) == 0 && len(p.broadcast) == 0:
		return p.home, nil
	case len(p.sharded) == 0:
		return on.copies()
	case p.ungrouped != nil:
		return nil, p.ungrouped
	case p.Insert != nil && p.Insert.Input.Query == nil:
		return on.chosen()
	}
	if err := checkSelected(&on); err != nil {
		return nil, err
	}
	if hint.Placed() {
		return on.chosen()
	}
	return on.shards()
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
			fmt.Sprintf("it is not in one group with %s; give both tables the same Group if their rows belong together", first.Name))
	}
	return nil
}

// binding is a plan with a caller's arguments and hint.
type binding struct {
	*Plan

	args []any
	hint sharding.Hint
}

// chosen returns the route of the rows of an INSERT, or of a statement whose hint chooses its target.
func (p *binding) chosen() (*Route, error) {
	var target sharding.Target
	hinted := p.hint.Placed()
	if hinted {
		var err error
		if target, _, err = p.Snapshot.Hinted(p.sharded[0].Table.Name, formedHint(p)); err != nil {
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
func formedHint(p *binding) sharding.Hint {
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
	first := p.sharded[0]
	all := first.Slots(p.args)
	for _, r := range p.sharded[1:] {
		all = all.Or(r.Slots(p.args))
	}
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
		return &Route{Kind: One, Pooled: true, Target: p.union.first, Text: p.union.text, Args: p.sent(slices.Clone(p.union.args))}, nil
	case p.Statement.Change != nil:
		return p.routeChange(all)
	case all.All && !p.hint.All && (first.OnMissing == sharding.Refuse || p.Insert != nil):
		return nil, missing(p)
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

// targetOf returns the target that has all of the slots, if there is one. The empty set is on every
// target: each of them returns no row.
func targetOf(t *sharding.Table, s proof.Slots) (target sharding.Target, single bool, err error) {
	if s.All {
		all := t.Map.Targets()
		if len(all) != 1 {
			return target, false, nil
		}
		for _, held := range t.Map.Held() { // a process with a newer map may write its rows elsewhere already
			if _, err := t.On(held); err != nil {
				return target, false, err
			}
		}
		return all[0], true, nil
	}
	if s.One || s.Empty() { // the zero value has slot 0
		target, err = t.On(s.Only)
		return target, err == nil, err
	}
	all, err := targetsOn(t, s.List())
	if err != nil {
		return target, false, err
	}
	return all[0], len(all) == 1, nil
}

// targetsOn returns the targets of some slots, without duplicates, in slot order.
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

// targetsOf returns the targets of a set of slots. It refuses several targets while rows are on two
// targets, because their slot moves: the rows would be returned twice.
func targetsOf(t *sharding.Table, s proof.Slots) ([]sharding.Target, error) {
	everywhere, moving := t.Everywhere()
	if s.All {
		return everywhere, moving
	}
	all, err := targetsOn(t, s.List())
	if err == nil && len(all) > 1 {
		err = moving
	}
	return all, err
}

// missing returns the refusal of a statement that leads to all shards.
func missing(p *binding) error {
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

// atHome returns the route of the unchanged statement to the home database.
func (p *Plan) atHome(anywhere, nowhere bool) *Route {
	return &Route{Kind: Home, Anywhere: anywhere, Nowhere: nowhere, Text: p.Statement.Text, Pooled: p.Stateless}
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
				fmt.Sprintf("it is a table of the home database, and the rows of %s are %s; "+copyOrRead, p.Table(), where))
		case r.Role == analysis.Broadcast && r.Written && (db == "" || !p.Options.Alone):
			return p.Refusal(r.Label(), sharding.ErrCrossShard, "write broadcast tables with a separate statement, which goes to every copy")
		}
	}
	return nil
}

// leavesNoState is Plan.Stateless without a check of functions, of which deterministic ones leave no state.
func leavesNoState(st *sqlparse.Statement, reads sqlparse.Dialect) bool {
	return st.ReadsOnly() && !st.Executable && !sqltext.WordsMention(st.Text, reads.Rules(), "@", "into", "found_rows", "last_insert_id")
}

// mayNameTable reports whether the text may look for the name of a table or a type, as 'orders'::regclass does
// on PostgreSQL.
func mayNameTable(b *analysis.Analysis) bool {
	return b.Postgres && sqltext.Mentions(b.Statement.Text, "reg")
}

// IsUntyped reports whether an error of Bind only says that a column or its type is unknown, so that
// the statement may be accepted once it is known.
func (p *Plan) IsUntyped(err error) bool {
	return p.untyped && errors.Is(err, p.unmerged) || p.unknown && errors.Is(err, p.uncopied) || p.Unsought && errors.Is(err, sharding.ErrMissingKey)
}

// Copied reports whether a copy of its databases may answer: it is a query of rows of shards, locks
// none of them, calls no function that changes something, and no source of a migration serves its tables.
func (p *Plan) Copied() bool {
	return p.Statement.ReadsOnly() && !p.Locks && !p.changes && len(p.sharded) > 0 &&
		!slices.ContainsFunc(p.sharded, func(r *analysis.Reference) bool { return r.Table.Origin() != nil })
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

// Arrange sorts named arguments in the order of the statement's parameters, which the plan expects;
// the caller may pass them in any order.
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

// place returns the index of a parameter, -1 if no parameter has the name.
func (p *Plan) place(name string) int {
	for _, q := range p.Statement.Params {
		if q.Name != "" && q.Name[1:] == name {
			return q.Index
		}
	}
	return -1
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

// stayAtHome refuses a function that takes a lock or changes a setting of its connection in a statement on shards: no later statement would find its lock or setting,
// and the pool would keep it.
func stayAtHome(b *analysis.Analysis) {
	for _, r := range b.Refs {
		if r.Role == analysis.Sharded && b.Remains != "" {
			b.RecordRefusal(r.Table.Name, fmt.Errorf("%w: %s holds on one connection, and the session keeps none to a shard", sharding.ErrSettings, b.Remains),
				"send "+b.Remains+" in a statement without the table, with the values as arguments")
		}
	}
}

// Tables returns the tables on whose columns the plan of a statement depends, in lower case. It
// omits aliases and CTEs, and returns none for a text that was not parsed and is therefore never
// split.
func Tables(st *sqlparse.Statement, s *sharding.Snapshot) []string {
	if st.Executable {
		return nil
	}
	var names []string
	for _, part := range append(slices.Clone(st.Writes), st) {
		for _, r := range analysis.Walk(part, s, analysis.Options{}).Refs {
			if name := strings.ToLower(r.Label()); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
