// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

func TestLookupIsTheMapItWasMadeOf(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 7, 64, 1000} {
		slots := map[int64]Slot{}
		for i := range n {
			key := []int64{int64(i), -int64(i), math.MinInt64 + int64(i), math.MaxInt64 - int64(i), rand.Int64(), int64(i) << 40}[i%6]
			slots[key] = Slot(i % MaxSlots)
		}
		l := newLookup(slots)
		for key, want := range slots {
			if got, ok := l.of(key); !ok || got != want {
				t.Fatalf("%d of %d: slot %d (%v), want %d", key, n, got, ok, want)
			}
		}
		for range 1000 {
			key := rand.Int64N(4096) - 2048
			if want, known := slots[key]; known != func() bool { _, ok := l.of(key); return ok }() {
				t.Fatalf("%d of %d is known: %v (slot %d)", key, n, known, want)
			}
		}
		if again := newLookup(slots); !reflect.DeepEqual(again, l) {
			t.Errorf("%d slots make two tables", n)
		}
	}
}

func TestAFullLookupEndsItsSearch(t *testing.T) {
	slots := map[int64]Slot{}
	for i := range int64(MaxSlots) {
		slots[i*i*i] = Slot(i)
	}
	l := newLookup(slots)
	if len(l.places) < 2*len(slots) {
		t.Errorf("%d places for %d keys", len(l.places), len(slots))
	}
	if _, ok := l.of(5); ok {
		t.Error("5 is no cube")
	}
}
