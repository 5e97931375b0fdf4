// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/ticket"
)

// take takes some numbers of one counter.
type take func(ctx context.Context) ([]int64, error)

// uidLayout has room for the worker ids of many starts.
var uidLayout = keygen.Layout{Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Second, Fields: []keygen.Field{
	{Kind: keygen.Time, Bits: 28}, {Kind: keygen.Worker, Bits: 22}, {Kind: keygen.Sequence, Bits: 13},
}}

// counters are all that a database counts, through one pool.
func counters(t *testing.T, db *sql.DB, s *sqlstore.Store) map[string]take {
	t.Helper()
	var n ticket.Numbering
	if err := db.QueryRowContext(t.Context(), "SELECT @@GLOBAL.auto_increment_offset, @@GLOBAL.auto_increment_increment").Scan(&n.Offset, &n.Increment); err != nil {
		t.Fatal(err)
	}
	tickets, err := ticket.NewTable(ticket.TableConfig{DB: db, Numbering: n})
	if err != nil {
		t.Fatal(err)
	}
	periods, begin := s.Periods(), time.Unix(0, 0)
	return map[string]take{
		"segments":            spans(s.Tag("orders"), 10),
		"guarded segments":    spans(s.GuardedTag("guarded"), 10),
		"WORKER_NODE":         workers(s.WorkerNode("h", "1")),
		"guarded WORKER_NODE": workers(s.GuardedWorkerNode("h", "1")),
		"tickets":             spans(tickets, 1),
		"periods": spans(periodic(func(ctx context.Context, n int64) (keygen.Span, error) {
			return periods.Reserve(ctx, "shop", "2026", begin, time.Now().Add(time.Hour), n)
		}), 1),
	}
}

type periodic func(ctx context.Context, n int64) (keygen.Span, error)

func (p periodic) Reserve(ctx context.Context, n int64) (keygen.Span, error) { return p(ctx, n) }

func spans(source keygen.Source, n int64) take {
	return func(ctx context.Context) (ids []int64, err error) {
		span, err := source.Reserve(ctx, n)
		for i := range span.Count {
			ids = append(ids, span.First+i*span.Step)
		}
		return ids, err
	}
}

func workers(assigner keygen.Assigner) take {
	return func(ctx context.Context) ([]int64, error) {
		lease, err := assigner.Acquire(ctx, uidLayout)
		if err != nil {
			return nil, err
		}
		return []int64{lease.ID()}, nil
	}
}

// tally is what all writers of one counter got.
type tally struct {
	mu      sync.Mutex
	calls   int
	ids     []int64
	errs    []error
	longest time.Duration
}

func (y *tally) add(ids []int64, took time.Duration, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.calls++
	y.longest = max(y.longest, took)
	if err != nil {
		y.errs = append(y.errs, err)
		return
	}
	y.ids = append(y.ids, ids...)
}

// writers take numbers of each counter, some at once on each member.
type writers struct {
	each, calls int // goroutines on each member and counter, and how often each takes some
	tallies     map[string]*tally
	all         sync.WaitGroup
	done        atomic.Int64
}

// on starts the writers of one member. Once it is gone, their errors say so.
func (w *writers) on(ctx context.Context, all map[string]take, gone *atomic.Bool) {
	if w.tallies == nil {
		w.tallies = map[string]*tally{}
	}
	for name, next := range all {
		if w.tallies[name] == nil {
			w.tallies[name] = &tally{}
		}
		y := w.tallies[name]
		for range w.each {
			w.all.Go(func() {
				for range w.calls {
					begin := time.Now()
					ids, err := next(ctx)
					if err != nil && gone.Load() {
						return
					}
					y.add(ids, time.Since(begin), err)
					w.done.Add(1)
				}
			})
		}
	}
}

// check waits for the writers, and wants no number twice and no error.
func (w *writers) check(t *testing.T) {
	t.Helper()
	w.all.Wait()
	for name, y := range w.tallies {
		for _, err := range y.errs {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %d calls, %d numbers; the longest call took %v", name, y.calls, len(y.ids), y.longest.Round(time.Millisecond))
		if id, twice := keygentest.Duplicate(y.ids); twice || len(y.ids) == 0 {
			t.Errorf("%s: %d numbers of %d calls; %d came twice: %v", name, len(y.ids), y.calls, id, twice)
		}
	}
}
