// SPDX-License-Identifier: Apache-2.0

package workerid_test

import (
	"errors"
	"testing"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

func TestStaticGivesItsIDAndKnowsNoHistory(t *testing.T) {
	lease, err := workerid.Static(0).Acquire(t.Context(), keygen.Twitter())
	if err != nil || lease.ID() != 0 || lease.NotBefore() != keygen.UnknownHistory {
		t.Fatalf("%v %v", lease, err)
	}
}

func TestStaticRefusesAnIDThatTheLayoutCannotHold(t *testing.T) {
	for _, id := range []int64{-1, 1024} {
		if lease, err := workerid.Static(id).Acquire(t.Context(), keygen.Twitter()); !errors.Is(err, keygen.ErrNoWorker) {
			t.Errorf("%d: %v %v", id, lease, err)
		}
	}
}
