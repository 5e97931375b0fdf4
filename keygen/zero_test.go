// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
)

func TestAZeroFormatWritesDecimalDigits(t *testing.T) {
	var f keygen.Format
	text, err := f.Text(42)
	if err != nil || text != "42" {
		t.Errorf("%q, %v", text, err)
	}
	if id, err := f.Parse("42"); err != nil || id != 42 {
		t.Errorf("%d, %v", id, err)
	}
	for _, wrong := range []string{"", "042", "0", "-1", "x"} {
		if id, err := f.Parse(wrong); !errors.Is(err, keygen.ErrSyntax) {
			t.Errorf("%q: %d, %v", wrong, id, err)
		}
	}
	if text, err := f.Text(0); !errors.Is(err, keygen.ErrRange) {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := f.Generator(keygen.Counting(7, 1)).Next(t.Context()); err != nil || text != "7" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestAZeroEncodingWritesDecimalDigits(t *testing.T) {
	var e keygen.Encoding
	if id, err := e.Decode(e.Encode(1234567890123)); err != nil || id != 1234567890123 || e.Encode(id) != "1234567890123" || e.Width(63) != 19 {
		t.Errorf("%d, %v, %s, %d", id, err, e.Encode(id), e.Width(63))
	}
	f, err := keygen.NewFormat(keygen.FormatConfig{Prefix: "o", Encoding: &e, Width: 3})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := f.Text(7); err != nil || text != "o007" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestAZeroScramblerIsRefused(t *testing.T) {
	var s keygen.Scrambler
	for _, f := range []func(int64) (int64, error){s.Scramble, s.Unscramble} {
		for _, id := range []int64{-1, 0, 1, 1 << 62} {
			if got, err := f(id); !errors.Is(err, keygen.ErrRange) {
				t.Errorf("%d: %d, %v", id, got, err)
			}
		}
	}
	if _, err := keygen.NewFormat(keygen.FormatConfig{Scrambler: &s}); err == nil {
		t.Error("a format took a scrambler without a key")
	}
}

// Layouts come from files and flags: those that Validate refuses must not panic.
func TestNoMethodOfAnInvalidLayoutPanics(t *testing.T) {
	now := time.Now()
	for name, l := range map[string]keygen.Layout{
		"zero":          {},
		"negative bits": {Epoch: now, Unit: time.Second, Fields: []keygen.Field{{Kind: keygen.Time, Bits: -5}, {Kind: keygen.Sequence, Bits: -9}}},
		"many bits":     {Epoch: now, Unit: time.Second, Fields: []keygen.Field{{Kind: keygen.Time, Bits: 400}, {Kind: keygen.Worker, Bits: 99}, {Kind: keygen.Sequence, Bits: 64}}},
		"negative unit": {Epoch: now, Unit: -time.Second, Fields: []keygen.Field{{Kind: keygen.Time, Bits: 30}, {Kind: keygen.Sequence, Bits: 9}}},
		"unknown kind":  {Epoch: now, Unit: 1, Fields: []keygen.Field{{Kind: 99, Bits: 3}, {Kind: -1, Bits: -3}}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := l.Validate(); !errors.Is(err, keygen.ErrLayout) {
				t.Fatalf("it is valid: %v", err)
			}
			for k := keygen.Kind(-1); k < 7; k++ {
				_, _, _ = l.Bits(k), l.Shift(k), k.String()
			}
			var parts keygen.Parts
			l.SplitWorker(&parts, 1<<40)
			_, _, _, _ = l.Tick(now), l.At(-1<<63), l.At(1<<63-1), l.Expires()
			_, _ = l.WorkerBits(), l.Capacity()
			if id, err := l.Compose(keygen.Parts{Time: now}); !errors.Is(err, keygen.ErrLayout) {
				t.Errorf("Compose: %d, %v", id, err)
			}
			if _, err := l.Parse(1); !errors.Is(err, keygen.ErrLayout) {
				t.Errorf("Parse: %v", err)
			}
			if _, _, err := l.Range(now, now.Add(time.Hour)); !errors.Is(err, keygen.ErrLayout) {
				t.Errorf("Range: %v", err)
			}
		})
	}
}

func TestGeneratorsMadeOfNothingRefuseEveryKey(t *testing.T) {
	refuses := func(name string, g keygen.Generator[string]) {
		if key, err := g.Next(t.Context()); !errors.Is(err, keygen.ErrUnknownGenerator) {
			t.Errorf("%s: Next: %q, %v", name, key, err)
		}
		if err := keygen.Fill(t.Context(), g, make([]string, 3)); !errors.Is(err, keygen.ErrUnknownGenerator) {
			t.Errorf("%s: Fill: %v", name, err)
		}
	}
	refuses("Func", keygen.Func[string](nil))
	text := func(int64) (string, error) { return "x", nil }
	refuses("Map of nothing", keygen.Map[int64](nil, text))
	refuses("Map of a nil pointer", keygen.Map[int64]((*pointer)(nil), text))
	refuses("Map by nothing", keygen.Map[int64, string](keygen.Counting(1, 1), nil))
	refuses("Format", new(keygen.Format).Generator(nil))
	if err := keygen.Fill[string](t.Context(), nil, make([]string, 1)); !errors.Is(err, keygen.ErrUnknownGenerator) {
		t.Errorf("Fill from nothing: %v", err)
	}
}

// pointer is a generator that a nil pointer cannot be.
type pointer struct{ n int64 }

func (p *pointer) Next(context.Context) (int64, error) { p.n++; return p.n, nil }

func TestTheOtherZeroValuesAreHarmless(t *testing.T) {
	var set keygen.Set
	for _, name := range []string{"", "order"} {
		_, ints := set.Lookup(name)
		_, texts := set.LookupText(name)
		_, binaries := set.LookupBinary(name)
		for _, err := range []error{ints, texts, binaries} {
			if !errors.Is(err, keygen.ErrUnknownGenerator) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	if err := set.Check(); err != nil {
		t.Error(err)
	}
	if last := (keygen.Span{}).Last(); last != 0 {
		t.Error(last)
	}
	if text := (&keygen.SetupError{}).Error(); text == "" {
		t.Error("a SetupError without a text")
	}
}
