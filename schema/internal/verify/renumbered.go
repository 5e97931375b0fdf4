// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"database/sql"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/schema/internal/transfer"
)

// Rows whose ids change have another order on the shards, and no database can add up rows
// of another one. So they are compared one by one, by the ids that the logs have at the
// time: the source's until the switch, the shards' after it.

// renumbered compares a table with columns that are rewritten: first each row of the
// source, then the rows of the shards that belong to no row of the source.
func (v *verifier) renumbered(ctx context.Context, t *openjob.Table, low proto.Bound) error {
	for at := (proto.Bound{}); at != low; {
		end, err := v.rangeEnd(ctx, t, at)
		if err != nil {
			return err
		}
		if low.Less(end) {
			end = low
		}
		if err := v.compareRenumbered(ctx, t, keys{at, end}); err != nil {
			return err
		}
		at = end
	}
	for _, on := range t.Targets {
		if err := transfer.EachKey(ctx, t, on, func(keys []int64) error { return v.strays(ctx, t, on, keys, low) }); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) compareRenumbered(ctx context.Context, t *openjob.Table, k keys) error {
	v.result.Ranges++
	olds, err := v.sourceKeys(ctx, t, k.where)
	if err != nil {
		return err
	}
	v.result.Rows += int64(len(olds))
	ids := olds
	if v.behind {
		if ids, err = v.counterparts(ctx, t, olds, idmap.ToShards); err != nil {
			return err
		}
		v.result.Unsettled += int64(len(olds) - len(ids)) // these have no counterpart, so no shard has them
	}
	for some := range slices.Chunk(ids, settleAtOnce*rangesPerChunk) {
		seen, err := v.look(ctx, t, selection{ids: some})
		if err != nil {
			return err
		}
		if err := v.settleAll(ctx, t, seen.differing()); err != nil {
			return err
		}
		v.Observe(openjob.StepCompared, t, int64(len(some)))
	}
	return nil
}

// strays settles the rows of a shard that have no row on the source.
func (v *verifier) strays(ctx context.Context, t *openjob.Table, on *openjob.Target, keys []int64, low proto.Bound) error {
	d, err := v.dictionaryOf(ctx, t, keys, idmap.ToSource)
	if err != nil {
		return err
	}
	olds := map[int64]int64{} // by the shard's id
	for _, key := range keys {
		if old, err := d.Turn(t.IDs, key); err == nil {
			olds[key] = old
		}
	}
	list := make([]int64, 0, len(olds))
	for _, old := range olds {
		list = append(list, old)
	}
	found, err := v.sourceKeys(ctx, t, func(column string) string { return inList(column, list) })
	if err != nil {
		return err
	}
	there := map[int64]bool{}
	for _, old := range found {
		there[old] = true
	}
	var suspects []int64
	for _, key := range keys {
		old, known := olds[key]
		switch {
		case known && there[old] || known && !v.behind && !low.Covers(old):
		case v.behind:
			suspects = append(suspects, key)
		case known:
			suspects = append(suspects, old)
		default:
			v.foreign(t, on, key)
		}
	}
	return v.settleAll(ctx, t, suspects)
}

// foreign reports a row that cannot have come from the source: no log entry could name it.
func (v *verifier) foreign(t *openjob.Table, on *openjob.Target, key int64) {
	v.result.Suspects++
	v.result.Unsettled++
	v.result.add([]Divergence{{t.Conf.Name, key, Extra, on.Database.Label + "/" + on.Name}})
}

func inList(column string, ids []int64) string {
	if len(ids) == 0 {
		return "1 = 0"
	}
	return column + " IN (" + backend.IDList(ids) + ")"
}

// sourceKeys returns ids of the source.
func (v *reader) sourceKeys(ctx context.Context, t *openjob.Table, among where) (ids []int64, err error) {
	key := v.Source.Quote(t.Key)
	err = v.Source.Do(ctx, func(s *backend.Session) error {
		ids = nil
		return s.Each(ctx, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		}, fmt.Sprintf("SELECT %s FROM %s WHERE %s", key, s.Database.Quote(t.Name), among(key)))
	})
	return ids, err
}

func (v *reader) dictionaryOf(ctx context.Context, t *openjob.Table, ids []int64, way idmap.Direction) (idmap.Dictionary, error) {
	wanted := idmap.Wanted{}
	for _, id := range ids {
		wanted.Add(t.IDs, id)
	}
	return v.MapTable().LookUp(ctx, v.Source, wanted, way)
}

// counterparts returns the ids of the other side, without those that have none.
func (v *reader) counterparts(ctx context.Context, t *openjob.Table, ids []int64, way idmap.Direction) ([]int64, error) {
	named, err := v.named(ctx, t, ids, way)
	list := make([]int64, 0, len(named))
	for other := range named {
		list = append(list, other)
	}
	return list, err
}

// named returns the ids by those of the other side.
func (v *reader) named(ctx context.Context, t *openjob.Table, ids []int64, way idmap.Direction) (map[int64]int64, error) {
	d, err := v.dictionaryOf(ctx, t, ids, way)
	if err != nil {
		return nil, err
	}
	named := make(map[int64]int64, len(ids))
	for _, id := range ids {
		if other, err := d.Turn(t.IDs, id); err == nil {
			named[other] = id
		}
	}
	return named, nil
}

