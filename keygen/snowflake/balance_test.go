// SPDX-License-Identifier: Apache-2.0

package snowflake_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/internal/testkit/evenness"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

// chi2 draws ids at a rate on a virtual clock and returns chi² per degree of
// freedom of id % 1024: about 1 for ids drawn by lot, less for ids spread more
// evenly than that.
func chi2(t *testing.T, sequence snowflake.Sequence, perMillisecond float64) float64 {
	t.Helper()
	const ids, slots = 200_000, 1024
	clock := newHandClock(noon)
	g := open(t, snowflake.Config{Worker: fresh(1), Now: clock.Now, Sequence: sequence})
	r := rand.New(rand.NewPCG(1, 2))
	var hits [slots]int
	for range ids {
		// Arrivals as they come from independent users.
		clock.Advance(time.Duration(r.ExpFloat64() / perMillisecond * float64(time.Millisecond)))
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		hits[id%slots]++
	}
	return evenness.Of(hits[:])
}

func TestIDsAreEvenOverTheShardsAtAnyRate(t *testing.T) {
	for _, rate := range []float64{0.1, 1, 50} {
		t.Run(fmt.Sprint(rate, " per ms"), func(t *testing.T) {
			if x := chi2(t, snowflake.Carry, rate); x > 1.2 {
				t.Errorf("chi² per degree of freedom is %.3f, want at most 1.2", x)
			}
		})
	}
}

// oneIDEach starts processes of which each issues one id, and counts its
// remainders.
func oneIDEach(t *testing.T, cfg snowflake.Config, shards int64) []int {
	t.Helper()
	const starts = 10_000
	hits := make([]int, shards)
	for range starts {
		g, err := snowflake.New(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		hits[id%shards]++
		time.Sleep(5 * time.Millisecond)
	}
	return hits
}

func TestProcessesThatIssueOneIDEachFillAllShardsEvenly(t *testing.T) {
	assigners := map[string]func() keygen.Assigner{
		"static": func() keygen.Assigner { return workerid.Static(3) },
		"leased": func() keygen.Assigner { return leased(t, keygentest.NewMemoryLedger(time.Now)) },
	}
	for name, worker := range assigners {
		for _, shards := range []int64{16, 1024} {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(12, uint64(shards)))
				cfg := snowflake.Config{Layout: millennium, Worker: worker()}
				if x := evenness.Of(oneIDEach(t, snowflake.Drawing(cfg, r.Int64N), shards)); x > 1.2 {
					t.Errorf("%s, %d shards: chi² per degree of freedom is %.3f, want at most 1.2", name, shards, x)
				}
			})
		}
	}
}

// The control: where the worker stands in the low bits, and where each start begins
// with 0.
func TestTheCountOfOneIDEachSeesAnUnevenStartAndAWorkerInTheLowBits(t *testing.T) {
	low := keygen.Sonyflake()
	low.Epoch = millennium.Epoch
	for name, cfg := range map[string]snowflake.Config{
		"from the first":       fromTheFirst(snowflake.Config{Layout: millennium}),
		"worker in the lowest": {Layout: low},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg.Worker = workerid.Static(3)
			if x := evenness.Of(oneIDEach(t, cfg, 16)); x < 100 {
				t.Errorf("%s: chi² per degree of freedom is %.1f", name, x)
			}
		})
	}
}

// Each bucket has a sequence of its own.
func TestTheBucketsOfAGeneLayoutStartApart(t *testing.T) {
	layout := keygen.Layout{Epoch: noon.AddDate(-1, 0, 0), Unit: time.Millisecond, Fields: []keygen.Field{
		{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 2}, {Kind: keygen.Sequence, Bits: 10}, {Kind: keygen.Bucket, Bits: 10},
	}}
	r := rand.New(rand.NewPCG(1, 2))
	hits := make([]int, 1024)
	for range 10 {
		g := open(t, snowflake.Drawing(snowflake.Config{Layout: layout, Worker: fresh(1), Now: newHandClock(noon).Now}, r.Int64N))
		for bucket := range int64(1024) {
			id, err := g.NextIn(t.Context(), bucket)
			if err != nil {
				t.Fatal(err)
			}
			hits[id>>10&1023]++
		}
	}
	if x := evenness.Of(hits); x > 1.2 {
		t.Errorf("chi² per degree of freedom is %.3f, want at most 1.2", x)
	}
}

// The bits below the sequence are the same for all ids of a process. The comments of the
// presets say what that means for them.
func TestTheRemaindersOfOneProcessAreEvenUpToTheSequenceThatIsLowest(t *testing.T) {
	for name, layout := range keygen.Presets() {
		if name == "baidu" { // has expired
			continue
		}
		shards := int64(1) << layout.Bits(keygen.Sequence)
		if layout.Shift(keygen.Sequence) > 0 {
			shards = 1 << layout.Shift(keygen.Sequence)
		}
		shards = min(shards, 1<<16) // what is even over more is over this many
		clock := newHandClock(noon)
		g := open(t, snowflake.Config{Layout: layout, Worker: fresh(1), Now: clock.Now})
		hits := map[int64]bool{}
		for range 2 * shards {
			clock.Advance(layout.Unit)
			id, err := g.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			hits[id%shards] = true
		}
		want := shards
		if layout.Shift(keygen.Sequence) > 0 {
			want = 1
		}
		if int64(len(hits)) != want {
			t.Errorf("%s: ids fall on %d of %d, want %d", name, len(hits), shards, want)
		}
	}
}

// The control: ways to start a tick that are known to fill some shards more.
func TestASequenceThatStartsAnewInEachTickIsUneven(t *testing.T) {
	for name, sequence := range map[string]snowflake.Sequence{"from zero": snowflake.FromZero, "scattered": snowflake.Scatter} {
		if x := chi2(t, sequence, 1); x < 100 {
			t.Errorf("%s: chi² per degree of freedom is %.1f; the test would not notice", name, x)
		} else {
			t.Logf("%s: %.0f", name, x)
		}
	}
}

func TestFromZeroAndScatterStartWhereTheySay(t *testing.T) {
	clock := newHandClock(noon)
	for sequence, most := range map[snowflake.Sequence]int64{snowflake.FromZero: 0, snowflake.Scatter: 409} {
		g := open(t, snowflake.Config{Worker: fresh(1), Now: clock.Now, Sequence: sequence})
		for range 1000 {
			clock.Advance(3 * time.Millisecond)
			first, second := next(t, g), next(t, g)
			if first.Sequence > most || second.Sequence != first.Sequence+1 {
				t.Fatalf("a tick starts with %d, %d", first.Sequence, second.Sequence)
			}
		}
	}
}
