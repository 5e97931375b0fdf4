// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"testing"

	"github.com/shardid/shardid/schema/migrate"
)

// A runner that was elected and lost its database may have begun nothing. It must not take the
// job, of which there is no trace then, for one that was aborted.
func TestAJobHasBegunWhenItsPhaseIsStored(t *testing.T) {
	var r Runner
	r.Observe(migrate.Step{Name: migrate.StepLeading})
	if r.began.Load() {
		t.Error("begun by an election")
	}
	r.Observe(migrate.Step{Name: migrate.StepBegun})
	if !r.began.Load() {
		t.Error("not begun")
	}
}
