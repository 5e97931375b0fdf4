// SPDX-License-Identifier: Apache-2.0

package uuid_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	google "github.com/google/uuid"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/uuid"
)

var generators = map[int]func() keygen.Generator[[16]byte]{1: uuid.V1, 4: uuid.V4, 6: uuid.V6, 7: uuid.V7}

func TestConformance(t *testing.T) {
	for version, open := range generators {
		t.Run(string(rune('0'+version)), func(t *testing.T) {
			keygentest.Keys(t, func(*testing.T) keygen.Generator[[16]byte] { return open() })
		})
	}
	t.Run("char(36)", func(t *testing.T) {
		keygentest.Keys(t, func(*testing.T) keygen.Generator[string] { return uuid.DashedKeys(uuid.V7()) })
	})
	t.Run("char(32)", func(t *testing.T) {
		keygentest.Keys(t, func(*testing.T) keygen.Generator[string] { return uuid.HexKeys(uuid.V1()) })
	})
}

func TestEachVersionIsMarkedAsWhatItIs(t *testing.T) {
	for version, open := range generators {
		ids := make([][16]byte, 1000)
		if err := keygen.Fill(t.Context(), open(), ids); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if u := google.UUID(id); int(u.Version()) != version || u.Variant() != google.RFC4122 {
				t.Fatalf("%s is no version %d", u, version)
			}
		}
	}
}

// The examples of RFC 9562, appendix A.
const (
	rfcV1 = "c232ab00-9414-11ec-b3c8-9f6bdeced846"
	rfcV3 = "5df41881-3aed-3515-88a7-2f4a814cf09e"
	rfcV4 = "919108f7-52d1-4320-9bac-f847db4148a8"
	rfcV5 = "2ed6657d-e927-568b-95e1-2665a8aea6a2"
	rfcV6 = "1ec9414c-232a-6b00-b3c8-9f6bdeced846"
	rfcV7 = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
)

func TestNamesHaveTheUUIDsOfTheStandard(t *testing.T) {
	if got := uuid.Dashed(uuid.V3(uuid.DNS(), "www.example.com")); got != rfcV3 {
		t.Errorf("V3: %s, want %s", got, rfcV3)
	}
	if got := uuid.Dashed(uuid.V5(uuid.DNS(), "www.example.com")); got != rfcV5 {
		t.Errorf("V5: %s, want %s", got, rfcV5)
	}
	seen := map[[16]byte]bool{}
	for _, space := range [][16]byte{uuid.DNS(), uuid.URL(), uuid.OID(), uuid.X500(), parse(t, rfcV4)} {
		seen[uuid.V3(space, "a")], seen[uuid.V5(space, "a")], seen[uuid.V5(space, "b")] = true, true, true
	}
	if len(seen) != 15 {
		t.Errorf("15 names have %d UUIDs", len(seen))
	}
}

