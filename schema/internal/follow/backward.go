// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/transfer"
)

// Backward are the streams from the shards to the retired tables, one for each database.
// One goroutine uses all of them, as several may have entries of one row.
func (ss *Streams) Backward() []*Stream {
	all := make([]*Stream, len(ss.state.Shards))
	for i, side := range ss.state.Shards {
		all[i] = &Stream{of: ss, from: side, log: ss.state.BackTable(), ends: Ends{ss.fetchFromShards, ss.putOnSource}}
	}
	return all
}

// fetchFromShards reads rows from all shards. A row that moves from one shard to another
// may be found on both or on neither; the log entries of the move have it read again. When
// the rows exceed the limits, it reads again with fewer ids.
func (ss *Streams) fetchFromShards(ctx context.Context, t *openjob.Table, ids []int64, most transfer.Limits) (all []backend.Row, n int, err error) {
	n = len(ids)
	for {
		if most.Rows > 0 {
			n = min(n, most.Rows)
		}
		var tooLarge *transfer.TooLargeError
		all, err = ss.fetchAll(ctx, t, ids[:n], most)
		if !errors.As(err, &tooLarge) || n == 1 {
			break
		}
		ss.budget.Learn(t, all)
		n, most.Rows = (n+1)/2, ss.budget.Fitting(t, most.Bytes)
	}
	if err != nil {
		return nil, 0, err
	}
	return all, n, transfer.Convert(ctx, ss.leader.IDWriter(), t, all, idmap.ToSource)
}

// fetchAll reads all rows with these ids. When they exceed the limits, the error is a
// TooLargeError, with the rows read so far. With most.First, a single id, whose row several
// shards may have, never exceeds them.
func (ss *Streams) fetchAll(ctx context.Context, t *openjob.Table, ids []int64, most transfer.Limits) (all []backend.Row, err error) {
	held := 0
	for _, to := range t.Targets {
		name := to.Present()
		var rows []backend.Row
		more := false
		of := transfer.Limits{Bytes: max(0, most.Bytes-held), First: most.First && len(ids) == 1}
		err := ss.leader.From(to.Database).Do(ctx, func(s *backend.Session) (err error) {
			rows, more, err = transfer.Read(ctx, s, transfer.Reading{Limits: of, Table: t, Name: name, Where: backend.ColumnOf(s.Database, name, t.Key) + " IN (" + backend.IDList(ids) + ")", Routed: false, About: len(ids)})
			return err
		})
		var tooLarge *transfer.TooLargeError
		if errors.As(err, &tooLarge) {
			return all, &transfer.TooLargeError{Bytes: held + tooLarge.Bytes}
		}
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
		for i := range rows {
			held += rows[i].Weight
		}
		if more {
			return all, &transfer.TooLargeError{Bytes: most.Bytes + 1}
		}
	}
	return all, nil
}

// putOnSource writes the rows into the retired table. A row that two shards have is moving
// between them; it waits until one of them has deleted it.
func (ss *Streams) putOnSource(ctx context.Context, t *openjob.Table, ids []int64, rows []backend.Row) (refused []int64, err error) {
	doubled := doubledIn(rows)
	ids = slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return doubled[id] })
	rows = slices.DeleteFunc(rows, func(r backend.Row) bool { return doubled[r.ID] })
	keys, err := ss.keysOf(ctx, t, ids, idmap.ToSource)
	if err != nil {
		return nil, err
	}
	err = ss.leader.On(ctx, ss.state.Source, func(s *backend.Session) error {
		if err := openRetired(ctx, s, t, true); err != nil {
			return err
		}
		if err := transfer.Remove(ctx, s, t, t.Name, keys); err != nil {
			return err
		}
		if refused, err = transfer.Store(ctx, s, t, t.Name, rows); err != nil {
			return err
		}
		return openRetired(ctx, s, t, false)
	})
	return slices.AppendSeq(refused, maps.Keys(doubled)), err
}

// openRetired allows the session to write to a retired table, ignoring foreign keys, or
// forbids it again.
func openRetired(ctx context.Context, s *backend.Session, t *openjob.Table, open bool) error {
	if t.HasKeys() {
		if err := s.Database.IgnoreKeys(ctx, s, open); err != nil {
			return err
		}
	}
	return s.Database.PassBarrier(ctx, s, open)
}

func doubledIn(rows []backend.Row) map[int64]bool {
	seen, doubled := map[int64]bool{}, map[int64]bool{}
	for _, r := range rows {
		if seen[r.ID] {
			doubled[r.ID] = true
		}
		seen[r.ID] = true
	}
	return doubled
}
