// SPDX-License-Identifier: Apache-2.0

package idmap

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
)

// Doer runs f on a connection of a database.
type Doer interface {
	Do(ctx context.Context, f func(*backend.Session) error) error
}

// Table is the name of a job's map table, which stores the new id of each row of the
// source.
type Table string

// LookUp reads counterparts from map tables.
func (m Table) LookUp(ctx context.Context, on Doer, ids Wanted, way Direction) (Dictionary, error) {
	d := Dictionary{way, map[*Renumbering]map[int64]int64{}}
	for r, wanted := range ids {
		d.known[r] = map[int64]int64{}
		err := on.Do(ctx, func(s *backend.Session) error {
			return m.read(ctx, s, r, slices.Sorted(maps.Keys(wanted)), way, d.known[r])
		})
		if err != nil {
			return d, fmt.Errorf("read the map of ids: %w", err)
		}
	}
	return d, nil
}

const mapRows = 1000 // in one statement

func (m Table) read(ctx context.Context, s *backend.Session, r *Renumbering, ids []int64, way Direction, into map[int64]int64) error {
	from, to := way.columns()
	for some := range slices.Chunk(ids, mapRows) {
		err := s.Each(ctx, func(rows *sql.Rows) error {
			var is, becomes int64
			err := rows.Scan(&is, &becomes)
			into[is] = becomes
			return err
		}, fmt.Sprintf("SELECT %s, %s FROM %s WHERE tbl = %d AND %[1]s IN (%[5]s)", s.Database.Quote(from), s.Database.Quote(to), s.Database.Quote(string(m)), r.Number, backend.IDList(some)))
		if err != nil {
			return err
		}
	}
	return nil
}

// Writer extends the map table, for the runner that leads.
type Writer struct {
	Table

	Source   *backend.Database
	From     Doer                                                            // reads the source
	OnSource func(ctx context.Context, f func(*backend.Session) error) error // in a transaction in which this runner leads
	Persist  func(ctx context.Context) error                                 // commits what was written, if a lock would delay that
}

// Dictionary returns the counterparts of all these ids. It first commits new ones for ids
// that have none, so that no row is written with an uncommitted id.
func (w Writer) Dictionary(ctx context.Context, ids Wanted, way Direction) (Dictionary, error) {
	d, err := w.LookUp(ctx, w.From, ids, way)
	if err != nil {
		return d, err
	}
	for r, wanted := range ids {
		for tries := 0; ; tries++ {
			missing := missingFrom(d.known[r], wanted)
			if len(missing) == 0 {
				break
			}
			err := w.extend(ctx, r, missing, way, d.known[r])
			if err != nil && (tries == 5 || !w.Source.Duplicate(err)) {
				return d, fmt.Errorf("extend the map of ids: %w", err)
			}
		}
	}
	return d, nil
}

func missingFrom(known map[int64]int64, wanted map[int64]bool) []int64 {
	var missing []int64
	for id := range wanted {
		if _, ok := known[id]; !ok {
			missing = append(missing, id)
		}
	}
	slices.Sort(missing)
	return missing
}

// extend gives ids counterparts. If another goroutine does the same for one of them, a
// unique key refuses one of the two, which then reads again.
func (w Writer) extend(ctx context.Context, r *Renumbering, ids []int64, way Direction, known map[int64]int64) error {
	var drawn []int64
	if way == ToShards {
		var err error
		if drawn, err = r.By.(Drawn).draw(ctx, len(ids)); err != nil {
			return err
		}
	}
	err := w.OnSource(ctx, func(s *backend.Session) error {
		// An earlier attempt may have been committed without an answer.
		if err := w.read(ctx, s, r, ids, way, known); err != nil {
			return err
		}
		if way == ToSource {
			highest, err := w.Highest(ctx, s, r)
			if err != nil {
				return err
			}
			drawn = counted(highest, len(ids))
		}
		if err := w.insert(ctx, s, r, ids, drawn, way, known); err != nil {
			return err
		}
		return w.read(ctx, s, r, ids, way, known)
	})
	if err == nil {
		err = w.Persist(ctx)
	}
	return err
}

func counted(above int64, n int) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = above + 1 + int64(i)
	}
	return ids
}

// insert stores pairs of the ids without counterparts and drawn ids.
func (m Table) insert(ctx context.Context, s *backend.Session, r *Renumbering, ids, drawn []int64, way Direction, known map[int64]int64) error {
	from, to := way.columns()
	var values []string
	for i, id := range ids {
		if _, ok := known[id]; !ok {
			values = append(values, fmt.Sprintf("(%d,%d,%d)", r.Number, id, drawn[i]))
		}
	}
	head := fmt.Sprintf("INSERT INTO %s (tbl, %s, %s) VALUES ", s.Database.Quote(string(m)), s.Database.Quote(from), s.Database.Quote(to))
	for some := range slices.Chunk(values, mapRows) {
		if err := s.Exec(ctx, head+strings.Join(some, ",")); err != nil {
			return err
		}
	}
	return nil
}

// Highest is the highest id in the counter of the source's table, in the table and in the
// map table.
func (m Table) Highest(ctx context.Context, s *backend.Session, r *Renumbering) (int64, error) {
	counter, err := s.Database.Counter(ctx, s, r.Of.Name)
	if err != nil {
		return 0, err
	}
	for _, query := range []string{
		fmt.Sprintf("SELECT MAX(%s) FROM %s", s.Database.Quote(r.Of.Key), s.Database.Quote(r.Of.Name)),
		fmt.Sprintf("SELECT MAX(%s) FROM %s WHERE tbl = %d", s.Database.Quote("old"), s.Database.Quote(string(m)), r.Number),
	} {
		n, err := s.Number(ctx, query)
		if err != nil {
			return 0, err
		}
		counter = max(counter, n)
	}
	return counter, nil
}