func TestTheTimeOfAUUIDIsThatOfTheStandard(t *testing.T) {
	for _, text := range []string{rfcV1, rfcV6, rfcV7} {
		want := time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC)
		if got, err := uuid.Time(parse(t, text)); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{rfcV3, rfcV4, rfcV5, "000003e8-cbb9-21ea-b201-00045a86c8a1", "00000000-0000-0000-0000-000000000000", "017f22e2-79b0-7cc3-d8c4-dc0c0c07398f"} {
		if got, err := uuid.Time(parse(t, text)); !errors.Is(err, keygen.ErrLayout) || !got.IsZero() {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestTheTimeOfANewUUIDIsNow(t *testing.T) {
	for _, version := range []int{1, 6, 7} {
		begin := time.Now().Truncate(time.Millisecond)
		id := next(t, generators[version]())
		got, err := uuid.Time(id)
		if ahead := got.Sub(begin); err != nil || ahead < 0 || time.Since(got) < -time.Second {
			t.Errorf("V%d: %v, %v; it was made after %v", version, got, err, begin)
		}
	}
}

func TestV6IsV1WithTheTimesHighBitsFirst(t *testing.T) {
	if got := uuid.Dashed(uuid.HighFirst(parse(t, rfcV1))); got != rfcV6 {
		t.Errorf("%s, want %s", got, rfcV6)
	}
}

// The library's own V6 repeats two in three of these.
func TestV6sAMicrosecondApartAreNotTheSame(t *testing.T) {
	g := uuid.V6()
	seen := map[[16]byte]bool{}
	at := time.Now()
	for range 50_000 {
		for at = at.Add(time.Microsecond); time.Now().Before(at); { // no sleep is as short
		}
		id := next(t, g)
		if seen[id] {
			t.Fatalf("%x came twice", id)
		}
		seen[id] = true
	}
}

func TestV6sOfDifferentTimesRise(t *testing.T) {
	g := uuid.V6()
	last := next(t, g)
	for range 20_000 {
		id := next(t, g)
		if bytes.Compare(id[:8], last[:8]) < 0 {
			t.Fatalf("%x came after %x", id, last)
		}
		last = id
	}
}

func TestV7sRiseStrictlyInAProcess(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			g := uuid.V7()
			var last [16]byte
			for range 20_000 {
				id := next(t, g)
				if bytes.Compare(id[:], last[:]) <= 0 {
					t.Errorf("%x came after %x", id, last)
					return
				}
				last = id
			}
		})
	}
	wg.Wait()
	ids := make([][16]byte, 20_000)
	if err := keygen.Fill(t.Context(), uuid.V7(), ids); err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(ids, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) }) {
		t.Error("the ids of Fill do not rise")
	}
}

// A busy process uses up the 14-bit counter while a clock that was set back
// catches up; here the counter stands still altogether.
func TestAClockSetBackRepeatsNoV1(t *testing.T) {
	ticks := uint64(0)
	g := uuid.V1Of(func() (google.UUID, error) {
		ticks++
		t := ticks % 1000 // every 100 µs the clock is set back by 100 µs
		return google.UUID{0: byte(t >> 24), 1: byte(t >> 16), 2: byte(t >> 8), 3: byte(t), 6: 0x10, 8: 0x80}, nil
	})
	seen := map[[16]byte]bool{}
	for range 20_000 {
		id := next(t, g)
		if seen[id] {
			t.Fatalf("%x came twice", id)
		}
		seen[id] = true
	}
}

// The clocks of some systems have ticks of 15 ms, and that of testing/synctest stands still.
func TestAClockThatStandsStillRepeatsNoV1AndNoV6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen, v1, v6 := map[[16]byte]bool{}, uuid.V1(), uuid.V6()
		for range 50_000 {
			for _, g := range []keygen.Generator[[16]byte]{v1, v6} {
				id := next(t, g)
				if seen[id] {
					t.Fatalf("%x came twice, after %d", id, len(seen))
				}
				seen[id] = true
			}
		}
	})
}

func TestTheNodeOfAV1IsRandomAndNoNetworkAddress(t *testing.T) {
	a, b := next(t, uuid.V1()), next(t, uuid.V1())
	if bytes.Equal(a[10:], b[10:]) {
		t.Errorf("two generators share the node %x", a[10:])
	}
	if a[10]&1 == 0 || b[10]&1 == 0 {
		t.Errorf("the nodes %x and %x look like network addresses", a[10:], b[10:])
	}
}

func TestAFailureToDrawIsAnError(t *testing.T) {
	broken := errors.New("no entropy")
	g := uuid.V1Of(func() (google.UUID, error) { return google.UUID{1: 1}, broken })
	if id, err := g.Next(t.Context()); !errors.Is(err, broken) || id != [16]byte{} {
		t.Errorf("%x, %v", id, err)
	}
}