// byName returns the ids by which rows of a side are selected, and for each the id by which
// rows are reported.
func (v *reader) byName(ctx context.Context, t *openjob.Table, ids []int64, onShards bool) (list []int64, names map[int64]int64, err error) {
	names = make(map[int64]int64, len(ids))
	if onShards == v.behind {
		for _, id := range ids {
			names[id] = id
		}
		return ids, names, nil
	}
	if names, err = v.named(ctx, t, ids, idmap.Direction(onShards)); err != nil {
		return nil, nil, err
	}
	for id := range names {
		list = append(list, id)
	}
	return list, names, nil
}

// rawRow is a row whose ids are not yet translated.
type rawRow struct {
	id    int64
	route any
	hash  uint64 // of the columns that are not rewritten
	ids   []sql.NullInt64
}

// readRawRows reads rows of either side.
func readRawRows(ctx context.Context, c *backend.Session, t *openjob.Table, name, route, condition string) ([]rawRow, error) {
	var plain []backend.Column
	list := []string{c.Database.Quote(t.Key), route, "'0'"}
	for i, col := range t.Columns {
		if t.Rewrites[i] == nil {
			plain = append(plain, col)
		} else {
			list = append(list, c.Database.Quote(col.Name))
		}
	}
	if len(plain) > 0 {
		list[2] = backend.RowHash(c.Database, plain)
	}
	var all []rawRow
	err := c.Each(ctx, func(rows *sql.Rows) error {
		var raw sql.RawBytes
		r := rawRow{ids: make([]sql.NullInt64, len(t.Columns)-len(plain))}
		dest := []any{&r.id, &r.route, &raw}
		for i := range r.ids {
			dest = append(dest, &r.ids[i])
		}
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		if b, ok := r.route.([]byte); ok {
			r.route = string(b)
		}
		var err error
		if r.hash, err = backend.RowSum(c.Database, raw); err != nil {
			return t.RowError(r.id, err)
		}
		all = append(all, r)
		return nil
	}, "SELECT "+strings.Join(list, ", ")+" FROM "+c.Database.Quote(name)+" WHERE "+condition)
	return all, err
}

// sum is the row's hash with its ids on the shards.
func (r rawRow) sum() uint64 {
	h := fnv.New64a()
	write := func(n uint64) { // Write of a hash does not fail
		_, _ = h.Write(strconv.AppendUint([]byte{','}, n, 10))
	}
	write(r.hash)
	for _, id := range r.ids {
		if id.Valid {
			write(1)
		}
		write(uint64(id.Int64))
	}
	return h.Sum64()
}

// renumberedSource reads rows of the source as they must be on the shards.
func (v *reader) renumberedSource(ctx context.Context, t *openjob.Table, ids []int64) (map[int64]version, error) {
	list, names, err := v.byName(ctx, t, ids, false)
	if err != nil {
		return nil, err
	}
	var rows []rawRow
	err = v.Source.Do(ctx, func(s *backend.Session) (err error) {
		rows, err = readRawRows(ctx, s, t, t.Name, t.RouteText(s.Database, t.Name), inList(s.Database.Quote(t.Key), list))
		return err
	})
	if err != nil {
		return nil, err
	}
	wanted := idmap.Wanted{}
	for _, r := range rows {
		r.want(wanted, t)
	}
	d, err := v.MapTable().LookUp(ctx, v.Source, wanted, idmap.ToShards)
	if err != nil {
		return nil, err
	}
	found := make(map[int64]version, len(rows))
	for _, r := range rows {
		found[names[r.id]] = r.onShards(t, d)
	}
	return found, nil
}

func (r rawRow) want(wanted idmap.Wanted, t *openjob.Table) {
	at := 0
	for _, ids := range t.Rewrites {
		if ids == nil {
			continue
		}
		wanted.Add(ids, r.ids[at].Int64)
		at++
	}
	t.WantRoute(wanted, r.route)
}

// onShards is the row of the source as it must be on the shards. If one of its ids has no
// counterpart, it belongs to no shard.
func (r rawRow) onShards(t *openjob.Table, d idmap.Dictionary) version {
	at := 0
	for _, ids := range t.Rewrites {
		if ids == nil {
			continue
		}
		id, err := d.Turn(ids, r.ids[at].Int64)
		if err != nil {
			return version{place: openjob.Nowhere}
		}
		r.ids[at].Int64 = id
		at++
	}
	place, err := t.Home(r.route, d)
	if err != nil {
		place = openjob.Nowhere
	}
	return version{place, r.sum()}
}

// renumberedTarget reads rows of a target.
func (v *reader) renumberedTarget(ctx context.Context, t *openjob.Table, on *openjob.Target, ids []int64) (map[int64]uint64, error) {
	list, names, err := v.byName(ctx, t, ids, true)
	if err != nil {
		return nil, err
	}
	found := map[int64]uint64{}
	err = on.Database.Do(ctx, func(s *backend.Session) error {
		rows, err := readRawRows(ctx, s, t, on.Present(), "NULL", inList(s.Database.Quote(t.Key), list))
		for _, r := range rows {
			found[names[r.id]] = r.sum()
		}
		return err
	})
	return found, err
}
