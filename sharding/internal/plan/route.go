// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/combine"
	"github.com/shardid/shardid/sharding/internal/proof"
)

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
	// United says that the text of One reads the tables of all targets, which are in one database.
	United bool
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

// IsSpread reports whether a statement that is not for home reads or writes several targets.
func (r *Route) IsSpread() bool { return r.Kind != One || r.United }

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

// routes caches the routes of a plan to one target each, up to mostCached bytes.
type routes struct {
	known sync.Map // of *Route, by their sharding.Target

	mu    sync.Mutex
	bytes int64         // of all routes
	total *atomic.Int64 // of the bytes of many plans; see Count
}

const (
	mostCached  = 4 << 20 // bytes of one plan's routes
	sizeOfRoute = 256     // bytes without the text, and with its place in a map
)

// to returns the route of a plan's unchanged rows and conditions to a target.
func (c *routes) to(p *Plan, target sharding.Target) (*Route, error) {
	if route, ok := c.known.Load(target); ok {
		return route.(*Route), nil
	}
	text, err := p.edited(target, nil)
	if err != nil {
		return nil, err
	}
	route := &Route{Kind: One, Target: target, Text: text, Pooled: true}
	c.keep(route)
	return route, nil
}

func (c *routes) keep(route *Route) {
	size := int64(sizeOfRoute + len(route.Text))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes+size > mostCached {
		return
	}
	if _, known := c.known.LoadOrStore(route.Target, route); known {
		return // another goroutine has made it, too
	}
	c.bytes += size
	if c.total != nil {
		c.total.Add(size)
	}
}

// Count adds the bytes of the routes that a plan has cached, and of those that it will cache, to the total of a cache of plans.
func Count(p *Plan, total *atomic.Int64) {
	c := p.routes
	c.mu.Lock()
	defer c.mu.Unlock()
	total.Add(c.bytes)
	c.total = total
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

// besideTarget returns the target of a table that has the rows of the same slots as a target of a table in its group.
func besideTarget(p *Plan, t *sharding.Table, target sharding.Target) (sharding.Target, error) {
	at, _, err := p.Snapshot.Hinted(t.Name, sharding.Hint{On: target})
	return at, err
}

// slotsOf returns the slots of the rows of some references.
func slotsOf(refs []*analysis.Reference, args []any) (all proof.Slots) {
	for _, r := range refs {
		all = all.Or(r.Slots(args))
	}
	return all
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

// targetsOf returns the targets of a set of slots. It refuses several targets while rows of the set are on two targets, because their slot
// moves: they would be returned twice. Other slots may move, because the conditions on keys exclude their rows. If a search by another
// value has found the slots, it refuses all: a shard may still have a row of a moved slot with that value.
func targetsOf(p *Plan, s proof.Slots) ([]sharding.Target, error) {
	t := p.sharded[0].Table
	everywhere, moving := t.Everywhere()
	if s.All {
		return everywhere, moving
	}
	all, err := targetsOn(t, s.List())
	shared := t.Map.Shared()
	if err == nil && len(all) > 1 && (p.slotsFound || slices.ContainsFunc(s.List(), func(slot sharding.Slot) bool { return slices.Contains(shared, slot) })) {
		err = moving
	}
	return all, err
}

// inOneDatabase reports whether a database has all of some targets.
func inOneDatabase(targets []sharding.Target) bool {
	return !slices.ContainsFunc(targets, func(t sharding.Target) bool { return t.DB != targets[0].DB })
}
