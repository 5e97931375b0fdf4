// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shardid/shardid/sharding"
)

var (
	// ErrLeased: processes still use an older version of the map. The error is a
	// *LeasedError. Returned by the steps of a move.
	ErrLeased = errors.New("older versions of the map are in use")

	// ErrState: the step does not follow from the slot's state. Returned by the
	// steps of a move and Bypass.
	ErrState = errors.New("not possible in the slot's state")
)

// LeasedError says who uses an older version of the map.
type LeasedError struct {
	Version int64         // the present version
	Holders int           // that use an older one
	Wait    time.Duration // until the last of their leases ends
}

// Error says for how long at most to wait.
func (e *LeasedError) Error() string {
	return fmt.Sprintf("%v: %d processes have not taken version %d yet; Settle waits for them, at most %v unless they renew",
		ErrLeased, e.Holders, e.Version, e.Wait)
}

// Is makes errors.Is(err, ErrLeased) true.
func (e *LeasedError) Is(target error) bool { return target == ErrLeased }

// step is a change of slots.
type step struct {
	name   string
	from   []State
	done   func(Slot) bool // already changed by a call before
	change func(*Slot)
}

// Copy begins the move of slots to a shard: it puts the triggers on the tables
// of both shards, and statements for all shards are refused from now on. The
// shard's tables must be there.
func (s *Store) Copy(ctx context.Context, shard int, slots ...sharding.Slot) error {
	if shard < 0 || shard >= s.layout.shards() {
		return fmt.Errorf("slotstore: Copy: there is no shard %d in Config.Shards", shard)
	}
	v, err := s.Load(ctx)
	if err != nil {
		return err
	}
	guarded := map[int]bool{}
	for _, n := range append(v.owners(slots), shard) {
		if guarded[n] {
			continue
		}
		guarded[n] = true
		if err := s.fences.guard(ctx, n, v); err != nil {
			return fmt.Errorf("slotstore: Copy: shard %d: %w", n, err)
		}
	}
	return s.advance(ctx, slots, step{
		name: "Copy",
		from: []State{Active},
		done: func(slot Slot) bool { return slot.State == Copying && slot.Other == shard },
		change: func(slot *Slot) {
			slot.State, slot.Other = Copying, shard
		},
	})
}

// Fence stops slots that are being copied: when it returns, every write to them
// has been committed or is refused by the old shard's database.
func (s *Store) Fence(ctx context.Context, slots ...sharding.Slot) error {
	return s.advance(ctx, slots, step{
		name:   "Fence",
		from:   []State{Copying},
		done:   func(slot Slot) bool { return slot.State == Fenced },
		change: func(slot *Slot) { slot.State = Fenced },
	})
}

// Switch makes the new shard the own one of fenced slots. All their rows must be
// there.
func (s *Store) Switch(ctx context.Context, slots ...sharding.Slot) error {
	return s.advance(ctx, slots, step{
		name: "Switch",
		from: []State{Fenced},
		done: func(slot Slot) bool { return slot.State == Moved },
		change: func(slot *Slot) {
			slot.State, slot.Shard, slot.Other = Moved, slot.Other, slot.Shard
		},
	})
}

// Abort ends the move of slots that were not switched yet; they stay on their
// old shard. The copies on the other one are to be deleted before Finish.
func (s *Store) Abort(ctx context.Context, slots ...sharding.Slot) error {
	return s.advance(ctx, slots, step{
		name:   "Abort",
		from:   []State{Copying, Fenced},
		done:   func(slot Slot) bool { return slot.State == Aborted },
		change: func(slot *Slot) { slot.State = Aborted },
	})
}

// Finish ends the move of slots of which no rows are left behind. From now on
// statements for all shards see them again.
func (s *Store) Finish(ctx context.Context, slots ...sharding.Slot) error {
	return s.advance(ctx, slots, step{
		name:   "Finish",
		from:   []State{Moved, Aborted},
		done:   func(slot Slot) bool { return slot.State == Active },
		change: func(slot *Slot) { slot.State, slot.Other = Active, nowhere },
	})
}

