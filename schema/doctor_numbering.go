// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"fmt"
	"slices"

	"github.com/shardid/shardid/sharding"
)

// numbering compares how a shard numbers its rows with what the rule requires. In SQLite a
// rowid key always numbers rows that come without an id, so that it says nothing about who
// gives the ids.
func (d *databaseScan) numbering(ctx context.Context, s session, scan *tableScan) error {
	key, single := scan.facts.key()
	if !single || !key.auto || s.Name() == "sqlite" {
		return nil
	}
	slot, alone := scan.ownSlot()
	rule := sharding.Describe(scan.table.Rule)
	if scan.table.Key != key.name || !alone || !numbersRows(rule.Kind) {
		scan.find(ShardNumbersRows, Warning, fmt.Sprintf("the table numbers %s by itself, so two shards give the same id to rows that come without one", key.name),
			"fill the ids by a generator and remove AUTO_INCREMENT or IDENTITY from the column")
		return nil
	}
	got, err := readNumbers(ctx, s, key)
	if err != nil {
		return err
	}
	if rule.Kind == sharding.KindEpochs { // the right numbers depend on the epoch of all shards
		scan.counter = &sharding.Counter{Slot: slot, Next: int64(key.counter), Offset: int(got.offset), Step: int(got.step)}
		return nil
	}
	scan.compareNumbers(key.name, got, numbers{int64((rule.Offset+int(slot)-1+rule.Slots)%rule.Slots + 1), int64(rule.Slots)})
	return nil
}

// numbersRows reports whether the rule sets how servers number their own rows.
func numbersRows(kind sharding.Kind) bool {
	return slices.Contains([]sharding.Kind{sharding.KindOffsetStep, sharding.KindMod, sharding.KindEpochs}, kind)
}

// numbers are the first value of a column and its increment; offset is at most step.
type numbers struct{ offset, step int64 }

// ownSlot returns the slot of a shard that has just one.
func (scan *tableScan) ownSlot() (own sharding.Slot, alone bool) {
	n := 0
	for slot := range sharding.Slot(scan.table.Rule.Slots()) {
		if target, _ := scan.table.Map.Target(slot); target.DB == scan.Database && target.Table == scan.Physical {
			own = slot
			n++
		}
	}
	return own, n == 1
}

func (scan *tableScan) compareNumbers(column string, got, want numbers) {
	if got == want {
		return
	}
	scan.find(WrongNumbering, Error, fmt.Sprintf("it numbers %s from %d by steps of %d; the rule needs %d and %d", column, got.offset, got.step, want.offset, want.step),
		fmt.Sprintf("set offset %d and step %d before it gives another id (auto_increment_offset and auto_increment_increment; in PostgreSQL ALTER SEQUENCE)", want.offset, want.step))
}

// readNumbers reads the settings that the next connection of an application gets.
func readNumbers(ctx context.Context, s session, key column) (numbers, error) {
	query, args := "SELECT @@GLOBAL.auto_increment_offset, @@GLOBAL.auto_increment_increment", []any(nil)
	if s.Name() == "postgres" {
		query, args = "SELECT (q.seqstart - 1) % q.seqincrement + 1, q.seqincrement FROM pg_sequence q WHERE q.seqrelid = $1::text::regclass", []any{key.sequence}
	}
	var n numbers
	err := s.QueryRowContext(ctx, query, args...).Scan(&n.offset, &n.step)
	return n, err
}

// unarmed asks the rule whether all servers of a table may give ids of its last epoch.
func unarmed(tables []*tableScan) []ShardFinding {
	var counters []sharding.Counter
	for _, scan := range tables {
		if scan.counter != nil {
			counters = append(counters, *scan.counter)
		}
	}
	if len(counters) == 0 {
		return nil
	}
	rule, ok := tables[0].table.Rule.(sharding.EpochRule)
	if !ok {
		return nil
	}
	if err := rule.Check(1, counters); err != nil {
		return []ShardFinding{{
			Finding: Finding{EpochUnarmed, Error, err.Error(), "give each server the offset and step of the last epoch, or stop its inserts"},
			Place:   Place{Table: tables[0].Table, Database: tables[0].Database, Physical: tables[0].Physical},
		}}
	}
	return nil
}
