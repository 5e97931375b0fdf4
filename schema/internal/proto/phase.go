// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"fmt"
	"slices"
)

// Phase is the state of a job. Its values are stored.
type Phase string

// These are the phases in the order of a migration without a rollback.
const (
	// Copying: rows are copied and followed; the source serves.
	Copying Phase = "copying"
	// Following: everything was copied and changes are followed; the source serves.
	Following Phase = "following"
	// Switched: the shards serve; changes are followed back into the renamed source.
	Switched Phase = "switched"
	// Returning: a rollback has begun to close the shards.
	Returning Phase = "returning"
	// Finalized: the shards serve, and a rollback is no longer possible.
	Finalized Phase = "finalized"
	// Aborted: the source serves, and the job's work is dropped.
	Aborted Phase = "aborted"
)

var successors = map[Phase][]Phase{
	Copying:   {Following, Aborted},
	Following: {Switched, Copying, Aborted},
	Switched:  {Returning, Finalized},
	Returning: {Following, Switched},
	Finalized: {},
	Aborted:   {},
}

// Check returns an error unless a job may go from one phase to the other.
func Check(from, to Phase) error {
	if slices.Contains(successors[from], to) {
		return nil
	}
	return fmt.Errorf("a job that is %s cannot become %s", from, to)
}

// String is the phase in messages; "not begun" for a job without a phase.
func (p Phase) String() string {
	if p == "" {
		return "not begun"
	}
	return string(p)
}

// Known reports whether p is a phase.
func (p Phase) Known() bool { _, ok := successors[p]; return ok }

// Repair is what a runner has to do with the tables of a job whose route is still the
// source.
type Repair int

const (
	// Nothing says that no table was renamed.
	Nothing Repair = iota
	// Rename says that some tables were renamed and others not: the switch must be finished
	// under the lock.
	Rename
	// Flip says that all tables were renamed, and only the route is missing.
	Flip
	// Unclear says that the tables are neither in the state before the switch nor in the one
	// after it.
	Unclear
)

// Diagnose decides by which tables exist; the slices have one element for each table of the
// job.
func Diagnose(current, renamed []bool) Repair {
	before, after := 0, 0
	for i := range current {
		switch {
		case current[i] && !renamed[i]:
			before++
		case !current[i] && renamed[i]:
			after++
		default:
			return Unclear
		}
	}
	switch {
	case after == 0:
		return Nothing
	case before == 0:
		return Flip
	}
	return Rename
}
