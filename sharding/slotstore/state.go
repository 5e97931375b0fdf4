// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// State is the state of a slot's move; the package comment describes the sequence.
type State string

// The states of a slot.
const (
	Active  State = "active"  // the slot does not move
	Copying State = "copying" // rows are copied to the other shard
	Fenced  State = "fenced"  // writes and reads are refused
	Moved   State = "moved"   // the other shard, its old one, still has rows
	Aborted State = "aborted" // the other shard still has copies
)

// nowhere is the other shard of an active slot.
const nowhere = -1

// Slot is one stored slot of a map.
type Slot struct {
	Slot  sharding.Slot
	State State
	// Shard is the shard that owns the slot.
	Shard int
	// Other is the other shard with rows of the slot: the one to which it moves, was to move, or
	// from which it has moved. -1 if there is none.
	Other int
	// Version is the version of the map in which the slot was last changed.
	Version int64
}

// View is a stored map.
type View struct {
	Version int64
	Slots   []Slot // by number
}

// Load returns the map. It locks the map for a moment, and so needs the right to write.
func (s *Store) Load(ctx context.Context) (View, error) {
	var v View
	err := s.home.do(ctx, func(t tx) (err error) {
		v, err = s.home.view(ctx, t)
		return err
	})
	if err != nil {
		return View{}, fmt.Errorf("slotstore: Load: %w", err)
	}
	return v, nil
}

// Read returns the map without a lock, for users with only the right to read. The View has no slots
// if no map of the name is stored.
func (s *Store) Read(ctx context.Context) (v View, err error) {
	err = dialect.Each(ctx, s.home.db, func(rows *sql.Rows) error {
		var slot Slot
		err := rows.Scan(&v.Version, &slot.Slot, &slot.State, &slot.Shard, &slot.Other, &slot.Version)
		v.Slots = append(v.Slots, slot)
		return err
	}, dialect.Text(s.home.server, `SELECT m."version", s."slot", s."state", s."shard", s."other", s."version" FROM "shard_slot" s JOIN "shard_map" m ON m."name" = s."name" WHERE s."name" = ? ORDER BY s."slot"`), s.layout.name)
	switch {
	case err != nil && dialect.FaultOf(err) == dialect.NoTable:
		return View{}, nil
	case err == nil && len(v.Slots) > 0:
		err = s.layout.check(v)
	}
	if err != nil {
		return View{}, fmt.Errorf("slotstore: Read: %w", err)
	}
	return v, nil
}

// owners returns the shards that own the slots.
func (v View) owners(slots []sharding.Slot) []int {
	var owners []int
	for _, slot := range slots {
		if slot >= 0 && int(slot) < len(v.Slots) {
			owners = append(owners, v.Slots[slot].Shard)
		}
	}
	return owners
}
