package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
)

// mapTable remembers which id a row got. It stays after the job.
func (j *Job) mapTable() string { return "shardid_ids_" + j.cfg.Name }

// direction is where rows are going.
type direction bool

const (
	toShards direction = true
	toSource direction = false
)

// columns of the map table: what is known, and what is looked for.
func (d direction) columns() (from, to string) {
	if d == toShards {
		return "old", "new"
	}
	return "new", "old"
}

// dictionary turns ids of one side into those of the other.
type dictionary struct {
	way   direction
	known map[*renumbering]map[int64]int64 // from map tables
}

// turn returns the id on the other side.
func (d dictionary) turn(r *renumbering, id int64) (int64, error) {
	switch {
	case r == nil || id == 0:
		return id, nil
	case r.isDrawn():
		other, ok := d.known[r][id]
		if !ok {
			return 0, fmt.Errorf("%w: %d is not in the map table", ErrNoID, id)
		}
		return other, nil
	case d.way == toShards:
		return r.New(id)
	}
	return r.Old(id)
}

// drawnIDs are ids that map tables have to turn.
type drawnIDs map[*renumbering]map[int64]bool

func (w drawnIDs) add(r *renumbering, id int64) {
	if !r.isDrawn() || id == 0 {
		return
	}
	if w[r] == nil {
		w[r] = map[int64]bool{}
	}
	w[r][id] = true
}

// doer runs f on a connection of a database.
type doer interface {
	Do(ctx context.Context, f func(*backend.Session) error) error
}

// lookUp reads what the map tables know.
func (w *world) lookUp(ctx context.Context, on doer, ids drawnIDs, way direction) (dictionary, error) {
	d := dictionary{way, map[*renumbering]map[int64]int64{}}
	for r, wanted := range ids {
		d.known[r] = map[int64]int64{}
		err := on.Do(ctx, func(s *backend.Session) error {
			return w.readMap(ctx, s, r, slices.Sorted(maps.Keys(wanted)), way, d.known[r])
		})
		if err != nil {
			return d, fmt.Errorf("read the map of ids: %w", err)
		}
	}
	return d, nil
}

const mapRows = 1000 // in one statement

func (w *world) readMap(ctx context.Context, s *backend.Session, r *renumbering, ids []int64, way direction, into map[int64]int64) error {
	from, to := way.columns()
	for some := range slices.Chunk(ids, mapRows) {
		err := s.Each(ctx, func(rows *sql.Rows) error {
			var is, becomes int64
			err := rows.Scan(&is, &becomes)
			into[is] = becomes
			return err
		}, fmt.Sprintf("SELECT %s, %s FROM %s WHERE tbl = %d AND %[1]s IN (%[5]s)", s.Database.Quote(from), s.Database.Quote(to), s.Database.Quote(w.mapTable()), r.of.ord, backend.IDList(some)))
		if err != nil {
			return err
		}
	}
	return nil
}

