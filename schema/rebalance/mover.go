// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

// MoverConfig describes how slots move between shards.
type MoverConfig struct {
	// Store is the map of the slots. Its shards must be MySQL, MariaDB, PostgreSQL or SQLite,
	// all of one kind, and must accept a few connections of the mover each. There is no
	// default.
	Store *slotstore.Store

	// MaxPause is how long the keys of slots may be refused with [sharding.ErrSlotMoving]
	// until the new shard has them. It must be long enough for all processes to learn of two
	// new versions of the map, each of which takes a third of a lease's term. A pause that
	// would last longer is given up: the slots stay on their old shard. Defaults to 30
	// seconds.
	MaxPause time.Duration

	// ChunkRows is how many rows of a table are processed at once. Defaults to 4000; at most
	// 100,000.
	ChunkRows int

	// Throttle is called before each chunk is copied, compared or deleted. It returns when the
	// work may continue; its error ends the work. It is not called during a pause. Defaults to
	// no throttling.
	Throttle func(ctx context.Context) error

	// Observe is called after each step, by the goroutine that made it; the time it takes is
	// added to the step. Defaults to no call.
	Observe func(Step)
}

const (
	defaultMaxPause  = 30 * time.Second
	defaultChunkRows = 4000
	maxChunkRows     = 100_000
)

func (c MoverConfig) withDefaults() MoverConfig {
	if c.MaxPause == 0 {
		c.MaxPause = defaultMaxPause
	}
	if c.ChunkRows == 0 {
		c.ChunkRows = defaultChunkRows
	}
	if c.Throttle == nil {
		c.Throttle = func(context.Context) error { return nil }
	}
	if c.Observe == nil {
		c.Observe = func(Step) {}
	}
	return c
}

// maxMapName keeps the names of logs and triggers, which include the map's, short enough.
const maxMapName = 24

func (c MoverConfig) validate() error {
	switch {
	case c.Store == nil:
		return fmt.Errorf("%w: Store: is nil", ErrConfig)
	case len(c.Store.Name()) > maxMapName:
		return fmt.Errorf("%w: Store: the name of the map, %s, is longer than %d letters", ErrConfig, c.Store.Name(), maxMapName)
	case c.MaxPause < 0:
		return fmt.Errorf("%w: MaxPause: %v is negative", ErrConfig, c.MaxPause)
	case c.ChunkRows < 1 || c.ChunkRows > maxChunkRows:
		return fmt.Errorf("%w: ChunkRows: %d is not from 1 to %d", ErrConfig, c.ChunkRows, maxChunkRows)
	}
	return nil
}

// Mover moves slots between shards while the application reads and writes: it executes the
// moves that [sharding.Plan] lists. It is safe for concurrent use, and holds no connection
// between calls.
type Mover struct {
	cfg MoverConfig
}

