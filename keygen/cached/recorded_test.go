// SPDX-License-Identifier: Apache-2.0

package cached_test

import (
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/cached"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
)

func TestARecordedWorkerIDRemembersHowFarAheadItWas(t *testing.T) {
	file := filepath.Join(t.TempDir(), "worker")
	layout := keygen.Twitter()
	layout.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // before synctest's clock begins
	synctest.Test(t, func(t *testing.T) { recordedRestarts(t, file, layout) })
}

func recordedRestarts(t *testing.T, file string, layout keygen.Layout) {
	t.Helper()
	var ids []int64
	for range 5 {
		g, err := cached.New(t.Context(), cached.Config{
			Layout: layout, BoostPower: 6,
			Worker: workerid.Recorded(file, workerid.Static(7)),
		})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		ids = append(ids, take(t, g, 4096<<6)...)
		if took := time.Since(begin); took > time.Second {
			t.Errorf("a restart had to wait for %v", took)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if id, twice := keygentest.Duplicate(slices.Clone(ids)); twice {
		t.Errorf("%d came twice", id)
	}
}
