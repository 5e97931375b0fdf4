// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/sharding"
)

// fences are the fences of all tables of all shards.
type fences struct{ layout *layout }

// shard returns the database of a shard.
func (f fences) shard(ctx context.Context, n int) (base, error) {
	name := f.layout.first()[n].DB
	b, err := open(ctx, f.layout.router.DB(name))
	if err != nil {
		return base{}, fmt.Errorf("database %q of shard %d: %w", name, n, err)
	}
	return b, nil
}

// guard makes a shard refuse the slots that it does not own. It inserts the rows before the
// triggers that read them. It does not change existing rows, because v may be older than they are.
func (f fences) guard(ctx context.Context, n int, v View) error {
	b, err := f.shard(ctx, n)
	if err != nil {
		return err
	}
	for _, ddl := range []string{fenceDDL, fenceTableDDL} {
		if err := sqlrun.Create(ctx, b.db, dialect.Text(b.server, fmt.Sprintf(ddl, ending(b.server)))); err != nil {
			return err
		}
	}
	err = b.do(ctx, func(t tx) error {
		rows := make([][]any, len(v.Slots))
		for i, slot := range v.Slots {
			rows[i] = []any{f.layout.name, n, slot.Slot, fencedOn(slot, n), slot.Version}
		}
		if err := t.insert(ctx, `"shard_fence" ("name", "shard", "slot", "fenced", "version")`, rows, upsert(t.server, `"name", "shard", "slot"`)); err != nil {
			return err
		}
		tables := make([][]any, len(f.layout.tables))
		for i, of := range f.layout.tables {
			tables[i] = []any{f.layout.targets[of.Name][n].Table, f.layout.name}
		}
		return t.insert(ctx, `"shard_fence_table" ("table_name", "name")`, tables, upsert(t.server, `"table_name"`, "name"))
	})
	if err != nil {
		return err
	}
	for _, t := range f.layout.tables {
		one := fence{f.layout.name, n, f.layout.targets[t.Name][n].Table, t.Key, t.Rule, b.server}
		if err := one.install(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// A shard refuses writes of a slot unless its fence is 0.
const (
	fenced = 1
	empty  = 2 // and the rows that were left behind there are deleted
)

// fencedOn is 0 on the shard that accepts writes of the slot, and fenced on all others.
func fencedOn(slot Slot, shard int) int {
	if slot.Shard == shard && slot.State != Fenced {
		return 0
	}
	return fenced
}

// markEmpty changes the fences of the slots on the shard that has no rows of them any more, unless they have moved since. When a replica of
// it has received this change, it has no such rows either; package shardsql reads it only then.
func (f fences) markEmpty(ctx context.Context, slots []Slot) error {
	due := map[fenceChange][]Slot{}
	for _, slot := range slots {
		c := fenceChange{slot.Other, empty, slot.Version}
		due[c] = append(due[c], slot)
	}
	for c, of := range due {
		b, err := f.shard(ctx, c.shard)
		if err == nil {
			err = b.do(ctx, func(t tx) error {
				return t.exec(ctx, `UPDATE "shard_fence" SET "fenced" = ? WHERE `+f.rows(c.shard, of)+` AND "fenced" = ? AND "version" = ?`, c.fenced, fenced, c.version)
			})
		}
		if err != nil {
			return fmt.Errorf("slots %s on shard %d: %w", numbers(of), c.shard, err)
		}
	}
	return nil
}

// fenceChange is the change on one shard for slots that changed in one version.
type fenceChange struct {
	shard, fenced int
	version       int64
}

// align applies the map to both shards of the slots. A fence stores the version that set it, so
// that a late caller with an older view changes nothing. Fences close before others open.
func (f fences) align(ctx context.Context, slots []Slot) error {
	due := map[fenceChange][]Slot{}
	for _, slot := range slots {
		for _, shard := range []int{slot.Shard, slot.Other} {
			if shard != nowhere {
				c := fenceChange{shard, fencedOn(slot, shard), slot.Version}
				due[c] = append(due[c], slot)
			}
		}
	}
	for _, c := range slices.SortedFunc(maps.Keys(due), func(a, b fenceChange) int {
		return cmp.Or(b.fenced-a.fenced, a.shard-b.shard, cmp.Compare(a.version, b.version))
	}) {
		if err := f.set(ctx, c, due[c]); err != nil {
			return fmt.Errorf("slots %s on shard %d: %w", numbers(due[c]), c.shard, err)
		}
	}
	return nil
}

// set changes all of them at once. If it changed them one by one, the last ones would be closed for
// longer.
func (f fences) set(ctx context.Context, c fenceChange, slots []Slot) error {
	b, err := f.shard(ctx, c.shard)
	if err != nil {
		return err
	}
	return b.do(ctx, func(t tx) error {
		// A late caller leaves the mark of an empty slot.
		if err := t.exec(ctx, `UPDATE "shard_fence" SET "fenced" = ?, "version" = ? WHERE `+f.rows(c.shard, slots)+` AND ("version" < ? OR "version" = ? AND "fenced" <> ?)`,
			c.fenced, c.version, c.version, c.version, empty); err != nil {
			return err
		}
		all, right, closed := 0, 0, c.fenced
		if closed == fenced {
			closed = empty
		}
		err := t.row(ctx, `SELECT COUNT(*), COALESCE(SUM(CASE WHEN "version" = ? AND ("fenced" = ? OR "fenced" = ?) THEN 1 ELSE 0 END), 0) FROM "shard_fence" WHERE `+f.rows(c.shard, slots),
			c.version, c.fenced, closed).Scan(&all, &right)
		switch {
		case err != nil:
			return err
		case all < len(slots):
			return fmt.Errorf("%d of their rows are missing in shard_fence; call Copy first", len(slots)-all)
		case right < len(slots):
			return fmt.Errorf("%w: they have changed meanwhile; load the map", sharding.ErrStaleMap)
		}
		return nil
	})
}

// rows returns the condition for the rows of slots in a shard's shard_fence.
func (f fences) rows(shard int, slots []Slot) string {
	return fmt.Sprintf(`"name" = '%s' AND "shard" = %d AND "slot" IN (%s)`, f.layout.name, shard, numbers(slots))
}

// askTimeout is how long a shard may take to say which version it knows.
const askTimeout = 2 * time.Second

// newest returns the newest version that the shards know. It leaves out databases that do not answer,
// because a process must start without them, and those that no slot has left or reached.
func (f fences) newest(ctx context.Context) int64 {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	shards := map[string]int{} // by their databases
	for n, target := range f.layout.first() {
		shards[target.DB] = n
	}
	known := make(chan int64, len(shards))
	for _, n := range shards {
		go func() {
			var version int64
			if b, err := f.shard(ctx, n); err == nil {
				_ = b.row(ctx, `SELECT COALESCE(MAX("version"), 0) FROM "shard_fence" WHERE "name" = ?`, f.layout.name).Scan(&version)
			}
			known <- version
		}()
	}
	var newest int64
	for range shards {
		newest = max(newest, <-known)
	}
	return newest
}

// complete returns an error if a map lacks changes that the shards know; newest was called before the
// map was read, because each change is in the map first.
func complete(v View, newest int64) error {
	if newest <= v.Version {
		return nil
	}
	return fmt.Errorf("%w: it has version %d, and a shard knows version %d, so the map's database has lost changes, by a fail-over or a restored backup: "+
		"let the map have the owners of shard_fence, as the page on rebalancing says", sharding.ErrStaleMap, v.Version, newest)
}