// NewMover returns a mover, without touching a database. Its errors wrap
// ErrConfig and name the fields.
func NewMover(cfg MoverConfig) (*Mover, error) {
	if cfg.Store == nil {
		return nil, cfg.validate()
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Mover{cfg}, nil
}

// Moved is the result of a [Mover.Run].
type Moved struct {
	Slots int   // slots that this call moved to their new shards
	Rows  int64 // rows that this call copied; changes of them are not counted
	// Pause is the longest time for which the map kept slots closed. Programs refuse their keys for up to a
	// third of a lease's term longer, until they read the new map.
	Pause time.Duration
}

func (m *Moved) add(other Moved) {
	m.Slots += other.Slots
	m.Rows += other.Rows
	m.Pause = max(m.Pause, other.Pause)
}

// Run finishes moves that an earlier call has left unfinished, then makes these moves, and
// returns when all rows are on the new shards only. The moves are those of any one table of
// the map, as its tables move together. Slots that are already on their new shard are
// skipped, so the same call resumes after an interruption. Slots that go from one shard to
// the same other one are copied in one pass and switched at the same time: with fewer
// moves, fewer keys have to wait.
//
// Rows are copied, followed by triggers and compared as in a migration. Then all processes
// refuse the slots for a moment, the remaining changes are applied, the changed rows are
// compared again, and the map switches. The old rows are deleted when no process uses an
// older map any more. Missing tables are created on the new shards, without AUTO_INCREMENT
// and foreign keys. Rows are written past foreign keys between tables of the map, for which PostgreSQL
// demands the right to set session_replication_role; without it, Run returns ErrNotReady before anything moves.
//
// MariaDB fails a statement once that was prepared before the triggers were created and is
// executed afterwards: with error 1146 about a table shardid_log_slots_… or shard_fence. The statement has
// written nothing and must be repeated; [sharding.SlotMoving], and so package shardsql,
// turns the error into [sharding.ErrSlotMoving].
//
// At any point before the switch, [slotstore.Store.Abort] and a Run without moves undo
// everything. Errors wrap ErrLocked or ErrFenced when another mover works on the same
// shards, ErrUnsupported, ErrNotReady (a [PauseError] when MaxPause was exceeded),
// ErrChanged, or [sharding.ErrStaleMap] for a slot that is not on the shard from which it
// is to move.
func (m *Mover) Run(ctx context.Context, moves ...sharding.Move) (Moved, error) {
	var done Moved
	for {
		v, err := m.cfg.Store.Load(ctx)
		if err != nil {
			return done, fmt.Errorf("rebalance: move slots: %w", err)
		}
		next, err := m.next(v, moves)
		if err == nil && next == nil {
			return done, nil
		}
		if err == nil {
			b := &batch{cfg: m.cfg, slots: next}
			err = b.run(ctx)
			done.add(b.done)
		}
		if err != nil && !errors.Is(err, errOvertaken) {
			return done, fmt.Errorf("rebalance: move slots: %w", err)
		}
	}
}

// errOvertaken: the map changed before this mover led.
var errOvertaken = errors.New("the slots have changed")

// next returns the slots to move next, nil when there are none. Unfinished moves come
// first.
func (m *Mover) next(v slotstore.View, moves []sharding.Move) (*slots, error) {
	for _, slot := range v.Slots {
		if slot.State != slotstore.Active {
			return m.begun(v, slot), nil
		}
	}
	next := &slots{store: m.cfg.Store, version: v.Version}
	for _, move := range moves {
		slot, to, err := m.due(v, move)
		if err != nil {
			return nil, err
		}
		if slot.Shard == to {
			continue
		}
		if len(next.all) == 0 {
			next.from, next.to = slot.Shard, to
		}
		if slot.Shard == next.from && to == next.to {
			next.all = append(next.all, slot)
		}
	}
	if len(next.all) == 0 {
		return nil, nil //nolint:nilnil // there is nothing to do
	}
	return next, nil
}

// due returns the present state of a move's slot, and its new shard.
func (m *Mover) due(v slotstore.View, move sharding.Move) (slot slotstore.Slot, to int, err error) {
	if move.Slot < 0 || int(move.Slot) >= len(v.Slots) {
		return slot, 0, fmt.Errorf("%v: %w", move, sharding.ErrNoSlot)
	}
	slot = v.Slots[move.Slot]
	from, fromKnown := m.cfg.Store.ShardOf(move.From)
	to, toKnown := m.cfg.Store.ShardOf(move.To)
	switch {
	case !fromKnown || !toKnown:
		return slot, 0, fmt.Errorf("%w: %v: the map has no such targets; see slotstore.Config.Shards", ErrConfig, move)
	case slot.Shard != from && slot.Shard != to:
		return slot, 0, fmt.Errorf("%v: %w: the slot is on shard %d", move, sharding.ErrStaleMap, slot.Shard)
	}
	return slot, to, nil
}

// begun returns all slots that are in the same state as this one and are moving with it.
func (m *Mover) begun(v slotstore.View, first slotstore.Slot) *slots {
	next := &slots{store: m.cfg.Store, version: v.Version, from: first.Shard, to: first.Other}
	if first.State == slotstore.Moved {
		next.from, next.to = first.Other, first.Shard
	}
	for _, slot := range v.Slots {
		same := slot
		same.Slot = first.Slot
		if same == first {
			next.all = append(next.all, slot)
		}
	}
	return next
}
