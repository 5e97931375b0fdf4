// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/transfer"
)

// where makes a condition from a column of ids.
type where func(column string) string

// selection is a set of rows of both sides.
type selection struct {
	where where
	ids   []int64 // of the side that serves, for tables whose ids are rewritten
}

// version is the content of a row in one place.
type version struct {
	place int
	hash  uint64
}

// total is the count and the sum of hashes of a set of rows.
type total struct {
	rows int64
	sum  uint64 // of the rows' hashes
}

func (t *total) add(hash uint64) {
	t.rows++
	t.sum += hash
}

// sourceTotals adds up the rows of the source by the target to which they belong; the last
// total is of rows without a target. It does not read the ids.
func (v *reader) sourceTotals(ctx context.Context, t *openjob.Table, k keys) (sums []total, err error) {
	err = v.Source.Do(ctx, func(s *backend.Session) error {
		sums = make([]total, len(t.Targets)+1)
		var route sql.NullString
		var hash sql.RawBytes
		odd := false
		err := s.Each(ctx, func(rows *sql.Rows) error {
			if err := rows.Scan(&route, &hash); err != nil {
				return err
			}
			row, err := versionOf(s, t, route, hash)
			if err != nil {
				odd = true
				return err
			}
			if row.place == openjob.Nowhere {
				row.place = len(t.Targets)
			}
			sums[row.place].add(row.hash)
			return nil
		}, fmt.Sprintf("SELECT %s, %s FROM %s WHERE %s",
			t.RouteText(s.Database, t.Name), backend.RowHash(s.Database, t.Columns), s.Database.Quote(t.Name), k.where(s.Database.Quote(t.Key))))
		if !odd {
			return err
		}
		if named := sourceRows(ctx, s, t, k.where, func(int64, version) {}); named != nil {
			return named
		}
		return err // the row was changed meanwhile
	})
	return sums, err
}

// targetTotal adds up the rows of a target, in the database where it can hash.
func (v *reader) targetTotal(ctx context.Context, t *openjob.Table, on *openjob.Target, k keys) (sum total, err error) {
	err = on.Database.Do(ctx, func(s *backend.Session) error {
		sum = total{}
		if on.Database.Name() == "sqlite" {
			return targetRows(ctx, s, t, on, k.where, func(_ int64, hash uint64) { sum.add(hash) })
		}
		return addUp(ctx, s, t, on, k, &sum)
	})
	return sum, err
}

// addUp adds up rows of a target in the database. A row without a hash is counted and adds
// nothing: the range then differs, and reading its rows shows why. Counting the hashes
// would make the database compute each of them twice.
func addUp(ctx context.Context, c *backend.Session, t *openjob.Table, on *openjob.Target, k keys, sum *total) error {
	return c.QueryRowContext(ctx, fmt.Sprintf("SELECT COUNT(*), COALESCE(SUM(%s), 0) FROM %s WHERE %s",
		backend.RowHash(on.Database, t.Columns), on.Database.Quote(on.Present()), k.where(on.Database.Quote(t.Key)))).Scan(&sum.rows, &sum.sum)
}

// sourceRows calls out with each row of the source whose id satisfies the condition, and
// with the target to which it belongs.
func sourceRows(ctx context.Context, c *backend.Session, t *openjob.Table, among where, out func(id int64, row version)) error {
	key := c.Database.Quote(t.Key)
	var id int64
	var route sql.NullString // as RawBytes, an empty text can be nil
	var hash sql.RawBytes
	return c.Each(ctx, func(rows *sql.Rows) error {
		if err := rows.Scan(&id, &route, &hash); err != nil {
			return err
		}
		row, err := versionOf(c, t, route, hash)
		if err != nil {
			return t.RowError(id, err)
		}
		out(id, row)
		return nil
	}, fmt.Sprintf("SELECT %s, %s, %s FROM %s WHERE %s",
		key, t.RouteText(c.Database, t.Name), backend.RowHash(c.Database, t.Columns), c.Database.Quote(t.Name), among(key)))
}

// versionOf makes a version from a source row's sharding key and hash.
func versionOf(c *backend.Session, t *openjob.Table, route sql.NullString, hash sql.RawBytes) (version, error) {
	var shardingKey any
	if route.Valid {
		shardingKey = route.String
	}
	place, err := t.Home(shardingKey, idmap.Dictionary{})
	if err != nil {
		return version{}, err
	}
	sum, err := backend.RowSum(c.Database, hash)
	transfer.Collect(len(hash))
	return version{place, sum}, err
}

// targetRows calls out with id and hash of each row of a target whose id satisfies the
// condition.
func targetRows(ctx context.Context, c *backend.Session, t *openjob.Table, on *openjob.Target, among where, out func(id int64, hash uint64)) error {
	key := c.Database.Quote(t.Key)
	var id int64
	var hash sql.RawBytes
	return c.Each(ctx, func(rows *sql.Rows) error {
		if err := rows.Scan(&id, &hash); err != nil {
			return err
		}
		sum, err := backend.RowSum(c.Database, hash)
		if err != nil {
			return t.RowErrorOn(on, id, err)
		}
		out(id, sum)
		transfer.Collect(len(hash))
		return nil
	}, fmt.Sprintf("SELECT %s, %s FROM %s WHERE %s",
		key, backend.RowHash(c.Database, t.Columns), c.Database.Quote(on.Present()), among(key)))
}

