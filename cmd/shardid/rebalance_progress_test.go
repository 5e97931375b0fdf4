// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/shardid/shardid/schema/rebalance"
)

// Slots have different numbers of rows, and a move mostly waits for programs that follow the map.
func TestTheRemainingTimeOfARebalanceIsThatOfItsSlots(t *testing.T) {
	r := &bringing{slots: 21, rows: 6552, began: time.Now()}
	for _, want := range []struct {
		step        string
		moved, done int64
		copying     time.Duration
		text        string
	}{
		{rebalance.StepLeading, 0, 0, 0, "0 of 21 slots moved; 0 rows copied; it waits until programs know which slots move"},
		{rebalance.StepAnnounced, 0, 7, 14 * time.Second, "0 of 21 slots moved; 7 rows copied of about 6,552; it copies rows"},
		{rebalance.StepStored, 0, 700, 14 * time.Second, "0 of 21 slots moved; 700 rows copied of about 6,552, 50 a second, about 1m57s left; it copies rows"},
		{rebalance.StepCompared, 0, 700, 14 * time.Second, "0 of 21 slots moved; 700 rows copied of about 6,552, 50 a second, about 1m57s left; it waits until programs close the slots"},
		{rebalance.StepFinished, 8, 700, 14 * time.Second, "8 of 21 slots moved; 700 rows copied, 50 a second, about 33s left"},
		{rebalance.StepFinished, 21, 900, 18 * time.Second, "21 of 21 slots moved; 900 rows copied, 50 a second"},
	} {
		r.observe(rebalance.Step{Name: want.step})
		r.moved.Store(want.moved)
		r.done.Store(want.done)
		r.copying.Store(int64(want.copying))
		if got := r.progress(20 * time.Second); got != want.text {
			t.Errorf("%q, want %q", got, want.text)
		}
	}
}
