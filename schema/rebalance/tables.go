// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

// open describes the tables of both shards, and creates those that the new one lacks.
func open(ctx context.Context, cfg MoverConfig, of *slots) (*openjob.Job, error) {
	known := openjob.Config{
		Name:     fmt.Sprintf("slots_%s_%d_%d", of.store.Name(), of.from, of.to),
		Observe:  func(step, table string, rows int64) { cfg.Observe(Step{Name: step, Table: table, Rows: rows}) },
		Waits:    func(cause error) { cfg.Observe(Step{Name: StepWaiting, Err: cause}) },
		RowError: rowError,
	}
	source, err := backend.Open(ctx, shardName(of.from), backend.FenceTable, of.store.DB(of.from))
	if err != nil {
		return nil, err
	}
	j := openjob.New(known, source)
	to, err := j.AddShards(ctx, shardName(of.to), of.store.DB(of.to))
	if err != nil {
		j.Close()
		return nil, err
	}
	for _, conf := range of.store.Tables() {
		j.AddTable(openjob.TableConfig{Table: conf}).AddTarget(of.store.Target(conf, of.to), to)
	}
	if err := describe(ctx, j, of.store, of.from); err != nil {
		j.Close()
		return nil, err
	}
	if err := prepare(ctx, j); err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

func shardName(n int) string { return "shard " + strconv.Itoa(n) }

// Check returns the error with which Run would refuse tables of the shards from which slots move, as these tables are now: one
// without a primary key of one integer column, or with a trigger, for example. It changes nothing.
func (m *Mover) Check(ctx context.Context, moves ...sharding.Move) error {
	checked := map[int]bool{}
	for _, move := range moves {
		from, known := m.cfg.Store.ShardOf(move.From)
		if !known {
			return fmt.Errorf("rebalance: check: %w: %v: the map has no such targets; see slotstore.Config.Shards", ErrConfig, move)
		}
		if checked[from] {
			continue
		}
		checked[from] = true
		if err := checkShard(ctx, m.cfg.Store, from); err != nil {
			return fmt.Errorf("rebalance: check: %w", err)
		}
	}
	return nil
}

func checkShard(ctx context.Context, store *slotstore.Store, shard int) error {
	source, err := backend.Open(ctx, shardName(shard), backend.FenceTable, store.DB(shard))
	if err != nil {
		return err
	}
	j := openjob.New(openjob.Config{Name: "slots_" + store.Name()}, source)
	defer j.Close()
	for _, conf := range store.Tables() {
		j.AddTable(openjob.TableConfig{Table: conf})
	}
	return describe(ctx, j, store, shard)
}

// describe reads the tables of a shard from which slots move, and refuses those that cannot be moved.
func describe(ctx context.Context, j *openjob.Job, store *slotstore.Store, from int) error {
	for _, t := range j.Tables {
		name := store.Target(t.Conf.Table, from).Table
		err := j.Source.Do(ctx, func(s *backend.Session) (err error) {
			t.Table, err = s.Database.Describe(ctx, s, name)
			return err
		})
		if err != nil {
			return err
		}
		if err := openjob.CheckTriggers(t.Table); err != nil {
			return err
		}
	}
	return checkForeignKeys(j)
}

// prepare creates the tables that the new shard lacks, compares the others, and checks rights.
func prepare(ctx context.Context, j *openjob.Job) error {
	for _, t := range j.Tables {
		to := t.Targets[0]
		if err := to.Database.Do(ctx, func(s *backend.Session) error { return makeOrCompare(ctx, j, s, t, to) }); err != nil {
			return fmt.Errorf("table %s on %s: %w", to.Name, to.Database.Label, err)
		}
	}
	for _, of := range []*backend.Database{j.Source, j.Shards[0]} {
		if err := mayIgnoreKeys(ctx, j, of); err != nil {
			return fmt.Errorf("%s: %w", of.Label, err)
		}
	}
	return nil
}

// makeOrCompare creates a table like the source's, or compares the existing one with it.
func makeOrCompare(ctx context.Context, j *openjob.Job, s *backend.Session, t *openjob.Table, to *openjob.Target) error {
	there, err := s.Database.Exists(ctx, s, to.Name)
	if err != nil {
		return err
	}
	if !there {
		return backend.MakeLike(ctx, s, j.Source, t.Table, to.Name)
	}
	found, err := s.Database.Describe(ctx, s, to.Name)
	if err != nil {
		return err
	}
	if why, fix := openjob.Misfit(t.Table, found); why != "" {
		return fmt.Errorf("%w: %s; %s", ErrNotReady, why, fix)
	}
	to.Keyed = found.HasKeys()
	return openjob.CheckTriggers(found)
}

// keyed reports whether tables of a shard are connected by foreign keys.
func keyed(j *openjob.Job, of *backend.Database) bool {
	return slices.ContainsFunc(j.Tables, func(t *openjob.Table) bool {
		return of == j.Source && t.HasKeys() || of == t.Targets[0].Database && t.Targets[0].Keyed
	})
}

// mayIgnoreKeys fails if the rows of a shard could not be written past its foreign keys: parents are deleted before their
// children, and a changed row is deleted and inserted again.
func mayIgnoreKeys(ctx context.Context, j *openjob.Job, of *backend.Database) error {
	if !keyed(j, of) {
		return nil
	}
	return of.Do(ctx, func(s *backend.Session) error {
		return pastKeys(ctx, s, func() error { return nil })
	})
}

// pastKeys calls f while the session ignores foreign keys. After an error the transaction must be rolled back.
func pastKeys(ctx context.Context, s *backend.Session, f func() error) error {
	if err := s.Database.IgnoreKeys(ctx, s, true); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return s.Database.IgnoreKeys(ctx, s, false)
}

// checkForeignKeys refuses foreign keys to tables outside of the map, whose rows stay on
// the old shard, and those by which InnoDB changes rows without running triggers.
func checkForeignKeys(j *openjob.Job) error {
	inside := func(name string) bool {
		return slices.ContainsFunc(j.Tables, func(t *openjob.Table) bool { return strings.EqualFold(t.Name, name) })
	}
	for _, t := range j.Tables {
		for _, fk := range append(slices.Clone(t.Parents), t.Children...) {
			if !inside(fk.Table) {
				return fmt.Errorf("%w: a foreign key connects %s with %s, which does not move with it; add that table to the map or drop the key", ErrUnsupported, t.Name, fk.Table)
			}
			if fk.Cascades() && j.Source.Name() == "mysql" {
				return fmt.Errorf("%w: a foreign key between %s and %s changes rows by itself, which no trigger sees; drop it", ErrUnsupported, t.Name, fk.Table)
			}
		}
	}
	return nil
}

// condition makes an SQL condition from a column of ids.
type condition func(column string) string

// among are, for each table, the condition that a row belongs to the slots.
func (s *slots) among(j *openjob.Job) []condition {
	list := make([]string, len(s.all))
	for i, slot := range s.all {
		list[i] = strconv.Itoa(int(slot.Slot))
	}
	var all []condition
	for _, t := range j.Tables {
		slot, ok := slotstore.SlotSQL(t.Conf.Rule, j.Source.Quote(t.Conf.Key))
		if !ok {
			panic("bug: the store has a rule that cannot be written in SQL")
		}
		is := slot + " IN (" + strings.Join(list, ", ") + ")"
		all = append(all, func(string) string { return is })
	}
	return all
}
