// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnApplierRestsLongerWhileTheLogStaysEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &Follower{}
		nothing, waits, some := Passed{}, Passed{Left: []Entry{{}}}, Passed{Applied: 1}
		for i, step := range []struct {
			done Passed
			want time.Duration
		}{
			{nothing, IdlePause},
			{nothing, 2 * IdlePause},
			{nothing, 4 * IdlePause},
			{nothing, mostIdlePause},
			{nothing, mostIdlePause},
			{waits, IdlePause}, // for a copier, or another row
			{waits, IdlePause},
			{nothing, 2 * IdlePause},
			{some, 0},
			{nothing, IdlePause},
		} {
			began := time.Now()
			if err := f.rest(t.Context(), step.done, nil); err != nil {
				t.Fatal(err)
			}
			if rested := time.Since(began); rested != step.want {
				t.Errorf("round %d: rested for %v, not %v", i, rested, step.want)
			}
		}
	})
}

func TestAnApplierRestsNoLongerThanTheCopyOrItsContextLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		copied := make(chan struct{})
		close(copied)
		if err := new(Follower).rest(t.Context(), Passed{}, copied); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := new(Follower).rest(ctx, Passed{}, nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if rested := time.Since(began); rested != 0 {
			t.Errorf("rested for %v", rested)
		}
	})
}
