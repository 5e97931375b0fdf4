// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/sony/sonyflake"
)

// newBwmarrin makes a node whose sequence has the given width. The widths are
// variables of its package, which a node reads when it is made.
func newBwmarrin(b *testing.B, stepBits uint8) *bwmarrin.Node {
	b.Helper()
	node, step := bwmarrin.NodeBits, bwmarrin.StepBits
	defer func() { bwmarrin.NodeBits, bwmarrin.StepBits = node, step }() //nolint:reassign // the only way to set them
	bwmarrin.NodeBits, bwmarrin.StepBits = 22-stepBits, stepBits         //nolint:reassign // as above
	n, err := bwmarrin.NewNode(1)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func fromBwmarrin(stepBits uint8) func(b *testing.B) func(int) {
	return func(b *testing.B) func(int) {
		node := newBwmarrin(b, stepBits)
		return func(n int) {
			var mark int64
			for range n {
				mark ^= node.Generate().Int64()
			}
			kept.Store(mark)
		}
	}
}

func newSonyflake(b *testing.B) *sonyflake.Sonyflake {
	b.Helper()
	g, err := sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) { return 1, nil }})
	if err != nil {
		b.Fatal(err)
	}
	return g
}

var peers = []subject{
	{"bwmarrin/snowflake wide", fromBwmarrin(21)},
	{"bwmarrin/snowflake", fromBwmarrin(12)},
	{"sony/sonyflake", func(b *testing.B) func(int) {
		g := newSonyflake(b)
		return func(n int) {
			for range n {
				if _, err := g.NextID(); err != nil {
					b.Error(err)
					return
				}
			}
		}
	}},
	{"google/uuid v4", func(b *testing.B) func(int) { return fromUUID(b, uuid.NewRandom) }},
	{"google/uuid v7", func(b *testing.B) func(int) { return fromUUID(b, uuid.NewV7) }},
	{"rs/xid", func(*testing.B) func(int) {
		return func(n int) {
			var mark byte
			for range n {
				id := xid.New()
				mark ^= id[11]
			}
			kept.Store(int64(mark))
		}
	}},
	{"oklog/ulid", func(*testing.B) func(int) {
		return func(n int) {
			var mark byte
			for range n {
				id := ulid.Make()
				mark ^= id[15]
			}
			kept.Store(int64(mark))
		}
	}},
}

func fromUUID(b *testing.B, next func() (uuid.UUID, error)) func(n int) {
	return func(n int) {
		var mark byte
		for range n {
			id, err := next()
			if err != nil {
				b.Error(err)
				return
			}
			mark ^= id[15]
		}
		kept.Store(int64(mark))
	}
}

// BenchmarkWithoutWaits measures the code of a generator whose layout makes it
// sleep nearly all the time: sonyflake has 256 ids in 10 ms. A few are taken at
// the start of a unit, and the clock is stopped until the next one.
func BenchmarkWithoutWaits(b *testing.B) {
	const unit, few = 10 * time.Millisecond, 200
	b.Run("sony/sonyflake/goroutines=1", func(b *testing.B) {
		g := newSonyflake(b)
		var took time.Duration
		for left := b.N; left > 0; left -= few {
			now := time.Now()
			time.Sleep(now.Truncate(unit).Add(unit + unit/10).Sub(now))
			begin := time.Now()
			for range min(left, few) {
				if _, err := g.NextID(); err != nil {
					b.Fatal(err)
				}
			}
			took += time.Since(begin)
		}
		b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/op")
	})
}
