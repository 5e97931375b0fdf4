// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
)

func TestNumberingsAreBijections(t *testing.T) {
	random := rand.New(rand.NewPCG(rand.Uint64(), 2))
	for _, ids := range []migrate.IDs{
		migrate.KeepIDs(), {}, migrate.Affine(1, 0), migrate.Affine(1, 1_000_000), migrate.Affine(10, 3), migrate.Affine(7, 0),
		migrate.Keyed([16]byte{1}), migrate.Keyed([16]byte{15: 2}),
	} {
		seen := map[int64]int64{}
		for i := range 20_000 {
			old := int64(i)
			if i > 10_000 {
				old = random.Int64N(math.MaxInt64 / 10)
			}
			id, err := ids.New(old)
			if err != nil {
				t.Fatalf("%s: %d: %v", ids, old, err)
			}
			if other, met := seen[id]; met && other != old {
				t.Fatalf("%s: both %d and %d become %d", ids, old, other, id)
			}
			seen[id] = old
			if back, err := ids.Old(id); err != nil || back != old {
				t.Fatalf("%s: %d became %d, which comes back as %d (%v)", ids, old, id, back, err)
			}
		}
	}
}

func TestWhatANumberingCannotDoIsAnError(t *testing.T) {
	ends := migrate.Affine(10, 7)
	last := int64((math.MaxInt64 - 7) / 10)
	if id, err := ends.New(last); err != nil || id != last*10+7 {
		t.Errorf("the last id became %d (%v)", id, err)
	}
	key := migrate.Keyed([16]byte{1})
	for name, try := range map[string]func() (int64, error){
		"overflow":      func() (int64, error) { return ends.New(last + 1) },
		"the largest":   func() (int64, error) { return ends.New(math.MaxInt64) },
		"another class": func() (int64, error) { return ends.Old(16) },
		"0 is not 7":    func() (int64, error) { return ends.Old(7) },
		"below":         func() (int64, error) { return ends.Old(3) },
		"negative":      func() (int64, error) { return ends.New(-1) },
		"map table":     func() (int64, error) { return migrate.MapTable(nil).New(1) },
	} {
		if id, err := try(); !errors.Is(err, migrate.ErrNoID) {
			t.Errorf("%s: %d, %v", name, id, err)
		}
	}
	if id, err := key.New(-1); err == nil {
		t.Errorf("-1 became %d", id)
	}
}

func TestKeptIDsAreAnyNumber(t *testing.T) {
	for _, id := range []int64{math.MinInt64, -1, 0, math.MaxInt64} {
		if got, err := migrate.KeepIDs().New(id); err != nil || got != id {
			t.Errorf("%d became %d (%v)", id, got, err)
		}
	}
}