// advance makes a new version in which the slots have changed, and then makes
// the shards do as it says. Slots that have changed already are left as they
// are, and their shards are put right if the call before did not get so far.
func (s *Store) advance(ctx context.Context, numbers []sharding.Slot, step step) error {
	var slots []Slot
	err := s.home.do(ctx, func(t tx) (err error) {
		slots, err = s.write(ctx, t, numbers, step)
		return err
	})
	if err == nil {
		err = s.fences.align(ctx, slots)
	}
	if err != nil {
		return fmt.Errorf("slotstore: %s: %w", step.name, err)
	}
	return nil
}

func (s *Store) write(ctx context.Context, t tx, numbers []sharding.Slot, step step) ([]Slot, error) {
	v, err := s.home.view(ctx, t)
	if err != nil {
		return nil, err
	}
	slots, due, err := step.apply(v, numbers)
	if err != nil || len(due) == 0 {
		return slots, err
	}
	if err := s.unchanged(v, due); err != nil {
		return nil, err
	}
	if err := s.home.unleased(ctx, t, v.Version); err != nil {
		return nil, err
	}
	for _, slot := range due {
		if err := t.exec(ctx, `UPDATE "shard_slot" SET "state" = ?, "shard" = ?, "other" = ?, "version" = ? WHERE "name" = ? AND "slot" = ?`,
			string(slot.State), slot.Shard, slot.Other, slot.Version, s.layout.name, slot.Slot); err != nil {
			return nil, err
		}
	}
	return slots, t.exec(ctx, `UPDATE "shard_map" SET "version" = ? WHERE "name" = ?`, v.Version+1, s.layout.name)
}

// AsOf returns the store for steps of one who knows the map as it was at a
// version: slots that have changed since are refused with
// [sharding.ErrStaleMap]. So a process that was paused for long changes nothing
// that another one has taken over. Everything else is as with s.
func (s *Store) AsOf(version int64) *Store {
	earlier := *s
	earlier.asOf = version
	return &earlier
}

// unchanged compares with the version of AsOf.
func (s *Store) unchanged(v View, due []Slot) error {
	for _, slot := range due {
		if is := v.Slots[slot.Slot]; s.asOf > 0 && is.Version > s.asOf {
			return fmt.Errorf("%w: slot %d has changed in version %d, after %d", sharding.ErrStaleMap, is.Slot, is.Version, s.asOf)
		}
	}
	return nil
}

// apply returns all the slots as they will be, and those that are due to be
// changed.
func (step step) apply(v View, numbers []sharding.Slot) (slots, due []Slot, err error) {
	for _, number := range numbers {
		if number < 0 || int(number) >= len(v.Slots) {
			return nil, nil, fmt.Errorf("slot %d: %w", number, sharding.ErrNoSlot)
		}
		slot := v.Slots[number]
		if !step.done(slot) {
			if !slices.Contains(step.from, slot.State) {
				return nil, nil, fmt.Errorf("%w: slot %d is %s on shard %d", ErrState, number, slot.State, slot.Shard)
			}
			step.change(&slot)
			if slot.Shard == slot.Other {
				return nil, nil, fmt.Errorf("%w: slot %d is on shard %d already", ErrState, number, slot.Shard)
			}
			slot.Version = v.Version + 1
			due = append(due, slot)
		}
		slots = append(slots, slot)
	}
	return slots, due, nil
}

// settlePoll is how often Settle looks.
const settlePoll = 20 * time.Millisecond

// Settle waits until no process uses an older version of the map: their leases
// are renewed for the present version, or have run out. When the context ends
// before, the error says whom it waited for.
func (s *Store) Settle(ctx context.Context) error {
	var waiting error // for whom, at the latest look
	for {
		err := s.look(ctx)
		switch {
		case errors.Is(err, ErrLeased):
			waiting = err
		case err != nil:
			return fmt.Errorf("slotstore: Settle: %w", errors.Join(waiting, err))
		default:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("slotstore: Settle: %w", errors.Join(waiting, ctx.Err()))
		case <-time.After(settlePoll):
		}
	}
}

// look returns a *LeasedError while older versions of the map are in use.
func (s *Store) look(ctx context.Context) error {
	return s.home.do(ctx, func(t tx) error {
		version, err := s.home.lock(ctx, t)
		if err != nil {
			return err
		}
		return s.home.unleased(ctx, t, version)
	})
}
