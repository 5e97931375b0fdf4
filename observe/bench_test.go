// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/sharding/shardsql"
)

// endless is a source of one segment that is never used up.
type endless struct{}

func (endless) Reserve(context.Context, int64) (keygen.Span, error) {
	return keygen.Span{First: 1, Count: 1 << 60, Step: 1}, nil
}

// An id costs the same whether its generator is scraped, a hundred times as often as by Prometheus,
// or not.
func BenchmarkIDs(b *testing.B) {
	for _, c := range []struct {
		name  string
		every time.Duration
	}{{"alone", 0}, {"scraped every 100 ms", 100 * time.Millisecond}} {
		b.Run(c.name, func(b *testing.B) {
			g, err := segment.New(b.Context(), segment.Config{Source: endless{}})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = g.Close() }()
			s, err := observe.New(observe.Config{Generators: keygen.Set{Default: g}})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			var scraper sync.WaitGroup
			defer scraper.Wait()
			defer cancel()
			if c.every > 0 {
				scraper.Go(func() { scrape(ctx, s, c.every) })
			}
			for b.Loop() {
				if _, err := g.Next(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func scrape(ctx context.Context, s *observe.Service, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = observe.WriteText(io.Discard, s.Gather())
		case <-ctx.Done():
			return
		}
	}
}

func BenchmarkStatement(b *testing.B) {
	var statements observe.Statements
	of := shardsql.Statement{Table: "orders", Kind: shardsql.One, Rows: 1, Took: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		statements.Observe(b.Context(), of)
	}
}
