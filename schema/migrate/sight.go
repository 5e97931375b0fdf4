package migrate

import (
	"context"
	"database/sql"
	"fmt"
)

// where makes a condition of a column of ids.
type where func(column string) string

// version is a row as it is in one place.
type version struct {
	place int
	hash  uint64
}

// total is what two sets of rows are compared by.
type total struct {
	rows int64
	sum  uint64 // of the rows' hashes
}

func (t *total) add(hash uint64) {
	t.rows++
	t.sum += hash
}

// sourceTotals adds up the rows of the source by the target they belong to.
func (v *verifier) sourceTotals(ctx context.Context, t *table, k keys) (sums []total, err error) {
	err = v.source.do(ctx, func(s *session) error {
		sums = make([]total, len(t.targets))
		return s.sourceRows(ctx, t, k.where, func(_ int64, row version) { sums[row.place].add(row.hash) })
	})
	return sums, err
}

// targetTotal has the database add up, where it can hash.
func (v *verifier) targetTotal(ctx context.Context, t *table, on *target, k keys) (sum total, err error) {
	err = on.side.do(ctx, func(s *session) error {
		sum = total{}
		if on.side.Name() == "sqlite" {
			return s.targetRows(ctx, t, on, k.where, func(_ int64, hash uint64) { sum.add(hash) })
		}
		return s.sum(ctx, t, on, k, &sum)
	})
	return sum, err
}

// sum adds up rows of a target in the database.
func (c *session) sum(ctx context.Context, t *table, on *target, k keys, sum *total) error {
	var hashed int64
	err := c.QueryRowContext(ctx, fmt.Sprintf("SELECT COUNT(*), COUNT(h), COALESCE(SUM(h), 0) FROM (SELECT %s AS h FROM %s WHERE %s) AS hashes",
		rowHash(on.side, t.columns), on.side.Quote(on.present()), k.where(on.side.Quote(t.key)))).Scan(&sum.rows, &hashed, &sum.sum)
	if err == nil && hashed != sum.rows {
		err = errNoHash
	}
	return err
}

// sourceRows calls out with each row of the source whose id fulfils the
// condition, and the place where it belongs.
func (c *session) sourceRows(ctx context.Context, t *table, among where, out func(id int64, row version)) error {
	key := c.side.Quote(t.key)
	return c.each(ctx, func(rows *sql.Rows) error {
		var id int64
		var shardingKey string
		var hash sql.RawBytes
		if err := rows.Scan(&id, &shardingKey, &hash); err != nil {
			return err
		}
		place, err := t.place(shardingKey)
		if err != nil {
			return &RowError{t.conf.Name, id, err}
		}
		sum, err := rowSum(c.side, hash)
		if err != nil {
			return &RowError{t.conf.Name, id, err}
		}
		out(id, version{place, sum})
		return nil
	}, fmt.Sprintf("SELECT %s, CAST(%s AS CHAR), %s FROM %s WHERE %s",
		key, c.side.Quote(t.conf.Key), rowHash(c.side, t.columns), c.side.Quote(t.name), among(key)))
}

// targetRows calls out with id and hash of each row of a target whose id
// fulfils the condition.
func (c *session) targetRows(ctx context.Context, t *table, on *target, among where, out func(id int64, hash uint64)) error {
	key := c.side.Quote(t.key)
	return c.each(ctx, func(rows *sql.Rows) error {
		var id int64
		var hash sql.RawBytes
		if err := rows.Scan(&id, &hash); err != nil {
			return err
		}
		sum, err := rowSum(c.side, hash)
		if err != nil {
			return &RowError{on.name, id, err}
		}
		out(id, sum)
		return nil
	}, fmt.Sprintf("SELECT %s, %s FROM %s WHERE %s",
		key, rowHash(c.side, t.columns), c.side.Quote(on.present()), among(key)))
}

// sight is what rows were like at one look, by their ids.
type sight struct {
	source map[int64]version
	shards map[int64][]version // in the order of the targets
}

// look reads source and targets, each at its own moment.
func (v *verifier) look(ctx context.Context, t *table, among where) (s sight, err error) {
	s.shards = map[int64][]version{}
	if s.source, err = v.lookAtSource(ctx, t, among); err != nil {
		return s, err
	}
	for place, target := range t.targets {
		found, err := v.lookAtTarget(ctx, t, target, among)
		if err != nil {
			return s, err
		}
		for id, hash := range found {
			s.shards[id] = append(s.shards[id], version{place, hash})
		}
	}
	return s, nil
}

func (v *verifier) lookAtSource(ctx context.Context, t *table, among where) (found map[int64]version, err error) {
	err = v.source.do(ctx, func(s *session) error {
		found = map[int64]version{}
		return s.sourceRows(ctx, t, among, func(id int64, row version) { found[id] = row })
	})
	return found, err
}

func (v *verifier) lookAtTarget(ctx context.Context, t *table, on *target, among where) (found map[int64]uint64, err error) {
	err = on.side.do(ctx, func(s *session) error {
		found = map[int64]uint64{}
		return s.targetRows(ctx, t, on, among, func(id int64, hash uint64) { found[id] = hash })
	})
	return found, err
}

// differing returns the ids of rows that are not the same on both sides, in no
// order.
func (s sight) differing() (ids []int64) {
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

// divergences says what is wrong with one row.
func (s sight) divergences(t *table, id int64) (found []Divergence) {
	want, exists := s.source[id]
	add := func(k Kind, place int) {
		on := t.targets[place]
		found = append(found, Divergence{t.conf.Name, id, k, on.side.name + "/" + on.name})
	}
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
