// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// Export is a configuration in the form of another system.
type Export struct {
	Files []File   `json:"files"`
	Notes []string `json:"notes"` // sentences that a user must know before using it
}

// File is one file of an export.
type File struct {
	Name string `json:"name"` // without a folder, for example "vschema.json"
	Text string `json:"text"`
}

// goldenOnly returns the note of exports that were not tried on the system itself.
func goldenOnly(system string) string {
	return "This export was checked against golden files; " + system + " itself was not run. Try it on a copy of the data first."
}

// ErrInexact: the system has no exact equivalent. Every RefusedError wraps it.
var ErrInexact = errors.New("no exact equivalent")

// RefusedError says why a table cannot be exported, and what to do instead.
type RefusedError struct {
	System string // "vitess", "shardingsphere", "citus", "tidb", "fdw" or "spider"
	Table  string // logical table
	Reason string
	Way    string // what to do instead
}

// Error returns one sentence with all fields of the RefusedError.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("export: %s: table %s: %v: %s; %s", e.System, e.Table, ErrInexact, e.Reason, e.Way)
}

// Unwrap returns ErrInexact.
func (*RefusedError) Unwrap() error { return ErrInexact }

// layout is a table with the numbers of its rule and map.
type layout struct {
	sharding.Table

	rule sharding.Description
	// targets are by slot, as many as there are before the map repeats them: slot s is on targets[s
	// % len(targets)].
	targets []sharding.Target
}

func layouts(r *sharding.Router) []layout {
	var all []layout
	for _, t := range r.Tables() {
		all = append(all, layout{t, sharding.Describe(t.Rule), t.Cycle()})
	}
	return all
}

func slotTargets(t sharding.Table) []sharding.Target {
	cycle := t.Cycle()
	targets := make([]sharding.Target, t.Rule.Slots())
	for s := range targets {
		targets[s] = cycle[s%len(cycle)]
	}
	return targets
}

// shift returns the number that is added to the key before the modulo, if the slot is a modulo of
// the key: slot = (key + shift) mod len(targets).
func (l layout) shift() (shift int, isModulo bool) {
	switch l.rule.Kind {
	case sharding.KindLow, sharding.KindMod:
		return 0, true
	case sharding.KindOffsetStep:
		return (l.rule.Step - l.rule.Offset) % len(l.targets), true
	}
	return 0, false
}

// distinct returns the targets without duplicates, in slot order.
func (l layout) distinct() []sharding.Target {
	seen := map[sharding.Target]bool{}
	var all []sharding.Target
	for _, t := range l.targets {
		if !seen[t] {
			seen[t] = true
			all = append(all, t)
		}
	}
	return all
}

// known refuses settings for tables that the router does not shard.
func known[V any](all []layout, field string, settings map[string]V) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if !slices.ContainsFunc(all, func(l layout) bool { return l.Name == name }) {
			errs = append(errs, fmt.Errorf("export: %s: table %q is not a sharded table of the router", field, name))
		}
	}
	return errors.Join(errs...)
}

func checkName(field, name string) error {
	if err := dialect.CheckIdent(name); err != nil {
		return fmt.Errorf("export: %s: %w", field, err)
	}
	return nil
}