// rowComparison is the content of rows on both sides at one reading, by their ids.
type rowComparison struct {
	source map[int64]version
	shards map[int64][]version // in the order of the targets
}

// look reads the rows of source and targets, each at its own moment.
func (v *reader) look(ctx context.Context, t *openjob.Table, among selection) (s rowComparison, err error) {
	if s.source, err = v.lookAtSource(ctx, t, among); err == nil {
		s.shards, err = v.lookAtShards(ctx, t, among)
	}
	return s, err
}

// lookAgain reads the serving side once more, into a copy of s.
func (v *reader) lookAgain(ctx context.Context, t *openjob.Table, among selection, s rowComparison) (rowComparison, error) {
	var err error
	if v.behind {
		s.shards, err = v.lookAtShards(ctx, t, among)
	} else {
		s.source, err = v.lookAtSource(ctx, t, among)
	}
	return s, err
}

func (v *reader) lookAtShards(ctx context.Context, t *openjob.Table, among selection) (map[int64][]version, error) {
	all := map[int64][]version{}
	for place, target := range t.Targets {
		found, err := v.lookAtTarget(ctx, t, target, among)
		if err != nil {
			return nil, err
		}
		for id, hash := range found {
			all[id] = append(all[id], version{place, hash})
		}
	}
	return all, nil
}

func (v *reader) lookAtSource(ctx context.Context, t *openjob.Table, among selection) (found map[int64]version, err error) {
	if t.Rewrites != nil {
		return v.renumberedSource(ctx, t, among.ids)
	}
	err = v.Source.Do(ctx, func(s *backend.Session) error {
		found = map[int64]version{}
		return sourceRows(ctx, s, t, among.where, func(id int64, row version) { found[id] = row })
	})
	return found, err
}

func (v *reader) lookAtTarget(ctx context.Context, t *openjob.Table, on *openjob.Target, among selection) (found map[int64]uint64, err error) {
	if t.Rewrites != nil {
		return v.renumberedTarget(ctx, t, on, among.ids)
	}
	return Hashes(ctx, t, on, among.where)
}

// differing returns the ids of rows that differ between the sides, in no order.
func (s rowComparison) differing() (ids []int64) {
	for id, want := range s.source {
		if got := s.shards[id]; len(got) != 1 || got[0] != want {
			ids = append(ids, id)
		}
	}
	for id := range s.shards {
		if _, known := s.source[id]; !known {
			ids = append(ids, id)
		}
	}
	return ids
}

// sameRow reports whether two readings of a row are equal.
func (s rowComparison) sameRow(other rowComparison, id int64) bool {
	is, exists := s.source[id]
	was, existed := other.source[id]
	return exists == existed && is == was && slices.Equal(s.shards[id], other.shards[id])
}

// divergences are the differences of one row.
func (v *verifier) divergences(s rowComparison, t *openjob.Table, id int64) []Divergence {
	if v.behind {
		return s.ofRetired(t, id)
	}
	return s.ofShards(t, id)
}

// ofRetired compares a row of a retired table, to which changes of the shards are copied.
func (s rowComparison) ofRetired(t *openjob.Table, id int64) (found []Divergence) {
	is, known := s.source[id]
	rows := s.shards[id]
	add := func(k Kind) { found = append(found, Divergence{t.Conf.Name, id, k, "source/" + t.Name}) }
	switch {
	case !known && len(rows) == 0: // deleted meanwhile
	case !known:
		add(Missing)
	case len(rows) == 0:
		add(Extra)
	case len(rows) == 1 && rows[0].hash != is.hash:
		add(Different)
	}
	for _, row := range rows {
		if len(rows) > 1 && row.place != is.place || known && row.hash == is.hash && row.place != is.place {
			found = append(found, divergenceOf(t, id, Misplaced, row.place))
		}
	}
	return found
}

func divergenceOf(t *openjob.Table, id int64, k Kind, place int) Divergence {
	if place == openjob.Nowhere { // it waits for its parent
		return Divergence{t.Conf.Name, id, k, ""}
	}
	on := t.Targets[place]
	return Divergence{t.Conf.Name, id, k, on.Database.Label + "/" + on.Name}
}

// ofShards compares a row that the shards must have from the source.
func (s rowComparison) ofShards(t *openjob.Table, id int64) (found []Divergence) {
	want, exists := s.source[id]
	add := func(k Kind, place int) { found = append(found, divergenceOf(t, id, k, place)) }
	there := false
	for _, got := range s.shards[id] {
		switch {
		case !exists:
			add(Extra, got.place)
		case got.place != want.place:
			add(Misplaced, got.place)
		default:
			there = true
			if got.hash != want.hash {
				add(Different, got.place)
			}
		}
	}
	if exists && !there {
		add(Missing, want.place)
	}
	return found
}

// Hashes are the hashes of the rows whose ids satisfy a condition, by their ids.
func Hashes(ctx context.Context, t *openjob.Table, on *openjob.Target, among func(column string) string) (found map[int64]uint64, err error) {
	err = on.Database.Do(ctx, func(s *backend.Session) error {
		found = map[int64]uint64{}
		return targetRows(ctx, s, t, on, among, func(id int64, hash uint64) { found[id] = hash })
	})
	return found, err
}
