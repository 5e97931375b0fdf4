// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/cached"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

// wide has 4,194,304 ids in a millisecond, so that the code is what limits.
var wide = keygen.Layout{
	Epoch: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond,
	Fields: []keygen.Field{{Kind: keygen.Time, Bits: 38}, {Kind: keygen.Worker, Bits: 3}, {Kind: keygen.Sequence, Bits: 22}},
}

// million is Leaf's largest step. At 5 ns for each id it lasts for 5 ms.
const million = 1_000_000

func newSegment(b *testing.B, source keygen.Source, step int64) *segment.Generator {
	b.Helper()
	g, err := segment.New(b.Context(), segment.Config{Source: source, Step: step})
	if err != nil {
		b.Fatal(err)
	}
	return closing(b, g)
}

func newSnowflake(b *testing.B, layout keygen.Layout) *snowflake.Generator {
	b.Helper()
	g, err := snowflake.New(b.Context(), snowflake.Config{Layout: layout, Worker: workerid.Static(1)})
	if err != nil {
		b.Fatal(err)
	}
	return closing(b, g)
}

func newCoarse(b *testing.B, layout keygen.Layout) *snowflake.Generator {
	b.Helper()
	g, err := snowflake.New(b.Context(), snowflake.Config{Layout: layout, Worker: workerid.Static(2), Coarse: true})
	if err != nil {
		b.Fatal(err)
	}
	return closing(b, g)
}

func newCached(b *testing.B, layout keygen.Layout) *cached.Generator {
	b.Helper()
	g, err := cached.New(b.Context(), cached.Config{Layout: layout, Worker: unused{}})
	if err != nil {
		b.Fatal(err)
	}
	return closing(b, g)
}

// unused is a worker id that nobody had before, as WORKER_NODE gives them.
type unused struct{}

func (unused) Acquire(context.Context, keygen.Layout) (keygen.Lease, error) { return unused{}, nil }
func (unused) ID() int64                                                    { return 1 }
func (unused) NotBefore() int64                                             { return 0 }

func closing[G interface{ Close() error }](b *testing.B, g G) G {
	b.Cleanup(func() {
		if err := g.Close(); err != nil {
			b.Error(err)
		}
	})
	return g
}

var ours = []subject{
	{"segment", func(b *testing.B) func(int) {
		g, ctx := newSegment(b, &counter{}, million), b.Context()
		return func(n int) {
			var mark int64
			for range n {
				id, err := g.Next(ctx)
				if err != nil {
					b.Error(err)
					return
				}
				mark ^= id
			}
			kept.Store(mark)
		}
	}},
	{"segment interface", func(b *testing.B) func(int) { return fromInterface(b, newSegment(b, &counter{}, million)) }},
	{"segment Fill(64)", func(b *testing.B) func(int) { return inBatches(b, newSegment(b, &counter{}, million)) }},
	{"segment striped", func(b *testing.B) func(int) {
		striped, err := keygen.Striped[int64](newSegment(b, &counter{}, million), 256)
		if err != nil {
			b.Fatal(err)
		}
		return fromInterface(b, striped)
	}},
	{"cached", func(b *testing.B) func(int) {
		g, ctx := newCached(b, wide), b.Context()
		return func(n int) {
			var mark int64
			for range n {
				id, err := g.Next(ctx)
				if err != nil {
					b.Error(err)
					return
				}
				mark ^= id
			}
			kept.Store(mark)
		}
	}},
	{"cached interface", func(b *testing.B) func(int) { return fromInterface(b, newCached(b, wide)) }},
	{"cached Fill(64)", func(b *testing.B) func(int) { return inBatches(b, newCached(b, wide)) }},
	{"snowflake", func(b *testing.B) func(int) {
		g, ctx := newSnowflake(b, wide), b.Context()
		return func(n int) {
			var mark int64
			for range n {
				id, err := g.Next(ctx)
				if err != nil {
					b.Error(err)
					return
				}
				mark ^= id
			}
			kept.Store(mark)
		}
	}},
	{"snowflake coarse", func(b *testing.B) func(int) {
		g, ctx := newCoarse(b, wide), b.Context()
		return func(n int) {
			var mark int64
			for range n {
				id, err := g.Next(ctx)
				if err != nil {
					b.Error(err)
					return
				}
				mark ^= id
			}
			kept.Store(mark)
		}
	}},
	{"snowflake coarse interface", func(b *testing.B) func(int) { return fromInterface(b, newCoarse(b, wide)) }},
	{"snowflake interface", func(b *testing.B) func(int) { return fromInterface(b, newSnowflake(b, wide)) }},
	{"snowflake Fill(64)", func(b *testing.B) func(int) { return inBatches(b, newSnowflake(b, wide)) }},
	{"snowflake Twitter layout", func(b *testing.B) func(int) { return fromInterface(b, newSnowflake(b, keygen.Twitter())) }},
}
