// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// plans caches plans by their texts. A plan belongs to one snapshot of the router; a new snapshot
// empties the cache. Long texts are not cached, because they are seldom sent twice. The others are
// in two generations. When the young generation is full, the old one is dropped and the young one
// becomes old. A text that is used becomes young again. So lists and batches of varying lengths
// displace each other, but not the texts that are sent often.
type plans struct {
	mu         sync.RWMutex
	snapshot   *sharding.Snapshot
	young, old map[string]*plan.Plan
	bytes      int // of the young texts
}

// A plan takes up to 60 bytes for each byte of its text, if the text is a list of values.
const (
	maxText  = 16 << 10 // bytes of the longest text that is cached
	maxYoung = 1 << 19  // bytes of the texts of a generation
)

func (p *plans) find(s *sharding.Snapshot, text string) *plan.Plan {
	p.mu.RLock()
	if p.snapshot != s {
		p.mu.RUnlock()
		return nil
	}
	found, old := p.young[text], false
	if found == nil {
		found, old = p.old[text], true
	}
	p.mu.RUnlock()
	if found != nil && old {
		p.keep(s, text, found)
	}
	return found
}

func (p *plans) keep(s *sharding.Snapshot, text string, made *plan.Plan) {
	if len(text) > maxText {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.snapshot != s:
		p.snapshot, p.young, p.old, p.bytes = s, map[string]*plan.Plan{}, nil, 0
	case p.young[text] != nil: // another goroutine was faster
		return
	case p.bytes+len(text) > maxYoung:
		p.young, p.old, p.bytes = map[string]*plan.Plan{}, p.young, 0
	}
	p.young[strings.Clone(text)] = made
	p.bytes += len(text)
}

// plan returns the plan of a text for a snapshot.
func (d *database) plan(ctx context.Context, s *sharding.Snapshot, text string, on connected) (*plan.Plan, error) {
	if p := d.plans.find(s, text); p != nil {
		return p, nil
	}
	srv, err := d.ask(ctx)
	if err != nil {
		return nil, err
	}
	st := srv.parse(text)
	options, complete := plan.Options{Home: d.homeName, Mode: d.router.TxMode(), Reads: srv.reads, Quote: srv.Quote, Merge: srv.arithmetic(), Alone: len(d.copies()) == 1}, true
	if concerns(s, st) {
		options.Schema, complete = d.schema(ctx, srv, s, plan.Tables(st, s), on)
	}
	p := plan.Of(st, s, options)
	if complete {
		d.plans.keep(s, text, p)
	}
	return p, nil
}

// concerns reports whether one of the tables is sharded, or is a broadcast table.
func concerns(s *sharding.Snapshot, st *sqlparse.Statement) bool {
	return slices.ContainsFunc(st.Names, func(name string) bool {
		_, ok := s.Lookup(name)
		return ok || st.Verb != sqlparse.Select && s.IsBroadcast(name)
	})
}
