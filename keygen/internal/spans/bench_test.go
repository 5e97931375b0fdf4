// SPDX-License-Identifier: Apache-2.0

package spans_test

import (
	"sync/atomic"
	"testing"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/internal/spans"
)

func Benchmark(b *testing.B) {
	buf := spans.New(double(&counter{next: 1}, 1<<20))
	defer func() { _ = buf.Close() }()
	ctx := b.Context()
	b.Run("add", func(b *testing.B) {
		var n atomic.Int64
		for b.Loop() {
			n.Add(1)
		}
	})
	b.Run("next", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := buf.Next(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("interface", func(b *testing.B) {
		b.ReportAllocs()
		var g keygen.Generator[int64] = buf
		for b.Loop() {
			if _, err := g.Next(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("fill64", func(b *testing.B) {
		b.ReportAllocs()
		dst := make([]int64, 64)
		for b.Loop() {
			if err := buf.Fill(ctx, dst); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/id")
	})
	b.Run("parallel add", func(b *testing.B) {
		var n atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				n.Add(1)
			}
		})
	})
	b.Run("parallel next", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := buf.Next(ctx); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
