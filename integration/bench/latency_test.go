// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
)

// slow is a source that answers after a while, as a database does.
type slow struct {
	counter
	latency time.Duration
}

func (s *slow) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	timer := time.NewTimer(s.latency)
	defer timer.Stop()
	select {
	case <-timer.C:
		return s.counter.Reserve(ctx, n)
	case <-ctx.Done():
		return keygen.Span{}, ctx.Err()
	}
}

const usualLatency = 5 * time.Millisecond

// BenchmarkLatency measures each call by itself. A call is timed by one reading
// of the clock, which is part of every result; "time.Since" is that reading and
// nothing else.
func BenchmarkLatency(b *testing.B) {
	begin := time.Now()
	for _, s := range []struct {
		name  string
		start func(b *testing.B) func()
	}{
		{"time.Since", func(*testing.B) func() { return func() {} }},
		{"mutex counter", func(*testing.B) func() {
			var mu sync.Mutex
			var counter int64
			return func() {
				mu.Lock()
				counter++
				mu.Unlock()
			}
		}},
		{"segment", func(b *testing.B) func() { return one(b, newSegment(b, &slow{latency: usualLatency}, million)) }},
		{"cached", func(b *testing.B) func() { return one(b, newCached(b, wide)) }},
		{"snowflake", func(b *testing.B) func() { return one(b, newSnowflake(b, wide)) }},
		{"bwmarrin/snowflake wide", func(b *testing.B) func() {
			node := newBwmarrin(b, 21)
			return func() { node.Generate() }
		}},
		{"google/uuid v7", func(b *testing.B) func() {
			loop := peers[slices.IndexFunc(peers, func(s subject) bool { return s.name == "google/uuid v7" })].start(b)
			return func() { loop(1) }
		}},
	} {
		b.Run(s.name, func(b *testing.B) {
			call := s.start(b)
			var h histogram
			b.ResetTimer()
			last := time.Since(begin)
			for range b.N {
				call()
				now := time.Since(begin)
				h.add(now - last)
				last = now
			}
			b.StopTimer()
			h.report(b)
		})
	}
}

// one returns a function that takes one id.
func one(b *testing.B, g keygen.Generator[int64]) func() {
	ctx := b.Context()
	return func() {
		if _, err := g.Next(ctx); err != nil {
			b.Error(err)
		}
	}
}

// histogram counts durations to the nanosecond below its length; longer ones
// are kept as they are.
type histogram struct {
	short [1 << 14]int
	long  []time.Duration
	n     int
}

func (h *histogram) add(d time.Duration) {
	h.n++
	if d < time.Duration(len(h.short)) {
		h.short[d]++
		return
	}
	h.long = append(h.long, d)
}

// quantile returns the duration that the share q of all calls did not exceed.
func (h *histogram) quantile(q float64) time.Duration {
	rank := int(q * float64(h.n-1))
	for d, n := range h.short {
		if rank < n {
			return time.Duration(d)
		}
		rank -= n
	}
	slices.Sort(h.long)
	return h.long[rank]
}

func (h *histogram) report(b *testing.B) {
	for _, q := range []struct {
		unit  string
		share float64
	}{{"p50-ns", 0.5}, {"p99-ns", 0.99}, {"p99.99-ns", 0.9999}, {"max-ns", 1}} {
		b.ReportMetric(float64(h.quantile(q.share)), q.unit)
	}
}

// BenchmarkSlowSource asks for ids faster than a slow database can give them,
// in segments of a thousand, for two seconds. A generator that returns an error
// because a reservation is under way, with the database in good health, does so
// here. (Two seconds are more than a benchmark is given, so it runs once.)
func BenchmarkSlowSource(b *testing.B) {
	for _, latency := range []time.Duration{usualLatency, 30 * time.Millisecond} {
		b.Run("segment/latency="+latency.String(), func(b *testing.B) {
			g := newSegment(b, &slow{latency: latency}, 1000)
			var errs, ids atomic.Int64
			var all sync.WaitGroup
			b.ResetTimer()
			for range 8 {
				all.Go(func() {
					for begin := time.Now(); time.Since(begin) < 2*time.Second; {
						if _, err := g.Next(b.Context()); err != nil {
							errs.Add(1)
						}
						ids.Add(1)
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(errs.Load()), "errors")
			b.ReportMetric(float64(ids.Load()), "calls")
			b.ReportMetric(0, "ns/op") // of two seconds it says nothing
		})
	}
}
