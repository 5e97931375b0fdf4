// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// Target is the location of rows: a database, by its name in [DBs], and a physical table in it.
// Targets are comparable.
type Target struct {
	DB    string
	Table string
}

// String returns "db/table".
func (t Target) String() string { return t.DB + "/" + t.Table }

// Map maps slots to targets. It is immutable. The zero Map has no targets and is refused by [New].
type Map struct {
	version int64
	targets []Target // without duplicates
	slots   []uint16 // slot s is on targets[slots[s]]; if slots is empty, on targets[s % len]
	held    []Slot   // sorted: no statement may use them now
	shared  []Slot   // sorted: some of their rows are on two targets now

	patience time.Duration // see Patient

	valid  func() bool // nil: always
	closed error       // why there are no targets; nil if there are
}

// Spread distributes tables physical tables, numbered from 0, over the databases in turn: table t
// is on dbs[t % len(dbs)] and has the name fmt.Sprintf(pattern, t), so pattern needs one %d
// ("orders_%02d"). With one table a database, pattern may have no %d: all tables then have the name
// pattern, which may be the logical name. Slot s is on table s % tables, and the number of the
// rule's slots must be a multiple of tables. Each database occurs once.
func Spread(dbs []string, tables int, pattern string) (Map, error) {
	if len(dbs) == 0 {
		return Map{}, errors.New("sharding: Spread: no databases")
	}
	if tables < len(dbs) || tables > MaxSlots {
		return Map{}, fmt.Errorf("sharding: Spread: %d tables over %d databases; there must be from %[2]d to %d tables, so that no database stays empty", tables, len(dbs), MaxSlots)
	}
	if name, ok := twice(dbs); ok {
		return Map{}, fmt.Errorf("sharding: Spread: database %q occurs twice; name each once, or assign slots with MapOf", name)
	}
	m, err := newMap(spread(dbs, tables, pattern))
	constant := tables == len(dbs) && !strings.Contains(pattern, "%")
	if !constant && strings.Contains(fmt.Sprintf(pattern, 0), "%!") || err == nil && len(m.targets) != tables {
		return Map{}, fmt.Errorf("sharding: Spread: pattern %q needs one %%d, for the table's number, as in orders_%%02d", pattern)
	}
	if err != nil {
		return Map{}, fmt.Errorf("sharding: Spread: pattern %q: %w", pattern, err)
	}
	m.slots = nil
	return m, nil
}

func spread(dbs []string, tables int, pattern string) []Target {
	targets := make([]Target, tables)
	for t := range targets {
		name := pattern
		if strings.Contains(pattern, "%") {
			name = fmt.Sprintf(pattern, t)
		}
		targets[t] = Target{dbs[t%len(dbs)], name}
	}
	return targets
}

// twice returns a name that occurs more than once.
func twice(names []string) (name string, ok bool) {
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] {
			return name, true
		}
		seen[name] = true
	}
	return "", false
}

// MapOf puts slot i on targets[i]; the rule must have as many slots. A target may have several
// slots.
func MapOf(targets ...Target) (Map, error) {
	if len(targets) == 0 {
		return Map{}, errors.New("sharding: MapOf: no targets")
	}
	if len(targets) > MaxSlots {
		return Map{}, fmt.Errorf("sharding: MapOf: %d slots; at most %d are possible", len(targets), MaxSlots)
	}
	m, err := newMap(targets)
	if err != nil {
		return Map{}, fmt.Errorf("sharding: MapOf: %w", err)
	}
	return m, nil
}

// newMap puts slot i on targets[i].
func newMap(targets []Target) (Map, error) {
	m := Map{slots: make([]uint16, len(targets))}
	seen := make(map[Target]int, len(targets))
	for s, t := range targets {
		if err := dialect.CheckIdent(t.Table); err != nil {
			return Map{}, fmt.Errorf("table %w", err)
		}
		i, known := seen[foldTarget(t)]
		switch {
		case !known:
			i = len(m.targets)
			seen[foldTarget(t)] = i
			m.targets = append(m.targets, t)
		case m.targets[i] != t:
			return Map{}, fmt.Errorf("target %s also occurs as %s; write it in one way", t, m.targets[i])
		}
		m.slots[s] = uint16(i)
	}
	return m, nil
}

// Target returns the target of slot s, or false if the map has none for it.
func (m Map) Target(s Slot) (Target, bool) {
	if i := m.index(s); i >= 0 {
		return m.targets[i], true
	}
	return Target{}, false
}

