// SPDX-License-Identifier: Apache-2.0

package snowflake

import (
	"context"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
)

// still returns a generator with a lease that nobody renews, on a clock that
// stands still until it is told otherwise.
func still(t *testing.T) (*Generator, *time.Time) {
	t.Helper()
	now := simLayout.Epoch.Add(1000 * time.Hour)
	clock := func() time.Time { return now }
	a, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: keygentest.NewMemoryLedger(clock), Namespace: "still"})
	if err != nil {
		t.Fatal(err)
	}
	g, err := assemble(t.Context(), Config{Layout: simLayout, Worker: a, Now: clock, Borrow: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return g, &now
}

// overrun lets a call find the limit reached by others after it looked, and the
// limit be raised before the call goes on.
func overrun(t *testing.T, repaired bool) (ids []int64) {
	t.Helper()
	g, _ := still(t)
	f := g.renewer.leaseState.Load()
	next := func() {
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	next()
	ceiling := f.limit.Load()
	f.limit.Store(f.only.state.Load())
	if n := f.only.state.Add(1); n <= f.limit.Load() {
		t.Fatal("nothing was overrun")
	}
	f.raise(ceiling)
	next()
	if repaired {
		f.only.state.Add(-1)
	}
	next()
	return ids
}

func TestStatesTakenBeyondTheLimitAreNeverIssuedAlsoAfterARenewal(t *testing.T) {
	if id, twice := keygentest.Duplicate(overrun(t, false)); twice {
		t.Errorf("%d came twice", id)
	}
	if _, twice := keygentest.Duplicate(overrun(t, true)); !twice {
		t.Error("giving a state back repeats no id: this test proves nothing")
	}
}

// lateAddition lets a call read the limit before a worker id is handed back, and
// take its id afterwards. It tells whether the next holder may issue that too.
func lateAddition(t *testing.T, sealed bool) bool {
	t.Helper()
	g, clock := still(t)
	f := g.renewer.leaseState.Load()
	now := g.clock.Tick()
	f.only.state.Store(g.before(now + 1)) // the last state of its tick
	limit := g.limit(f, now)
	last := min(f.only.state.Load(), f.limit.Load())
	if sealed {
		last = f.seal()
	}
	if err := g.renewer.release(f, last); err != nil {
		t.Fatal(err)
	}
	*clock = clock.Add(time.Millisecond) // so that the worker id is free
	next, err := g.acquire(context.Background(), g.cfg.Worker)
	if err != nil {
		t.Fatal(err)
	}
	n := f.only.state.Add(1)
	return n <= limit && next.lease.ID() == f.lease.ID() && g.tick(n) >= next.lease.NotBefore()
}

func TestNothingIsIssuedAboveTheReturnedEndAfterTheSeal(t *testing.T) {
	if lateAddition(t, true) {
		t.Error("an id was issued that is the next holder's")
	}
	if !lateAddition(t, false) {
		t.Error("without the seal nothing happens: this test proves nothing")
	}
}

// Plain ids and those of a bucket would be the same if each had a counter of its
// own that starts where the other does.
func TestPlainIDsAndThoseOfBucketsShareTheCountersOfOneLease(t *testing.T) {
	layout := keygen.Layout{Epoch: simLayout.Epoch, Unit: time.Millisecond, Fields: []keygen.Field{
		{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 2}, {Kind: keygen.Sequence, Bits: 8}, {Kind: keygen.Bucket, Bits: 2},
	}}
	now := layout.Epoch.Add(1000 * time.Hour)
	g, err := assemble(t.Context(), Config{Layout: layout, Worker: fixed(1), Now: func() time.Time { return now }, random: func(int64) int64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for i := range int64(200) {
		plain, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		gene, err := g.NextIn(t.Context(), i%4)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, plain, gene)
	}
	if id, twice := keygentest.Duplicate(ids); twice {
		t.Errorf("%d came twice", id)
	}
	f := g.renewer.leaseState.Load()
	f.buckets = make([]counter, g.buckets) // as if the generator of plain ids had counters of its own
	below := g.before(g.clock.Tick())
	f.counters(func(c *counter) { c.start(below) })
	again, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, twice := keygentest.Duplicate(append(ids, again)); !twice {
		t.Error("counters of their own repeat no id: this test proves nothing")
	}
}

// fixed is a worker id that nobody had before.
type fixed int64

func (f fixed) Acquire(context.Context, keygen.Layout) (keygen.Lease, error) { return f, nil }
func (f fixed) ID() int64                                                    { return int64(f) }
func (f fixed) NotBefore() int64                                             { return 0 }
