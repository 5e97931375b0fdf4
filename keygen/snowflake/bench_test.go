// SPDX-License-Identifier: Apache-2.0

package snowflake_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
)

// unlimited has so many ids in a tick that the layout is no limit.
var unlimited = keygen.Layout{
	Epoch: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond,
	Fields: []keygen.Field{{Kind: keygen.Time, Bits: 38}, {Kind: keygen.Worker, Bits: 3}, {Kind: keygen.Sequence, Bits: 22}},
}

func BenchmarkNext(b *testing.B) {
	g := open(b, snowflake.Config{Layout: unlimited, Worker: fresh(1)})
	b.Run("time.Since", func(b *testing.B) {
		start := time.Now()
		for b.Loop() {
			_ = time.Since(start)
		}
	})
	b.Run("add", func(b *testing.B) {
		var n atomic.Int64
		for b.Loop() {
			n.Add(1)
		}
	})
	coarse := open(b, snowflake.Config{Layout: unlimited, Worker: fresh(2), Coarse: true})
	b.Run("coarse", func(b *testing.B) {
		b.ReportAllocs()
		ctx := b.Context()
		for b.Loop() {
			if _, err := coarse.Next(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("concrete", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.Next(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := g.Next(b.Context()); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("fill64", func(b *testing.B) {
		b.ReportAllocs()
		dst := make([]int64, 64)
		for b.Loop() {
			if err := g.Fill(b.Context(), dst); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/id")
	})
}
