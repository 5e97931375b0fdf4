// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"strconv"
	"testing"
)

func TestAStatusEstimatesOnlyWhatItKnows(t *testing.T) {
	half := []TableProgress{{Name: "orders", Rows: 1000, Copied: 0.5}, {Name: "items", Rows: 4000, Copied: 0.25}}
	leads := func(copied, caught int64) *Runner { return &Runner{Leads: true, Copied: copied, caught: caught} }
	for _, c := range []struct {
		why       string
		s         Status
		lag, left string
	}{
		{"before it begins", Status{Progress: Progress{Phase: PhaseNone, Tables: half}}, "-", "-"},
		{"while rows are copied", Status{Progress: Progress{Phase: PhaseCopying, Tables: half, Backlog: 3}, Runner: leads(100, 7)}, "7", "35"},
		{"when no change waits", Status{Progress: Progress{Phase: PhaseCopying, Tables: half}, Runner: leads(100, 7)}, "0", "35"},
		{"when nothing was copied within the minute", Status{Progress: Progress{Phase: PhaseCopying, Tables: half}, Runner: leads(0, 7)}, "0", "-"},
		{"when the runner is gone", Status{Progress: Progress{Phase: PhaseCopying, Tables: half, Backlog: 3}, Runner: &Runner{Copied: 100, caught: 90}}, "90", "-"},
		{"when no runner has caught up yet", Status{Progress: Progress{Phase: PhaseCopying, Tables: half, Backlog: 3}, Runner: leads(100, -1)}, "-", "35"},
		{"when none was heard", Status{Progress: Progress{Phase: PhaseFollowing, Tables: half, Backlog: 3}}, "-", "-"},
		{"when changes are followed", Status{Progress: Progress{Phase: PhaseFollowing, Backlog: 3}, Runner: leads(0, 4)}, "4", "-"},
		{"on the way back", Status{Progress: Progress{Phase: PhaseSwitched, Backlog: 3}, Runner: leads(0, 4)}, "4", "-"},
		{"in the midst of a rollback", Status{Progress: Progress{Phase: PhaseReturning, Backlog: 3}, Runner: leads(0, 4)}, "4", "-"},
		{"at the end", Status{Progress: Progress{Phase: PhaseFinalized}, Runner: leads(0, 4)}, "-", "-"},
	} {
		c.s.estimate()
		text := func(n *int64) string {
			if n == nil {
				return "-"
			}
			return strconv.FormatInt(*n, 10)
		}
		if lag, left := text(c.s.Lag), text(c.s.Left); lag != c.lag || left != c.left {
			t.Errorf("%s: a lag of %s and %s left, want %s and %s", c.why, lag, left, c.lag, c.left)
		}
	}
}
