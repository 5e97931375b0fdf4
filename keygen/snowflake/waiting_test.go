// SPDX-License-Identifier: Apache-2.0

package snowflake_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

// A caller that waits for the next tick has its id reserved, which is ahead of the clock and not issued yet.
func TestAnIDThatACallerWaitsForIsNoSignOfAClockThatWasSetBack(t *testing.T) {
	g, err := snowflake.New(t.Context(), snowflake.Config{
		Layout: keygen.Layout{
			Epoch: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), Unit: 2 * time.Millisecond,
			Fields: []keygen.Field{{Kind: keygen.Time, Bits: 39}, {Kind: keygen.Worker, Bits: 10}, {Kind: keygen.Sequence, Bits: 5}},
		},
		Worker: workerid.Static(1),
	})
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for {
				if _, err := g.Next(t.Context()); errors.Is(err, keygen.ErrClosed) {
					return
				}
			}
		})
	}
	for range 400 {
		if err := g.Stats().LastError; err != nil {
			t.Error(err)
			break
		}
		time.Sleep(time.Millisecond) // so that ids of several ticks are used up
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	callers.Wait()
}
