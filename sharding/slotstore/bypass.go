// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// Bypass calls f in a transaction on the database of the slot's other shard. In this transaction
// that shard accepts writes of the slot: copies while the slot moves there, and deletions after it
// has moved away. It accepts writes of no other transaction. Bypass commits if f returns nil, and
// otherwise rolls back. It calls f again after a conflict with another transaction.
func (s *Store) Bypass(ctx context.Context, slot sharding.Slot, f func(*sql.Tx) error) error {
	err := s.bypass(ctx, slot, f)
	if err != nil {
		return fmt.Errorf("slotstore: Bypass: %w", err)
	}
	return nil
}

func (s *Store) bypass(ctx context.Context, number sharding.Slot, f func(*sql.Tx) error) error {
	v, err := s.Load(ctx)
	if err != nil {
		return err
	}
	if number < 0 || int(number) >= len(v.Slots) {
		return fmt.Errorf("slot %d: %w", number, sharding.ErrNoSlot)
	}
	p, err := s.passage(ctx, v.Slots[number:number+1])
	if err != nil {
		return err
	}
	return base{s.DB(p.slots[0].Other), p.server}.do(ctx, func(t tx) error {
		return p.Run(ctx, t.Tx, func() error { return f(t.Tx) })
	})
}

// Passage allows writes of some slots on their other shard. [Store.Passage] creates it. It is safe
// for concurrent use.
type Passage struct {
	fences fences
	server dialect.Server
	slots  []Slot
}

// Passage is [Store.Bypass] for many rows and slots: the caller begins the transactions, and calls
// [Passage.Run] in each of them. The slots must be in the state in which [Store.Load] returned
// them, must have changed in one step, and must have the same other shard. After the next step of
// any of them, Run fails in every transaction.
func (s *Store) Passage(ctx context.Context, slots ...Slot) (*Passage, error) {
	p, err := s.passage(ctx, slots)
	if err != nil {
		return nil, fmt.Errorf("slotstore: Passage: %w", err)
	}
	return p, nil
}

func (s *Store) passage(ctx context.Context, slots []Slot) (*Passage, error) {
	if len(slots) == 0 {
		return nil, fmt.Errorf("%w: no slots were passed", ErrState)
	}
	for _, slot := range slots {
		if slot.Other == nowhere {
			return nil, fmt.Errorf("%w: slot %d is %s and on no other shard", ErrState, slot.Slot, slot.State)
		}
		if slot.Other != slots[0].Other || slot.Version != slots[0].Version {
			return nil, fmt.Errorf("%w: slots %d and %d do not move together", ErrState, slots[0].Slot, slot.Slot)
		}
	}
	b, err := s.fences.shard(ctx, slots[0].Other)
	return &Passage{s.fences, b.server, slots}, err
}

// Execer executes statements in one transaction: a *sql.Tx, or a *sql.Conn on which the caller has
// sent BEGIN.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Run calls f once. Before and after it, Run opens and closes the fences, which only this
// transaction sees. The transaction must be on the database of the slots' other shard. After an
// error it must be rolled back.
func (p *Passage) Run(ctx context.Context, in Execer, f func() error) error {
	if err := p.setFences(ctx, in, 0); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return p.setFences(ctx, in, fenced)
}

// setFences changes the fences if they have this version.
func (p *Passage) setFences(ctx context.Context, in Execer, to int) error {
	result, err := in.ExecContext(ctx, dialect.Text(p.server, `UPDATE "shard_fence" SET "fenced" = ? WHERE `+p.fences.rows(p.slots[0].Other, p.slots)+` AND "version" = ? AND "fenced" <> ?`),
		to, p.slots[0].Version, to)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != int64(len(p.slots)) {
		err = fmt.Errorf("%w: slots %s have changed meanwhile", sharding.ErrStaleMap, numbers(p.slots))
	}
	return err
}