// dictionary knows all of the ids afterwards: those that had no counterpart get
// one, which is there to stay before any row is written with it.
func (l *lead) dictionary(ctx context.Context, ids drawnIDs, way direction) (dictionary, error) {
	d, err := l.lookUp(ctx, l.from(l.source), ids, way)
	if err != nil {
		return d, err
	}
	for r, wanted := range ids {
		for tries := 0; ; tries++ {
			missing := missingFrom(d.known[r], wanted)
			if len(missing) == 0 {
				break
			}
			err := l.extend(ctx, r, missing, way, d.known[r])
			if err != nil && (tries == 5 || !l.source.Duplicate(err)) {
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

// extend gives ids counterparts. Another goroutine may be giving some to the
// same ones: a unique key lets one of the two through, and the other looks again.
func (l *lead) extend(ctx context.Context, r *renumbering, ids []int64, way direction, known map[int64]int64) error {
	var drawn []int64
	if way == toShards {
		var err error
		if drawn, err = r.by.(drawnBy).draw(ctx, len(ids)); err != nil {
			return err
		}
	}
	err := l.onSource(ctx, func(s *backend.Session) error {
		// Nobody may know whether an attempt before was committed.
		if err := l.readMap(ctx, s, r, ids, way, known); err != nil {
			return err
		}
		if way == toSource {
			highest, err := l.highest(ctx, s, r.of)
			if err != nil {
				return err
			}
			drawn = counted(highest, len(ids))
		}
		if err := l.insertMap(ctx, s, r, ids, drawn, way, known); err != nil {
			return err
		}
		return l.readMap(ctx, s, r, ids, way, known)
	})
	if held := l.held[l.source]; held != nil && err == nil {
		// The switch may be given up, and rows with these ids stay on the shards.
		if err = l.source.Persist(ctx, held); err == nil {
			err = l.checkEpoch(ctx, held, l.epoch)
		}
	}
	return err
}

// drawnBy is a numbering that makes ids.
type drawnBy interface {
	draw(ctx context.Context, n int) ([]int64, error)
}

var _ drawnBy = drawn{}

func counted(above int64, n int) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = above + 1 + int64(i)
	}
	return ids
}

// insertMap pairs the ids that are not known with drawn ones.
func (l *lead) insertMap(ctx context.Context, s *backend.Session, r *renumbering, ids, drawn []int64, way direction, known map[int64]int64) error {
	from, to := way.columns()
	var values []string
	for i, id := range ids {
		if _, ok := known[id]; !ok {
			values = append(values, fmt.Sprintf("(%d,%d,%d)", r.of.ord, id, drawn[i]))
		}
	}
	head := fmt.Sprintf("INSERT INTO %s (tbl, %s, %s) VALUES ", s.Database.Quote(l.mapTable()), s.Database.Quote(from), s.Database.Quote(to))
	for some := range slices.Chunk(values, mapRows) {
		if err := s.Exec(ctx, head+strings.Join(some, ",")); err != nil {
			return err
		}
	}
	return nil
}

// highest is the highest id that the source has given or could take for given.
func (l *lead) highest(ctx context.Context, s *backend.Session, t *table) (int64, error) {
	counter, err := s.Database.Counter(ctx, s, t.Name)
	if err != nil {
		return 0, err
	}
	for _, query := range []string{
		fmt.Sprintf("SELECT MAX(%s) FROM %s", s.Database.Quote(t.Key), s.Database.Quote(t.Name)),
		fmt.Sprintf("SELECT MAX(%s) FROM %s WHERE tbl = %d", s.Database.Quote("old"), s.Database.Quote(l.mapTable()), t.ord),
	} {
		n, err := s.Number(ctx, query)
		if err != nil {
			return 0, err
		}
		counter = max(counter, n)
	}
	return counter, nil
}

// raiseCounter keeps the source from giving an id again that it got in a
// rollback.
func (l *lead) raiseCounter(ctx context.Context, s *backend.Session, t *table) error {
	if !t.ids.isDrawn() || t.ids.of != t {
		return nil
	}
	counter, err := s.Database.Counter(ctx, s, t.Name)
	if err != nil {
		return err
	}
	highest, err := l.highest(ctx, s, t)
	if err != nil || highest <= counter {
		return err
	}
	return s.Database.SetCounter(ctx, s, t.Name, highest)
}

// hasMap reports whether the job has a map table.
func (w *world) hasMap() bool {
	return slices.ContainsFunc(w.tables, func(t *table) bool { return t.ids.isDrawn() })
}

// ResolveOld returns the id that the row with the id old on the source has on the
// shards, for references that are kept elsewhere: in other databases, caches and
// links. It works from the begin of Run on and after Finalize; where ids are
// kept or computed it does not ask whether there is such a row. table is the name
// of a table of the job. An id without counterpart is an error that wraps
// [ErrNoID].
func (j *Job) ResolveOld(ctx context.Context, table string, old int64) (int64, error) {
	w, err := j.open(ctx)
	if err != nil {
		return 0, fmt.Errorf("migrate: job %s: %w", j.cfg.Name, err)
	}
	defer w.close()
	id, err := w.resolveOld(ctx, table, old)
	if err != nil {
		return 0, fmt.Errorf("migrate: job %s: table %s: %w", j.cfg.Name, table, err)
	}
	return id, nil
}

func (w *world) resolveOld(ctx context.Context, name string, old int64) (int64, error) {
	t := w.find(name)
	if t == nil {
		return 0, errors.New("the job has no such table")
	}
	wanted := drawnIDs{}
	wanted.add(t.ids, old)
	d, err := w.lookUp(ctx, w.source, wanted, toShards)
	if err != nil {
		return 0, err
	}
	return d.turn(t.ids, old)
}
