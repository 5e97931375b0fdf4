// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"slices"
)

// Move is the move of one slot from one target to another.
type Move struct {
	Slot     Slot
	From, To Target
}

// String returns "slot 3: a/orders_0 → b/orders_1".
func (m Move) String() string { return fmt.Sprintf("slot %d: %s → %s", m.Slot, m.From, m.To) }

// Plan returns the moves that change old into next, for a rule with that many slots: one for each
// slot whose target differs, in slot order.
func Plan(slots int, old, next Map) ([]Move, error) {
	if err := errors.Join(old.fits(slots), next.fits(slots)); err != nil {
		return nil, fmt.Errorf("sharding: Plan: %w", err)
	}
	var moves []Move
	for s := range Slot(slots) {
		from, to := old.targets[old.index(s)], next.targets[next.index(s)]
		if from != to {
			moves = append(moves, Move{s, from, to})
		}
	}
	return moves, nil
}

// Rebalance returns a map of that many slots over these targets that moves as few slots as
// possible: the numbers of slots of two targets differ by one at most, and a slot leaves its target
// only for that. Doubling the number of targets moves half of the slots. The version increases by
// one.
func (m Map) Rebalance(slots int, targets ...Target) (Map, error) {
	if err := m.fits(slots); err != nil {
		return Map{}, fmt.Errorf("sharding: Rebalance: %w", err)
	}
	if len(targets) == 0 || len(targets) > slots {
		return Map{}, fmt.Errorf("sharding: Rebalance: %d slots over %d targets; there must be from 1 to %[1]d targets, so that no target stays empty", slots, len(targets))
	}
	b := balance{place: make([]Target, slots), has: make(map[Target][]Slot, len(targets))}
	for _, t := range targets {
		if _, twice := b.has[t]; twice {
			return Map{}, fmt.Errorf("sharding: Rebalance: target %s occurs twice", t)
		}
		b.has[t] = nil
	}
	b.keep(&m)
	b.spread(targets)
	next, err := newMap(b.place)
	if err != nil {
		return Map{}, fmt.Errorf("sharding: Rebalance: %w", err)
	}
	return next.At(m.version + 1), nil
}

// balance is an assignment of slots that is being computed.
type balance struct {
	place      []Target          // of each slot
	has        map[Target][]Slot // the slots of each target
	unassigned []Slot
}

// keep leaves slots on their targets if those remain.
func (b *balance) keep(m *Map) {
	for s := range Slot(len(b.place)) {
		t := m.targets[m.index(s)]
		if _, stays := b.has[t]; !stays {
			b.unassigned = append(b.unassigned, s)
			continue
		}
		b.has[t] = append(b.has[t], s)
	}
}

// spread takes slots from the targets that have too many, and gives them to those that have too
// few. The targets with most slots get the larger shares, so that fewer slots must move.
func (b *balance) spread(targets []Target) {
	targets = slices.Clone(targets)
	slices.SortStableFunc(targets, func(x, y Target) int { return len(b.has[y]) - len(b.has[x]) })
	share, larger := len(b.place)/len(targets), len(b.place)%len(targets)
	shares := make([]int, len(targets))
	for i, t := range targets {
		shares[i] = share
		if i < larger {
			shares[i]++
		}
		if extra := len(b.has[t]) - shares[i]; extra > 0 {
			b.unassigned = append(b.unassigned, b.has[t][shares[i]:]...)
			b.has[t] = b.has[t][:shares[i]]
		}
	}
	slices.Sort(b.unassigned)
	for i, t := range targets {
		n := shares[i] - len(b.has[t])
		b.has[t] = append(b.has[t], b.unassigned[:n]...)
		b.unassigned = b.unassigned[n:]
		for _, s := range b.has[t] {
			b.place[s] = t
		}
	}
}

// Apply returns the map of that many slots after these moves. If a slot is not on its move's From,
// the error wraps [ErrStaleMap]. The version increases by one.
func (m Map) Apply(slots int, moves ...Move) (Map, error) {
	if err := m.fits(slots); err != nil {
		return Map{}, fmt.Errorf("sharding: Apply: %w", err)
	}
	place := make([]Target, slots)
	for s := range place {
		place[s] = m.targets[m.index(Slot(s))]
	}
	for _, move := range moves {
		if move.Slot < 0 || int(move.Slot) >= slots {
			return Map{}, fmt.Errorf("sharding: Apply: %v: %w; there are %d slots", move, ErrNoSlot, slots)
		}
		if place[move.Slot] != move.From {
			return Map{}, fmt.Errorf("sharding: Apply: %v: %w: the slot is on %s", move, ErrStaleMap, place[move.Slot])
		}
		place[move.Slot] = move.To
	}
	next, err := newMap(place)
	if err != nil {
		return Map{}, fmt.Errorf("sharding: Apply: %w", err)
	}
	next.version, next.held, next.shared = m.version+1, m.held, m.shared
	return next, nil
}
