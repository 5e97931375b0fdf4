// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// State is the state of a version in one database.
type State string

// The states.
const (
	Pending  State = "pending"   // no statement was sent
	Applied  State = "applied"   // all statements are executed
	Partial  State = "partial"   // some of the physical tables have it
	InFlight State = "in flight" // a statement was sent, and its answer is not noted
	Undoing  State = "undoing"   // Down was begun and is not done
)

// state compares the steps of a version with the notes of the database.
func (n notes) state(number int64, steps []Step) (s State, finished int) {
	inFlight := false
	for k, kept := range n {
		if k.version != number {
			continue
		}
		if k.direction == down {
			s = Undoing
		}
		inFlight = inFlight || kept.state == began
	}
	for i := range steps {
		if kept := n[steps[i].key(up)]; kept != nil && kept.state != began {
			finished++
		}
	}
	switch {
	case s == Undoing:
	case inFlight:
		s = InFlight
	case finished == len(steps):
		s = Applied
	case finished == 0:
		s = Pending
	default:
		s = Partial
	}
	return s, finished
}

// check finds a statement that was changed after it was run.
func (n notes) check(file *version, steps []Step, d direction) error {
	for i := range steps {
		if kept := n[steps[i].key(d)]; kept != nil && kept.fingerprint != fingerprint(steps[i].text) {
			return fmt.Errorf("%w: statement %d of %s; restore it, and write the change as a new version", ErrChanged, steps[i].Statement, file.name)
		}
	}
	return nil
}

// versions are the versions with notes, in order.
func (n notes) versions() []int64 {
	known := map[int64]bool{}
	for k := range n {
		known[k.version] = true
	}
	return slices.Sorted(maps.Keys(known))
}

// inOrder finds a database that has a newer version than one that it lacks.
func (v *visit) inOrder() error {
	for _, s := range v.shards {
		noted := s.notes.versions()
		if len(noted) == 0 {
			continue
		}
		for _, number := range noted {
			if v.file(number) == nil {
				return fmt.Errorf("%w: %s has version %d, and no file has; restore its file", ErrOrder, s.name, number)
			}
		}
		for _, file := range v.versions {
			if file.number >= noted[len(noted)-1] {
				break
			}
			steps, err := v.steps(s, file, up)
			if err != nil {
				return err
			}
			if state, _ := s.notes.state(file.number, steps); state != Applied && len(steps) > 0 && !v.grown(s, steps) {
				return fmt.Errorf("%w: %s has version %d but not %s; give it a higher number", ErrOrder, s.name, noted[len(noted)-1], file.name)
			}
		}
	}
	return nil
}

// grown reports whether the version was applied on all physical tables that the database
// had at that time: the tables that lack it were added since.
func (v *visit) grown(s *shard, steps []Step) bool {
	known := map[string]bool{}
	for k := range s.notes {
		known[k.place] = true
	}
	return !slices.ContainsFunc(steps, func(step Step) bool {
		return known[step.Target.Table] && s.notes[step.key(up)] == nil
	})
}

// noVersion is the error of a version that no file has.
func (r *Runner) noVersion(number int64) error {
	return noVersionError{number, r.versions[len(r.versions)-1].number}
}

func (r *Runner) file(number int64) *version {
	i, found := slices.BinarySearchFunc(r.versions, number, func(f *version, n int64) int { return cmp.Compare(f.number, n) })
	if !found {
		return nil
	}
	return r.versions[i]
}
