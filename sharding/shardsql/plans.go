// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/effects"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// plans caches plans by their texts. A plan belongs to one snapshot of the router; a new snapshot
// empties the cache. Long texts are not cached, because they are seldom sent twice. The others are
// in two generations. When the young generation is full, the old one is dropped and the young one
// becomes old. A text that is used becomes young again. So lists and batches of varying lengths
// displace each other, but not the texts that are sent often. A reader takes no lock, because all
// processors would write to its counter of readers.
type plans struct {
	cached atomic.Pointer[generations]
	routed atomic.Int64 // bytes of the texts for shards that the young plans have, which cache them, too
	mu     sync.Mutex   // of writers
	bytes  int          // of the young texts
}

// generations hold the *planned of a text.
type generations struct {
	snapshot   *sharding.Snapshot
	young, old *sync.Map
}

// planned is an immutable plan, with the tables on whose columns it depends, and the effects of its text.
type planned struct {
	*plan.Plan

	tables     []*description
	effects    *effects.Effects
	omitted    error                  // why the columns of a table are not known, or nil
	subqueries func() []plan.Subquery // plan.Subqueries, found once
}

// A plan takes up to 60 bytes for each byte of its text, if the text is a list of values.
const (
	maxText   = 16 << 10 // bytes of the longest text that is cached
	maxYoung  = 1 << 19  // bytes of the texts of a generation
	maxRouted = 32 << 20 // bytes of its texts for shards
)

// find returns the plan of a text, nil if there is none.
func (p *plans) find(s *sharding.Snapshot, text string) *planned {
	g := p.cached.Load()
	if g == nil || g.snapshot != s {
		return nil
	}
	found, isYoung := g.young.Load(text)
	if isYoung && p.routed.Load() <= maxRouted {
		return found.(*planned)
	}
	if !isYoung {
		if found, _ = g.old.Load(text); found == nil {
			return nil
		}
	}
	p.keep(s, text, found.(*planned))
	return found.(*planned)
}

func (p *plans) keep(s *sharding.Snapshot, text string, made *planned) {
	if len(text) > maxText {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.cached.Load()
	switch {
	case g == nil || g.snapshot != s:
		g = p.generation(s, new(sync.Map))
	case p.bytes+len(text) > maxYoung || p.routed.Load() > maxRouted:
		g = p.generation(s, g.young)
	}
	former, known := g.young.Swap(strings.Clone(text), made)
	if !known { // otherwise a table was altered, or another goroutine was faster
		p.bytes += len(text)
	}
	if former != made {
		plan.Count(made.Plan, &p.routed)
	}
	p.cached.Store(g)
}

// generation begins a young generation beside an old one.
func (p *plans) generation(s *sharding.Snapshot, old *sync.Map) *generations {
	p.bytes = 0
	p.routed.Store(0)
	return &generations{s, new(sync.Map), old}
}

func (c schemaReader) plan(ctx context.Context, text string) (*planned, error) {
	d := c.database
	if p := d.plans.find(c.snapshot, text); p != nil && !c.altered(ctx, p.tables, maxAge) {
		return p, nil
	}
	srv, err := d.detect(ctx)
	if err != nil {
		return nil, err
	}
	st := sqlparse.Parse(text, srv.Reads)
	options := analysis.Options{Home: d.homeName, Mode: d.router.TxMode(), Reads: srv.Reads, Quote: srv.Quote, Merge: srv.Arithmetic, Alone: len(d.copies()) == 1}
	p := &planned{}
	if concerns(c.snapshot, st) {
		p.tables, p.omitted = c.described(ctx, plan.Tables(st, c.snapshot))
		options.Schema = schemaOf(p.tables)
		if err := p.outage(); err != nil && !st.ReadsOnly() {
			return nil, err // its plan would miss unique keys, by which rows must be searched for
		}
	}
	p.Plan = plan.Of(st, c.snapshot, options)
	p.effects = effects.Of(text, srv.Reads, p.Stateless)
	p.subqueries = sync.OnceValue(func() []plan.Subquery { return plan.Subqueries(p.Plan) })
	if p.omitted == nil && c.snapshot == d.router.Snapshot() { // an older one would displace the plans of the present one
		d.plans.keep(c.snapshot, text, p)
	}
	return p, nil
}

// outage returns the error for which the columns of a table could not be read, if they may be read later.
func (p *planned) outage() error {
	if !dialect.Unavailable(p.omitted) {
		return nil
	}
	return fmt.Errorf("shardsql: columns cannot be read: %w", p.omitted)
}

// orCause returns an outage instead of a refusal for which it may be the reason, because a refusal tells the program to
// change its statement. The refusal of a statement with fewer arguments than parameters, or with a table that the home
// database does not have, says that instead.
func (p *planned) orCause(err error, args int) error {
	var refusal *sharding.RouteError
	now := p.outage()
	absent := func(r *analysis.Reference) bool {
		return r.Role == analysis.Home && !r.Known && len(r.At.Name.Parts) == 1
	}
	switch {
	case !errors.As(err, &refusal):
	case now != nil:
		return now
	case args < p.Statement.Args:
		return because(refusal, fmt.Errorf("the statement has %d parameters and %d arguments", p.Statement.Args, args), "pass the others")
	case dialect.FaultOf(p.omitted) == dialect.NoTable && slices.ContainsFunc(p.Refs, absent):
		return because(refusal, p.omitted, "correct the name of the table, or declare it to the router if the shards have it")
	}
	return err
}

// because returns a refusal with another reason and remedy.
func because(refusal *sharding.RouteError, why error, hint string) error {
	sentinel := refusal.Err
	for next := sentinel; next != nil; next = errors.Unwrap(next) {
		sentinel = next
	}
	return &sharding.RouteError{Op: refusal.Op, Table: refusal.Table, Err: fmt.Errorf("%w: %w", sentinel, why), Hint: hint}
}

// concerns reports whether one of the tables is sharded, or is a broadcast table.
func concerns(s *sharding.Snapshot, st *sqlparse.Statement) bool {
	return slices.ContainsFunc(st.Names, func(name string) bool {
		_, ok := s.Lookup(name)
		return ok || !st.ReadsOnly() && s.IsBroadcast(name)
	})
}
