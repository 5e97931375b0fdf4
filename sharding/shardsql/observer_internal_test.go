// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"testing"

	"github.com/shardid/shardid/sharding/internal/plan"
)

func TestWithoutAnObserverNothingIsAllocated(t *testing.T) {
	d := &database{}
	if n := testing.AllocsPerRun(100, func() {
		o := d.observe(t.Context(), "SELECT 1")
		o.planned(nil, &plan.Route{}, nil)
		_, _ = o.executed(nil, nil)
		_, _ = o.answered(nil, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