// index returns the index of slot s in m.targets, -1 if there is none.
func (m *Map) index(s Slot) int {
	switch {
	case s < 0 || len(m.targets) == 0:
		return -1
	case len(m.slots) == 0:
		return int(s) % len(m.targets)
	case int(s) >= len(m.slots):
		return -1
	}
	return int(m.slots[s])
}

// Targets returns the targets without duplicates, in the order of their first slots.
func (m Map) Targets() []Target { return slices.Clone(m.targets) }

// Version counts the changes of the map: each change has a higher version. Maps that never changed
// have version 0.
func (m Map) Version() int64 { return m.version }

// At returns the map with another version.
func (m Map) At(version int64) Map {
	m.version = version
	return m
}

// Holding returns the map with exactly these slots held: their keys are refused with
// [ErrSlotMoving], for reads and writes.
func (m Map) Holding(slots ...Slot) Map {
	m.held = sorted(slots)
	return m
}

// Patient returns the map for statements of package shardsql that wait while slots which they need are held, and are sent when
// the router has another map: for this long at most, and then they are refused with [ErrSlotMoving]. 0 and less mean that
// they are refused at once. A transaction that has executed something never waits, as the move may wait for its locks.
func (m Map) Patient(atMost time.Duration) Map {
	m.patience = atMost
	return m
}

// Patience returns for how long statements wait; see [Map.Patient].
func (m Map) Patience() time.Duration { return m.patience }

// Sharing returns the map with exactly these slots shared: some of their rows are on two targets,
// because a move is copying them or has left copies behind. Their keys are routed as usual. A
// statement for several targets is refused with [ErrSlotMoving], because it would read such rows twice,
// unless package shardsql can add a condition that leaves the copies out.
func (m Map) Sharing(slots ...Slot) Map {
	m.shared = sorted(slots)
	return m
}

// While returns the map for use as long as valid returns true. After that, every key is refused
// with [ErrStaleMap] until the router gets another map. It is for maps whose use a lease limits.
// valid is called for each key, by many goroutines at once; nil means always.
func (m Map) While(valid func() bool) Map {
	m.valid = valid
	return m
}

// Stored returns the map as the first one of slots that a database stores: every key is refused with [ErrStaleMap] until the
// router gets the stored map, as it does by Follow of package slotstore. A program that forgets to follow
// the map would otherwise read the former shards of slots that have moved, and find no rows. Once slots of a table have begun to move,
// package shardsql refuses its statements, but Router.Target does not.
func (m Map) Stored() Map { return m.While(func() bool { return false }) }

// Leased reports whether [Map.While] limits the use of the map: then rows move between shards only as package slotstore
// moves them.
func (m Map) Leased() bool { return m.valid != nil }

// usable returns why no slot may be used now, or nil.
func (m *Map) usable() error {
	if m.closed == nil && m.expired() {
		return ErrStaleMap
	}
	return m.closed
}

func (m *Map) expired() bool { return m.valid != nil && !m.valid() }

// Held returns the slots that are held, in order.
func (m Map) Held() []Slot { return slices.Clone(m.held) }

// Shared returns the slots that are shared, in order.
func (m Map) Shared() []Slot { return slices.Clone(m.shared) }

func sorted(slots []Slot) []Slot {
	slots = slices.Clone(slots)
	slices.Sort(slots)
	return slices.Compact(slots)
}

// isHeld reports whether the slot is held.
func (m *Map) isHeld(s Slot) bool {
	if len(m.held) == 0 {
		return false
	}
	_, found := slices.BinarySearch(m.held, s)
	return found
}

// everywhere returns an error if rows may be on two targets or on none.
func (m *Map) everywhere() error {
	if err := m.usable(); err != nil {
		return err
	}
	for _, slots := range [][]Slot{m.held, m.shared} {
		if len(slots) > 0 {
			return fmt.Errorf("slot %d: %w", slots[0], ErrSlotMoving)
		}
	}
	return nil
}

// fits returns why the map cannot be used for that many slots, or nil.
func (m *Map) fits(slots int) error {
	n, tables := len(m.slots), len(m.targets)
	switch {
	case tables == 0:
		return errors.New("has no targets; create it with Spread or MapOf")
	case n == 0 && slots%tables != 0:
		return fmt.Errorf("%d slots cannot be spread evenly over %d tables; make the slots a multiple of the tables", slots, tables)
	case n > 0 && slots != n:
		return fmt.Errorf("%d slots need %[1]d targets, not %d", slots, n)
	}
	return nil
}
