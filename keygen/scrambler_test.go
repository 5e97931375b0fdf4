// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"errors"
	"math"
	"math/bits"
	"testing"

	"github.com/shardid/shardid/keygen"
)

var scramblerKey = [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

func scrambler(t testing.TB, bits int) *keygen.Scrambler {
	t.Helper()
	s, err := keygen.NewScrambler(scramblerKey, bits)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The vectors were computed by another program, from the construction as the
// comment on Scrambler describes it and openssl's AES. They never change: public
// ids stand in bookmarks and invoices.
func TestScrambledIDsNeverChange(t *testing.T) {
	for _, v := range []struct {
		bits       int
		id, public int64
	}{
		{63, 1, 2580515580364039021},
		{63, 2, 2198723198667512062},
		{63, 3, 2658555326499335021},
		{63, 3200169789968523265, 3039974416290262796},
		{63, math.MaxInt64, 4287987508589332070},
		{53, 1, 8495706293564386},
		{53, 2, 5079626762656980},
		{53, 1<<53 - 1, 6150476720530209},
		{40, 1, 470708276993},
		{40, 1_000_000_000_000, 416633320964},
		{10, 1, 967},
		{10, 2, 459},
		{10, 1023, 915},
		{4, 1, 13},
		{4, 15, 3},
		{1, 1, 1},
	} {
		s := scrambler(t, v.bits)
		if got, err := s.Scramble(v.id); err != nil || got != v.public {
			t.Errorf("%d of %d bits became %d, %v; want %d", v.id, v.bits, got, err, v.public)
		}
		if got, err := s.Unscramble(v.public); err != nil || got != v.id {
			t.Errorf("%d of %d bits came from %d, %v; want %d", v.public, v.bits, got, err, v.id)
		}
	}
}

func TestScramblingIsABijectionThatLeavesOutZero(t *testing.T) {
	for width := 1; width <= 16; width++ {
		s := scrambler(t, width)
		end := int64(1) << width
		from := make([]int64, end)
		for id := int64(1); id < end; id++ {
			public, err := s.Scramble(id)
			if err != nil || public < 1 || public >= end {
				t.Fatalf("%d of %d bits became %d, %v", id, width, public, err)
			}
			if from[public] != 0 {
				t.Fatalf("%d and %d of %d bits both became %d", from[public], id, width, public)
			}
			from[public] = id
			if back, err := s.Unscramble(public); err != nil || back != id {
				t.Fatalf("%d of %d bits became %d, which came from %d, %v", id, width, public, back, err)
			}
		}
	}
}

func TestUnscramblingUndoesScramblingAtEveryWidth(t *testing.T) {
	for width := 1; width <= 63; width++ {
		s, last := scrambler(t, width), int64(math.MaxInt64)>>(63-width)
		for _, id := range []int64{1, last/3 + 1, last/2 + 1, last} {
			public, err := s.Scramble(id)
			if err != nil || public < 1 || public > last {
				t.Errorf("%d of %d bits became %d, %v", id, width, public, err)
			}
			if back, err := s.Unscramble(public); err != nil || back != id {
				t.Errorf("%d of %d bits came back as %d, %v", id, width, back, err)
			}
		}
	}
}

func TestIDsOutsideTheWidthAreRefused(t *testing.T) {
	for width, ids := range map[int][]int64{
		63: {0, -1, math.MinInt64},
		53: {0, -1, 1 << 53, math.MaxInt64},
		1:  {0, 2},
	} {
		s := scrambler(t, width)
		for _, id := range ids {
			if got, err := s.Scramble(id); !errors.Is(err, keygen.ErrRange) || got != 0 {
				t.Errorf("%d of %d bits: %d, %v", id, width, got, err)
			}
			if got, err := s.Unscramble(id); !errors.Is(err, keygen.ErrRange) || got != 0 {
				t.Errorf("%d of %d bits back: %d, %v", id, width, got, err)
			}
		}
	}
}

func TestAForgottenKeyAndAnImpossibleWidthAreRefused(t *testing.T) {
	if _, err := keygen.NewScrambler([16]byte{}, 63); err == nil {
		t.Error("a key of zeros was accepted")
	}
	for _, width := range []int{-1, 0, 64} {
		if _, err := keygen.NewScrambler(scramblerKey, width); err == nil {
			t.Errorf("%d bits were accepted", width)
		}
	}
}

// Each bit of an id must turn over each bit of its public form half of the time.
// 4096 tries of a fair coin stray by 0.0078; the largest of 63·63 by 4.2 times
// that at most, but for one test in ten.
func TestEachBitOfAnIDTurnsOverHalfOfTheOthers(t *testing.T) {
	const tries = 4096
	for _, width := range []int{63, 53, 40} {
		s := scrambler(t, width)
		for bit := range width {
			var turned [63]int
			for try := range int64(tries) {
				id := 3<<36 | try*2_654_435_761%(1<<36) // two bits, so that none of its neighbours is 0
				for b, x := 0, scramble(t, s, id)^scramble(t, s, id^1<<bit); b < width; b++ {
					turned[b] += int(x >> b & 1)
				}
			}
			for b, n := range turned[:width] {
				if share := float64(n) / tries; math.Abs(share-0.5) > 0.05 {
					t.Errorf("of %d bits, bit %d turned over bit %d in %.1f %% of the tries", width, bit, b, 100*share)
				}
			}
		}
	}
}

// Neighbours must lie as far apart as two random ids, and in no order: a chart
// of public ids over time says nothing.
func TestNeighboursAreNotNear(t *testing.T) {
	s := scrambler(t, 63)
	const n = 20_000
	var near, risen, ones int
	last := scramble(t, s, 1)
	for id := int64(2); id <= n+1; id++ {
		public := scramble(t, s, id)
		if d := public - last; -1<<55 < d && d < 1<<55 { // random ids: 2·2^55/2^63, 1 in 128
			near++
		}
		if public > last {
			risen++
		}
		ones += bits.OnesCount64(uint64(public ^ last))
		last = public
	}
	within(t, "neighbours nearer than 2^55", float64(near), n/128.0, 6*math.Sqrt(n/128.0))
	within(t, "neighbours that rose", float64(risen), n/2.0, 6*math.Sqrt(n/12.0))
	within(t, "bits that differ between neighbours", float64(ones)/n, 31.5, 6*math.Sqrt(63.0/4/n))
}

// The public forms of the first ids must fall evenly on the residues by which
// somebody may shard or sample them, and on all parts of the range.
func TestPublicIDsAreEven(t *testing.T) {
	s := scrambler(t, 63)
	const n, cells = 1 << 17, 128
	var low, high [cells]float64
	for id := int64(1); id <= n; id++ {
		public := scramble(t, s, id)
		low[public%cells]++
		high[public>>(63-7)]++
	}
	for name, counts := range map[string][cells]float64{"low": low, "high": high} {
		chi := 0.0
		for _, c := range counts {
			chi += (c - n/cells) * (c - n/cells) / (n / cells)
		}
		// 127 degrees of freedom: mean 127, deviation 16.
		within(t, "chi-squared of the "+name+" bits", chi, cells-1, 6*math.Sqrt(2*(cells-1)))
	}
}

func TestAnotherKeyOrWidthIsAnotherBijection(t *testing.T) {
	other := scramblerKey
	other[15] ^= 1
	s, err := keygen.NewScrambler(other, 63)
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for id := int64(1); id <= 1000; id++ {
		if scramble(t, s, id) == scramble(t, scrambler(t, 63), id) {
			same++
		}
		if scramble(t, scrambler(t, 62), id) == scramble(t, scrambler(t, 63), id) {
			same++
		}
	}
	if same > 0 {
		t.Errorf("%d of 2000 ids are public as the same number", same)
	}
}

func TestScramblingAllocatesNothing(t *testing.T) {
	s := scrambler(t, 63)
	if n := testing.AllocsPerRun(1000, func() { scramble(t, s, 42) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAScramblerIsSharedByGoroutines(t *testing.T) {
	s := scrambler(t, 63)
	done := make(chan error)
	for g := range int64(4) {
		go func() {
			for id := g*10_000 + 1; id <= g*10_000+10_000; id++ {
				public, err := s.Scramble(id)
				if back, backErr := s.Unscramble(public); err != nil || backErr != nil || back != id {
					done <- errors.Join(errors.New("another id came back"), err, backErr)
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func FuzzScrambledIDsComeBack(f *testing.F) {
	f.Add(int64(3200169789968523265), 63)
	f.Add(int64(1), 1)
	f.Fuzz(func(t *testing.T, id int64, width int) {
		s, err := keygen.NewScrambler(scramblerKey, width)
		if err != nil {
			return
		}
		public, err := s.Scramble(id)
		if inside := id >= 1 && bits.Len64(uint64(id)) <= width; inside != (err == nil) {
			t.Fatalf("%d of %d bits: %v", id, width, err)
		}
		if err != nil {
			return
		}
		if back, err := s.Unscramble(public); err != nil || back != id || public < 1 {
			t.Errorf("%d of %d bits became %d and came back as %d, %v", id, width, public, back, err)
		}
	})
}

func scramble(t *testing.T, s *keygen.Scrambler, id int64) int64 {
	public, err := s.Scramble(id)
	if err != nil {
		t.Fatal(err)
	}
	return public
}

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s: %.2f, want %.2f ± %.2f", what, got, want, tolerance)
	}
}

func BenchmarkScrambler(b *testing.B) {
	for name, width := range map[string]int{"63 bits": 63, "53 bits": 53} {
		s := scrambler(b, width)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			id := int64(0)
			for b.Loop() {
				id++
				if _, err := s.Scramble(id); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("text", func(b *testing.B) {
		f, err := keygen.NewFormat(keygen.FormatConfig{Prefix: "ord_", Encoding: keygen.Base58, Scrambler: scrambler(b, 63)})
		if err != nil {
			b.Fatal(err)
		}
		g := f.Generator(keygen.Counting(1, 1))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.Next(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
