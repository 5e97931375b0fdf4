// SPDX-License-Identifier: Apache-2.0

package sqlrun_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/internal/sqlrun"
)

// waited returns how long a gap delays a write.
func waited(t *testing.T, gap *sqlrun.Gap) time.Duration {
	t.Helper()
	began := time.Now()
	if err := gap.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	return time.Since(began)
}

func TestAGapIsRandomAndAtMostAFifthOfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gap sqlrun.Gap
		var all time.Duration
		for range 100 {
			gap.Begin(time.Hour)
			one := waited(t, &gap)
			if all += one; one > 200*time.Millisecond {
				t.Errorf("a gap took %v", one)
			}
		}
		if all < 5*time.Second || all > 15*time.Second {
			t.Errorf("100 gaps took %v", all)
		}
	})
}

// A process that writes rarely never waits.
func TestAGapPassesWhileNobodyWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gap sqlrun.Gap
		if took := waited(t, &gap); took != 0 {
			t.Errorf("before the first write: %v", took)
		}
		gap.Begin(10 * time.Millisecond)
		time.Sleep(20 * time.Millisecond)
		if took := waited(t, &gap); took != 0 {
			t.Errorf("after the gap: %v", took)
		}
	})
}

func TestAGapEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gap sqlrun.Gap
		gap.Begin(time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := gap.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
