// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/shardid/shardid/sharding"
)

// through writes a row of a slot on the second shard, in a transaction that uses the passage.
func through(ctx context.Context, t *testing.T, w *world, p *Passage, id, user int64) error {
	t.Helper()
	tx, err := w.dbs["b"].BeginTx(ctx, nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }()
	err = p.Run(ctx, tx, func() error {
		_, err := tx.ExecContext(ctx, "INSERT INTO orders_1 (id, user_id) VALUES (?, ?)", id, user)
		return err
	})
	if err != nil {
		return sharding.SlotMoving(err)
	}
	return tx.Commit()
}

func TestAPassageLetsOneTransactionWriteItsSlotsAndNoOthers(t *testing.T) {
	w := newWorld(t)
	_, s := w.created(t)
	ctx := t.Context()
	must(t, s.Copy(ctx, 1, 1, 2))
	v, err := s.Load(ctx)
	must(t, err)
	p, err := s.Passage(ctx, v.Slots[1], v.Slots[2])
	must(t, err)
	must(t, through(ctx, t, w, p, 1, 1))
	must(t, through(ctx, t, w, p, 2, 2))
	if err := through(ctx, t, w, p, 3, 3); !errors.Is(err, sharding.ErrSlotMoving) {
		t.Errorf("a slot of its own passed: %v", err)
	}
	if err := insertOn(ctx, w.dbs["b"], "orders_1", 4, 1); !errors.Is(err, sharding.ErrSlotMoving) {
		t.Errorf("others pass, too: %v", err)
	}
	must(t, s.Fence(ctx, 1, 2))
	if err := through(ctx, t, w, p, 5, 1); !errors.Is(err, sharding.ErrStaleMap) {
		t.Errorf("after the next step: %v", err)
	}
	if got := w.rows(t, 1); len(got) != 2 {
		t.Errorf("the new shard has %v", got)
	}
}

func TestAPassageNeedsSlotsThatMoveTogether(t *testing.T) {
	w := newWorld(t)
	_, s := w.created(t)
	ctx := t.Context()
	must(t, s.Copy(ctx, 1, 1))
	must(t, s.Copy(ctx, 1, 2))
	v, err := s.Load(ctx)
	must(t, err)
	for _, slots := range [][]Slot{nil, v.Slots[3:4], v.Slots[1:3]} {
		if _, err := s.Passage(ctx, slots...); !errors.Is(err, ErrState) {
			t.Errorf("%+v: %v", slots, err)
		}
	}
}

// The process that fenced the slot was paused while another one aborted the move and began it
// again: the rows are not there yet.
func TestAStepWithAnOlderMapIsRefused(t *testing.T) {
	w := newWorld(t)
	_, s := w.created(t)
	ctx := t.Context()
	must(t, s.Copy(ctx, 1, 1))
	must(t, s.Fence(ctx, 1))
	v, err := s.Load(ctx)
	must(t, err)
	paused := s.AsOf(v.Version)
	must(t, s.Abort(ctx, 1))
	must(t, s.Finish(ctx, 1))
	must(t, s.Copy(ctx, 1, 1))
	must(t, s.Fence(ctx, 1))
	if err := paused.Switch(ctx, 1); !errors.Is(err, sharding.ErrStaleMap) {
		t.Errorf("the paused one has switched: %v", err)
	}
	v, err = s.Load(ctx)
	must(t, err)
	must(t, s.AsOf(v.Version).Switch(ctx, 1))
}

func TestTheShardsOfAStoreAreThoseOfItsConfiguration(t *testing.T) {
	w := newWorld(t)
	_, s := w.created(t)
	if n, ok := s.ShardOf(sharding.Target{DB: "b", Table: "items_1"}); n != 1 || !ok {
		t.Error(n, ok)
	}
	if _, ok := s.ShardOf(sharding.Target{DB: "b", Table: "orders_0"}); ok {
		t.Error("a target of nobody has a shard")
	}
	for shard, want := range map[int]*sql.DB{0: w.dbs["a"], 1: w.dbs["b"], 2: nil, -1: nil} {
		if s.DB(shard) != want {
			t.Errorf("shard %d has another database", shard)
		}
	}
	tables := s.Tables()
	if len(tables) != 2 || tables[1].Name != "orders" || s.Target(tables[1], 1) != w.shards["orders"][1] || s.Name() != "shop" {
		t.Errorf("%+v", tables)
	}
	if sql, ok := SlotSQL(sharding.Low(3), "user_id"); !ok || sql == "" {
		t.Error(sql, ok)
	}
}
