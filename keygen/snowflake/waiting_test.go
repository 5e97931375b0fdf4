// SPDX-License-Identifier: Apache-2.0

package snowflake_test

import (
	"testing"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

// A caller that waits for the next tick has its id reserved, which is ahead of the clock and not issued yet.
func TestAnIDThatACallerWaitsForIsNoSignOfAClockThatWasSetBack(t *testing.T) {
	g, err := snowflake.New(t.Context(), snowflake.Config{Layout: keygen.Twitter(), Worker: workerid.Static(1)})
	if err != nil {
		t.Fatal(err)
	}
	snowflake.Reserve(g, 1_000)
	if err := g.Stats().LastError; err != nil {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
