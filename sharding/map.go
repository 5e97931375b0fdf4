package sharding

import (
	"errors"
	"fmt"
	"slices"

	"github.com/shardid/shardid/internal/dialect"
)

// Target is where rows lie: a database, by its name in [DBs], and a physical
// table in it. Targets are comparable.
type Target struct {
	DB    string
	Table string
}

// String returns "db/table".
func (t Target) String() string { return t.DB + "/" + t.Table }

// Map says which target a slot lies on. It is immutable; the zero Map has no
// targets and is refused by [New].
type Map struct {
	targets []Target
	repeat  bool // slot s is on targets[s % len]; otherwise slot s is on targets[s]
}

// Spread lays tables physical tables, numbered from 0, over the databases in
// turn: table t lies on dbs[t % len(dbs)] and is called
// fmt.Sprintf(pattern, t), so pattern needs one %d ("orders_%02d"). Slot s is
// on table s % tables, and the rule's slots must be a multiple of tables.
func Spread(dbs []string, tables int, pattern string) (Map, error) {
	if len(dbs) == 0 {
		return Map{}, errors.New("sharding: Spread: no databases")
	}
	if tables < len(dbs) || tables > MaxSlots {
		return Map{}, fmt.Errorf("sharding: Spread: %d tables over %d databases; there must be from %[2]d to %d tables, so that no database stays empty", tables, len(dbs), MaxSlots)
	}
	targets := make([]Target, tables)
	for t := range targets {
		targets[t] = Target{dbs[t%len(dbs)], fmt.Sprintf(pattern, t)}
	}
	m, err := newMap(targets, true)
	if err != nil {
		return Map{}, fmt.Errorf("sharding: Spread: pattern %q: %w", pattern, err)
	}
	return m, nil
}

// MapOf puts slot i on targets[i]; the rule must have as many slots.
func MapOf(targets ...Target) (Map, error) {
	if len(targets) == 0 {
		return Map{}, errors.New("sharding: MapOf: no targets")
	}
	m, err := newMap(slices.Clone(targets), false)
	if err != nil {
		return Map{}, fmt.Errorf("sharding: MapOf: %w", err)
	}
	return m, nil
}

// Target returns the target of slot s, or false if the map has none for it.
func (m Map) Target(s Slot) (Target, bool) {
	i := int(s)
	if i < 0 || len(m.targets) == 0 {
		return Target{}, false
	}
	if m.repeat {
		i %= len(m.targets)
	}
	if i >= len(m.targets) {
		return Target{}, false
	}
	return m.targets[i], true
}

// Targets returns every target once, in slot order.
func (m Map) Targets() []Target { return slices.Clone(m.targets) }

func newMap(targets []Target, repeat bool) (Map, error) {
	seen := make(map[Target]bool, len(targets))
	for _, t := range targets {
		if err := dialect.CheckIdent(t.Table); err != nil {
			return Map{}, fmt.Errorf("table %w", err)
		}
		if seen[foldTarget(t)] {
			return Map{}, fmt.Errorf("target %s occurs twice", t)
		}
		seen[foldTarget(t)] = true
	}
	return Map{targets, repeat}, nil
}

// fits says why the map cannot serve that many slots.
func (m Map) fits(slots int) error {
	n := len(m.targets)
	switch {
	case n == 0:
		return errors.New("has no targets; make it with Spread or MapOf")
	case m.repeat && slots%n != 0:
		return fmt.Errorf("%d slots cannot be spread evenly over %d tables; make the slots a multiple of the tables", slots, n)
	case !m.repeat && slots != n:
		return fmt.Errorf("%d slots need as many targets, not %d", slots, n)
	}
	return nil
}
