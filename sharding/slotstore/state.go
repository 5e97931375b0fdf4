// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// State is how far a slot's move is; the package comment has the whole story.
type State string

// The states of a slot.
const (
	Active  State = "active"  // nothing moves
	Copying State = "copying" // rows are copied to the other shard
	Fenced  State = "fenced"  // nobody writes or reads
	Moved   State = "moved"   // rows are left behind on the other shard, its old one
	Aborted State = "aborted" // copies are left behind on the other shard
)

// nowhere is the other shard of a slot that is active.
const nowhere = -1

// Slot is one slot of a map as it is stored.
type Slot struct {
	Slot  sharding.Slot
	State State
	// Shard is the slot's own.
	Shard int
	// Other is the shard that has rows of the slot besides: the one it moves to,
	// was to move to, or has moved from. -1 when there is none.
	Other int
	// Version is that of the map when the slot changed last.
	Version int64
}

// View is a map as it is stored.
type View struct {
	Version int64
	Slots   []Slot // by number
}

// Load returns the map. It locks it for that moment, and so needs the right to write.
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

// Read returns the map without a lock, for those who may only read. It has no slots where no
// map of the name is stored.
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

// owners returns the shards that have the slots.
func (v View) owners(slots []sharding.Slot) []int {
	var owners []int
	for _, slot := range slots {
		if slot >= 0 && int(slot) < len(v.Slots) {
			owners = append(owners, v.Slots[slot].Shard)
		}
	}
	return owners
}
