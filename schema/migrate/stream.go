package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/schema/internal/transfer"
)

// stream brings the changes that a log notes to where the rows belong. One
// goroutine at a time may use the streams of a job: a row has one applier.
type stream struct {
	*leader

	from *backend.Database
	log  string

	// bounds are how far the tables are copied; nil means to their end.
	bounds func(ctx context.Context, s *backend.Session, lock bool) ([]lead.Span, error)
	// fetch reads the rows with the first n of these ids as they are now, in one
	// statement: of all, or of as many as the limits allow.
	fetch func(ctx context.Context, st *stream, t *openjob.Table, ids []int64, l transfer.Limits) (rows []backend.Row, n int, err error)
	// put makes the ids have these rows, or none, and returns the ids of rows that
	// are in the way of others.
	put func(ctx context.Context, t *openjob.Table, ids []int64, rows []backend.Row) (refused []int64, err error)
}

type entry struct {
	seq, id int64
	tbl     int
}

const pageSize = 1000

// passed is what a pass over a log did.
type passed struct {
	applied int64
	left    []entry // that wait for a copier or for another row
}

func (p passed) empty() bool { return p.applied == 0 && len(p.left) == 0 }

// pass goes once through the log as it is now, however fast writers add to it.
// Its numbers are not in the order of commits, so the next pass begins at the
// start again.
func (st *stream) pass(ctx context.Context) (passed, error) {
	var done passed
	end, err := st.end(ctx)
	if err != nil {
		return done, err
	}
	for cursor := int64(0); ; {
		page, err := st.page(ctx, cursor, end)
		if err != nil || len(page) == 0 {
			return done, err
		}
		left, err := st.process(ctx, page)
		if err != nil {
			return done, err
		}
		done.applied += int64(len(page) - len(left))
		done.left = append(done.left, left...)
		cursor = page[len(page)-1].seq
	}
}

func (st *stream) Do(ctx context.Context, f func(*backend.Session) error) error {
	return st.leader.From(st.from).Do(ctx, f)
}

// end is the number of the last entry. A runner that finds none must learn, too,
// that another has taken over.
func (st *stream) end(ctx context.Context) (end int64, err error) {
	err = st.Do(ctx, func(s *backend.Session) error {
		fence, err := s.Number(ctx, "SELECT epoch FROM "+st.from.Fence+" WHERE job = ?", st.cfg.Name)
		if err != nil {
			return err
		}
		if !proto.Leads(st.Epoch(), fence) {
			return ErrFenced
		}
		end, err = s.Number(ctx, "SELECT MAX(seq) FROM "+st.from.Quote(st.log))
		return err
	})
	return end, err
}

func (st *stream) page(ctx context.Context, after, end int64) (page []entry, err error) {
	err = st.Do(ctx, func(s *backend.Session) error {
		page = page[:0]
		return s.Each(ctx, func(rows *sql.Rows) error {
			var e entry
			if err := rows.Scan(&e.seq, &e.tbl, &e.id); err != nil {
				return err
			}
			page = append(page, e)
			return nil
		}, fmt.Sprintf("SELECT seq, tbl, id FROM %s WHERE seq > %d AND seq <= %d ORDER BY seq LIMIT %d", st.from.Quote(st.log), after, end, pageSize))
	})
	return page, err
}

func (st *stream) readBounds(ctx context.Context, s *backend.Session, lock bool) ([]lead.Span, error) {
	if st.bounds != nil {
		return st.bounds(ctx, s, lock)
	}
	all := make([]lead.Span, len(st.Tables))
	for i := range all {
		all[i] = lead.Span{Low: proto.Top, High: proto.Top}
	}
	return all, nil
}

// process applies a page and returns the entries that stay.
func (st *stream) process(ctx context.Context, page []entry) (left []entry, err error) {
	var spans []lead.Span
	err = st.Do(ctx, func(s *backend.Session) error {
		spans, err = st.readBounds(ctx, s, false) // after the page
		return err
	})
	if err != nil {
		return nil, err
	}
	apply := make([]map[int64]bool, len(st.Tables))
	var drop []entry
	gone := make([]int64, 0, len(page))
	for _, e := range page {
		if e.tbl >= len(spans) {
			return nil, fmt.Errorf("%w: the log has an entry of a table %d", ErrChanged, e.tbl)
		}
		switch proto.Classify(e.id, spans[e.tbl].Low, spans[e.tbl].High) {
		case proto.Apply:
			if apply[e.tbl] == nil {
				apply[e.tbl] = map[int64]bool{}
			}
			apply[e.tbl][e.id] = true
		case proto.Drop:
			drop = append(drop, e)
		case proto.Wait:
			left = append(left, e)
		}
	}
	for tbl, ids := range apply {
		if err := st.applyTable(ctx, st.Tables[tbl], ids); err != nil {
			return nil, err
		}
	}
	for _, e := range page {
		if spans[e.tbl].Low.Covers(e.id) {
			if apply[e.tbl][e.id] {
				gone = append(gone, e.seq)
			} else {
				left = append(left, e)
			}
		}
	}
	return left, st.ack(ctx, gone, drop)
}

// applyTable leaves in ids what was brought to its place.
func (st *stream) applyTable(ctx context.Context, t *openjob.Table, ids map[int64]bool) error {
	if len(ids) == 0 {
		return nil
	}
	list := make([]int64, 0, len(ids))
	for id := range ids {
		list = append(list, id)
	}
	slices.Sort(list)
	var some []int64
	return st.room.Portions(ctx, t, func(l transfer.Limits) ([]backend.Row, bool, error) {
		rows, n, err := st.fetch(ctx, st, t, list, l)
		some, list = list[:n], list[n:]
		return rows, len(list) > 0, err
	}, func(rows []backend.Row) error {
		refused, err := st.put(ctx, t, some, rows)
		if err != nil {
			return err
		}
		for _, id := range refused {
			ids[id] = false
		}
		st.Observe(StepApplied, t, int64(len(some)))
		return nil
	})
}

// ack deletes the entries that were applied, and those that no copier has
// reached: that is decided by bounds read in this same transaction.
func (st *stream) ack(ctx context.Context, gone []int64, drop []entry) error {
	if len(gone) == 0 && len(drop) == 0 {
		return nil
	}
	remove := func(s *backend.Session) error {
		if err := st.CheckEpoch(ctx, s); err != nil {
			return err
		}
		all := slices.Clone(gone)
		if len(drop) > 0 {
			spans, err := st.readBounds(ctx, s, true)
			if err != nil {
				return err
			}
			for _, e := range drop {
				if proto.Classify(e.id, spans[e.tbl].Low, spans[e.tbl].High) == proto.Drop {
					all = append(all, e.seq)
				}
			}
		}
		if len(all) == 0 {
			return nil
		}
		return s.Exec(ctx, s.Database.Deletion(st.log, "seq", all, ""))
	}
	err := st.Do(ctx, func(s *backend.Session) error { return s.Tx(ctx, func() error { return remove(s) }) })
	if err == nil {
		st.Observe(StepAcked, nil, int64(len(gone)))
	}
	return err
}
