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
	// ErrLeased: processes still use an older version of the map. The error is a *LeasedError.
	// Returned by the steps of a move.
	ErrLeased = errors.New("older versions of the map are in use")

	// ErrState: the slot's state does not allow the step. Returned by the steps of a move and
	// Bypass.
	ErrState = errors.New("not possible in the slot's state")
)

// LeasedError says which processes use an older version of the map.
type LeasedError struct {
	Version int64         // the present version
	Holders int           // the number of processes that use an older version
	Wait    time.Duration // until the last of their leases ends
}

// Error says how long to wait at most.
func (e *LeasedError) Error() string {
	return fmt.Sprintf("%v: %d processes do not use version %d yet; call Settle to wait for them, at most %v unless they renew their leases",
		ErrLeased, e.Holders, e.Version, e.Wait)
}

// Is makes errors.Is(err, ErrLeased) true.
func (e *LeasedError) Is(target error) bool { return target == ErrLeased }

// step is a change of slots.
type step struct {
	name   string
	from   []State
	done   func(Slot) bool // already changed by an earlier call
	change func(*Slot)
}

// Copy begins the move of slots to a shard: it creates the triggers on the tables of both shards.
// From now on queries of several shards leave out the copies, and other statements for several shards are refused
// ([sharding.ErrSlotMoving]). The shard's tables must exist.
func (s *Store) Copy(ctx context.Context, shard int, slots ...sharding.Slot) error {
	if shard < 0 || shard >= s.layout.shards() {
		return fmt.Errorf("slotstore: Copy: there is no shard %d in Config.Shards", shard)
	}
	newest := s.fences.newest(ctx)
	v, err := s.Load(ctx)
	if err != nil {
		return err
	}
	if err := complete(v, newest); err != nil {
		return fmt.Errorf("slotstore: Copy: %w", err)
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

// Fence stops slots that are being copied: after it, every earlier write to them is committed, and
// every later one is refused by the old shard's database. On MariaDB it waits before and after it for all XA transactions that are
// prepared on the server then, and returns an error after a minute. On MySQL it does not wait for those that were prepared
// before the server was killed: see XA RECOVER.
func (s *Store) Fence(ctx context.Context, slots ...sharding.Slot) error {
	// Those that stay prepared for long, because a program was killed, must not keep the slots closed.
	if err := s.unprepared(ctx, slots); err != nil {
		return fmt.Errorf("slotstore: Fence: %w", err)
	}
	err := s.advance(ctx, slots, step{
		name:   "Fence",
		from:   []State{Copying},
		done:   func(slot Slot) bool { return slot.State == Fenced },
		change: func(slot *Slot) { slot.State = Fenced },
	})
	if err != nil {
		return err
	}
	if err := s.unprepared(ctx, slots); err != nil {
		return fmt.Errorf("slotstore: Fence: %w", err)
	}
	return nil
}

// Switch makes the new shard the owner of fenced slots. All their rows must be there.
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

// Abort ends the move of slots that were not switched yet; they stay on their old shard. Delete the
// copies on the other shard before Finish.
func (s *Store) Abort(ctx context.Context, slots ...sharding.Slot) error {
	return s.advance(ctx, slots, step{
		name:   "Abort",
		from:   []State{Copying, Fenced},
		done:   func(slot Slot) bool { return slot.State == Aborted },
		change: func(slot *Slot) { slot.State = Aborted },
	})
}

// Finish ends the move of slots whose old shard has no rows left. From now on statements for all
// shards read them again.
func (s *Store) Finish(ctx context.Context, slots ...sharding.Slot) error {
	finish := step{
		name:   "Finish",
		from:   []State{Moved, Aborted},
		done:   func(slot Slot) bool { return slot.State == Active },
		change: func(slot *Slot) { slot.State, slot.Other = Active, nowhere },
	}
	v, err := s.Load(ctx)
	if err == nil {
		err = markEmpty(ctx, s, v, slots, finish)
	}
	if err != nil {
		return fmt.Errorf("slotstore: Finish: %w", err)
	}
	return s.advance(ctx, slots, finish)
}

// markEmpty marks the fences of the slots that are to be finished, before a program can learn that they are.
func markEmpty(ctx context.Context, s *Store, v View, slots []sharding.Slot, finish step) error {
	_, due, err := finish.apply(v, slots)
	if err != nil {
		return err
	}
	if err := s.unchanged(v, due); err != nil {
		return err
	}
	for i := range due {
		due[i] = v.Slots[due[i].Slot]
	}
	return s.fences.markEmpty(ctx, due)
}

// advance creates a new version with the changed slots, and then applies it to the shards. It skips
// slots that an earlier call has changed, and repairs their shards if that call was interrupted.
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

// AsOf returns the store for a caller that knows the map at a version: the steps of slots that have
// changed since are refused with [sharding.ErrStaleMap]. So a process that was paused for long
// changes nothing that another process has taken over. All other methods are those of s.
func (s *Store) AsOf(version int64) *Store {
	earlier := *s
	earlier.asOf = version
	return &earlier
}

// unchanged compares the slots with the version of AsOf.
func (s *Store) unchanged(v View, due []Slot) error {
	for _, slot := range due {
		if is := v.Slots[slot.Slot]; s.asOf > 0 && is.Version > s.asOf {
			return fmt.Errorf("%w: slot %d has changed in version %d, after version %d", sharding.ErrStaleMap, is.Slot, is.Version, s.asOf)
		}
	}
	return nil
}

// apply returns all slots after the step, and the slots that must be changed.
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
				return nil, nil, fmt.Errorf("%w: slot %d is already on shard %d", ErrState, number, slot.Shard)
			}
			slot.Version = v.Version + 1
			due = append(due, slot)
		}
		slots = append(slots, slot)
	}
	return slots, due, nil
}

// settlePoll is the interval at which Settle reads the leases.
const settlePoll = 20 * time.Millisecond

// Settle waits until no process uses an older version of the map: their leases are on the present
// version, or have ended. If the context ends before, the error names the holders.
func (s *Store) Settle(ctx context.Context) error {
	var waiting error // the last result of look
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