// Why there is no generator of V2.
func TestOneNumberHasOneV2ForMinutes(t *testing.T) {
	seen := map[[16]byte]bool{}
	for range 10_000 {
		id, err := uuid.V2(uuid.Person, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if u := google.UUID(id); u.Version() != 2 || u.ID() != 1000 || u.Domain() != google.Person {
			t.Fatalf("%s is not the V2 of user 1000", u)
		}
		seen[id] = true
	}
	if len(seen) > 2*64 { // of this and, at most, the next seven minutes
		t.Errorf("10,000 calls gave %d UUIDs, above 64: a generator could be made of this after all", len(seen))
	}
}

func TestTextsAreReadStrictly(t *testing.T) {
	want := parse(t, rfcV7)
	for _, text := range []string{rfcV7, strings.ToUpper(rfcV7), strings.ReplaceAll(rfcV7, "-", "")} {
		if got, err := uuid.Parse(text); err != nil || got != want {
			t.Errorf("%s: %x, %v", text, got, err)
		}
	}
	if got := uuid.Hex(want); got != strings.ReplaceAll(rfcV7, "-", "") {
		t.Errorf("32 digits: %s", got)
	}
	for _, text := range []string{
		"", "017f22e2", "{" + rfcV7 + "}", "urn:uuid:" + rfcV7, rfcV7 + " ", rfcV7[:35], rfcV7[:35] + "g", "g" + strings.Repeat("0", 31),
		strings.Replace(rfcV7, "-", "_", 1), "017f22e2-79b07-cc3-98c4-dc0c0c07398f", strings.Repeat("é", 18),
	} {
		if got, err := uuid.Parse(text); !errors.Is(err, keygen.ErrSyntax) || got != [16]byte{} {
			t.Errorf("%q was read as %x, %v", text, got, err)
		}
	}
}

func FuzzParseReadsOnlyUUIDs(f *testing.F) {
	f.Add(rfcV1)
	f.Add(strings.ReplaceAll(rfcV7, "-", ""))
	f.Add("{" + rfcV7 + "}")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := uuid.Parse(text)
		if err != nil {
			if !errors.Is(err, keygen.ErrSyntax) || id != [16]byte{} {
				t.Errorf("%q: %x, %v", text, id, err)
			}
			return
		}
		if low := strings.ToLower(text); low != uuid.Dashed(id) && low != uuid.Hex(id) {
			t.Errorf("%q was read as %s", text, uuid.Dashed(id))
		}
		if at, err := uuid.Time(id); err == nil && (at.Year() < 1582 || at.Year() > 10_895) {
			t.Errorf("%q is of %v", text, at)
		}
	})
}

func FuzzScanReadsOnlyUUIDs(f *testing.F) {
	f.Add([]byte(rfcV1))
	f.Add([]byte("0123456789abcdef"))
	f.Fuzz(func(t *testing.T, column []byte) {
		var b uuid.Binary
		if err := b.Scan(column); err != nil {
			if !errors.Is(err, keygen.ErrSyntax) || b != (uuid.Binary{}) {
				t.Errorf("%q: %s, %v", column, b, err)
			}
			return
		}
		if low := strings.ToLower(string(column)); string(column) != string(b[:]) && low != b.String() && low != uuid.Hex(b) {
			t.Errorf("%q was read as %s", column, b)
		}
	})
}

func parse(t testing.TB, text string) [16]byte {
	t.Helper()
	id, err := uuid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func next(t testing.TB, g keygen.Generator[[16]byte]) [16]byte {
	id, err := g.Next(context.Background())
	if err != nil {
		t.Error(err)
	}
	return id
}

func BenchmarkNext(b *testing.B) {
	for name, g := range map[string]keygen.Generator[[16]byte]{"v1": uuid.V1(), "v4": uuid.V4(), "v6": uuid.V6(), "v7": uuid.V7()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				next(b, g)
			}
		})
		b.Run(name+" fill", func(b *testing.B) {
			b.ReportAllocs()
			dst := make([][16]byte, 64)
			for b.Loop() {
				if err := keygen.Fill(b.Context(), g, dst); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(math.Round(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64), "ns/id")
		})
	}
}
