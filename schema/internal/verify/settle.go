// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

const (
	settleAtOnce = 500                    // rows in one query
	settleTries  = 10                     // readings of a suspect
	settlePause  = 100 * time.Millisecond // between readings, so that the runner can catch up
)

// settleAll settles rows that seemed to differ.
func (v *verifier) settleAll(ctx context.Context, t *openjob.Table, suspects []int64) error {
	v.result.Suspects += int64(len(suspects))
	for batch := range slices.Chunk(suspects, settleAtOnce) {
		if err := v.settle(ctx, t, batch); err != nil {
			return err
		}
	}
	return nil
}

// settle finds out which of the suspects really differ. A shard may differ because a change
// is pending, so a row counts only when the log had no entry of it before and after the
// reading and the source's row stayed the same. Two such readings must agree: a row could
// have changed and changed back between them.
func (v *verifier) settle(ctx context.Context, t *openjob.Table, ids []int64) error {
	var before map[int64]verdict
	for try := range settleTries {
		if try > 1 {
			if err := backend.Wait(ctx, settlePause); err != nil {
				return err
			}
		}
		now, err := v.readOnce(ctx, t, ids)
		if err != nil {
			return err
		}
		if ids, err = v.agreed(ctx, t, ids, before, now); err != nil || len(ids) == 0 {
			return err
		}
		before = now
	}
	v.result.Unsettled += int64(len(ids))
	return nil
}

// verdict is the result of one reading of one row.
type verdict struct {
	open  bool // a change was pending
	found []Divergence
	seen  rowComparison
}

func (d verdict) same(other verdict, id int64) bool {
	return !d.open && !other.open && d.seen.sameRow(other.seen, id)
}

// readOnce reads the rows once.
func (v *verifier) readOnce(ctx context.Context, t *openjob.Table, ids []int64) (map[int64]verdict, error) {
	among := selection{func(column string) string { return inList(column, ids) }, ids}
	waiting, err := v.inLog(ctx, t, ids)
	if err != nil {
		return nil, err
	}
	seen, err := v.look(ctx, t, among)
	if err != nil {
		return nil, err
	}
	again, err := v.lookAgain(ctx, t, among, seen)
	if err != nil {
		return nil, err
	}
	arrived, err := v.inLog(ctx, t, ids)
	if err != nil {
		return nil, err
	}
	verdicts := make(map[int64]verdict, len(ids))
	for _, id := range ids {
		open := waiting[id] || arrived[id] || !seen.sameRow(again, id)
		verdicts[id] = verdict{open, v.divergences(seen, t, id), seen}
	}
	return verdicts, nil
}

// logs are the logs that note changes of the serving side.
func (v *verifier) logs() (sides []*backend.Database, name string) {
	if v.behind {
		return v.Shards, v.BackTable()
	}
	return []*backend.Database{v.Source}, v.LogTable()
}

// inLog returns which of the rows have entries.
func (v *verifier) inLog(ctx context.Context, t *openjob.Table, ids []int64) (map[int64]bool, error) {
	all := map[int64]bool{}
	sides, log := v.logs()
	for _, side := range sides {
		queries := []string{fmt.Sprintf("SELECT id FROM %s WHERE tbl = %d AND id IN (%s)", side.Quote(log), t.Number, backend.IDList(ids))}
		if !v.behind {
			queries = append(queries, v.stillBelow(t, ids)...)
		}
		err := side.Do(ctx, func(s *backend.Session) error {
			for _, query := range queries {
				open, err := s.IDs(ctx, query)
				if err != nil {
					return err
				}
				for _, id := range open {
					all[id] = true
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// stillBelow returns queries for those of the rows that still have to be checked because of
// log entries of rows above them.
func (v *verifier) stillBelow(t *openjob.Table, ids []int64) (queries []string) {
	if v.Source.Name() != "postgres" { // on the other databases, triggers note these rows themselves
		return nil
	}
	for _, above := range v.Tables {
		for _, d := range v.RoutedBelow(above) {
			if d.Number == t.Number {
				queries = append(queries, backend.StillBelow(v.Source, v.LogTable(), d, above.Number, ids))
			}
		}
	}
	return queries
}

// agreed records the rows about which two readings agree, and returns the others. A reading
// without a difference needs no second one.
func (v *verifier) agreed(ctx context.Context, t *openjob.Table, ids []int64, before, now map[int64]verdict) (left []int64, err error) {
	var differ []int64
	var found []Divergence
	for _, id := range ids {
		d := now[id]
		switch earlier, looked := before[id]; {
		case !d.open && len(d.found) == 0:
		case looked && d.same(earlier, id):
			differ = append(differ, id)
			found = append(found, d.found...)
		default:
			left = append(left, id)
		}
	}
	if len(differ) == 0 {
		return left, nil
	}
	if err := v.unchanged(ctx); err != nil {
		return nil, err
	}
	sides, log := v.logs() // any of the logs: the follower of an entry reads all shards
	if err := sides[0].Note(ctx, log, t.Number, differ); err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b Divergence) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Target, b.Target)) })
	v.result.Requeued += int64(len(differ))
	v.result.add(found)
	return left, nil
}
