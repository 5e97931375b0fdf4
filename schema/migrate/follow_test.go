package migrate

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnApplierRestsLongerWhileTheLogStaysEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &follower{}
		nothing, waits, some := passed{}, passed{left: []entry{{}}}, passed{applied: 1}
		for i, step := range []struct {
			done passed
			want time.Duration
		}{
			{nothing, idlePause},
			{nothing, 2 * idlePause},
			{nothing, 4 * idlePause},
			{nothing, mostIdlePause},
			{nothing, mostIdlePause},
			{waits, idlePause}, // for a copier, or another row
			{waits, idlePause},
			{nothing, 2 * idlePause},
			{some, 0},
			{nothing, idlePause},
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
		if err := new(follower).rest(t.Context(), passed{}, copied); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := new(follower).rest(ctx, passed{}, nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if rested := time.Since(began); rested != 0 {
			t.Errorf("rested for %v", rested)
		}
	})
}
