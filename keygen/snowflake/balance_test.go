package snowflake_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen/snowflake"
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
	var hits [slots]float64
	for range ids {
		// Arrivals as they come from independent users.
		clock.Advance(time.Duration(r.ExpFloat64() / perMillisecond * float64(time.Millisecond)))
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		hits[id%slots]++
	}
	const want = float64(ids) / slots
	sum := 0.0
	for _, n := range hits {
		sum += (n - want) * (n - want) / want
	}
	return sum / (slots - 1)
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
