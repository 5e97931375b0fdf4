// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

// slots are the slots that move from one shard to another together.
type slots struct {
	store    *slotstore.Store
	from, to int
	version  int64            // the last version of the map that was read
	all      []slotstore.Slot // their state in that version
}

func (s *slots) state() slotstore.State { return s.all[0].State }

// refresh reads the slots again.
func (s *slots) refresh(ctx context.Context) error {
	v, err := s.store.Load(ctx)
	if err != nil {
		return err
	}
	now := make([]slotstore.Slot, len(s.all))
	for i, slot := range s.all {
		now[i] = v.Slots[slot.Slot]
		if now[i].State != now[0].State || now[i].Shard != now[0].Shard || now[i].Other != now[0].Other {
			return fmt.Errorf("%w: slots %d and %d are no longer moving together", sharding.ErrStaleMap, now[0].Slot, now[i].Slot)
		}
	}
	s.version, s.all = v.Version, now
	return nil
}

// change is a method of the store that changes slots.
type change func(s *slotstore.Store, ctx context.Context, slots ...sharding.Slot) error

// begin is the change that begins the copy.
func (s *slots) begin() change {
	return func(store *slotstore.Store, ctx context.Context, all ...sharding.Slot) error {
		return store.Copy(ctx, s.to, all...)
	}
}

// last is the change that led to the slots' present state; nil for slots that do not move.
func (s *slots) last() change {
	switch s.state() {
	case slotstore.Copying:
		return s.begin()
	case slotstore.Fenced:
		return (*slotstore.Store).Fence
	case slotstore.Moved:
		return (*slotstore.Store).Switch
	case slotstore.Aborted:
		return (*slotstore.Store).Abort
	}
	return nil
}

// change changes the slots in the map, as soon as all processes know the present version,
// and if the mover still leads.
func (s *slots) change(ctx context.Context, stillLeads func(context.Context) error, do change) error {
	numbers := make([]sharding.Slot, len(s.all))
	for i, slot := range s.all {
		numbers[i] = slot.Slot
	}
	for {
		if err := s.store.Settle(ctx); err != nil {
			return err
		}
		if err := stillLeads(ctx); err != nil {
			return err
		}
		err := do(s.store.AsOf(s.version), ctx, numbers...)
		if errors.Is(err, slotstore.ErrLeased) {
			continue // another mover has changed other slots
		}
		if err != nil {
			return err
		}
		return s.refresh(ctx)
	}
}
