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

// plans keeps plans by their texts. A plan belongs to one snapshot of the router:
// when there is another one, all go. Texts that are long are seldom sent twice, and
// are not kept.
type plans struct {
	mu       sync.RWMutex
	snapshot *sharding.Snapshot
	kept     map[string]*plan.Plan
	bytes    int
}

const (
	maxText  = 16 << 10 // bytes of a text that is kept
	maxTexts = 4 << 20  // bytes of all texts; then they are forgotten
)

func (p *plans) find(s *sharding.Snapshot, text string) *plan.Plan {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.snapshot != s {
		return nil
	}
	return p.kept[text]
}

func (p *plans) keep(s *sharding.Snapshot, text string, made *plan.Plan) {
	if len(text) > maxText {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.snapshot != s || p.bytes+len(text) > maxTexts {
		p.snapshot, p.kept, p.bytes = s, map[string]*plan.Plan{}, 0
	}
	p.kept[strings.Clone(text)] = made
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
	options, complete := plan.Options{Home: d.homeName, Quote: srv.Quote, Merge: srv.arithmetic(), Alone: len(d.copies()) == 1}, true
	if concerns(s, st) {
		options.Schema, complete = d.schema(ctx, srv, s, st.Names, on)
	}
	p := plan.Of(st, s, options)
	if complete {
		d.plans.keep(s, text, p)
	}
	return p, nil
}

// concerns reports whether one of the tables is sharded, or has copies that may be
// written.
func concerns(s *sharding.Snapshot, st *sqlparse.Statement) bool {
	return slices.ContainsFunc(st.Names, func(name string) bool {
		_, ok := s.Lookup(name)
		return ok || st.Verb != sqlparse.Select && s.IsBroadcast(name)
	})
}
