// SPDX-License-Identifier: Apache-2.0

package follow

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

// Streams are the logs of a job, with both sides of each.
type Streams struct {
	state  *lead.State
	leader *lead.Leader
	budget *transfer.Budget
}

// NewStreams returns the streams of a job that this runner leads.
func NewStreams(state *lead.State, leader *lead.Leader, budget *transfer.Budget) *Streams {
	return &Streams{state, leader, budget}
}

// Stream applies the changes that a log notes to the other side. One goroutine at a time
// may use the streams of a job: a row has one applier.
type Stream struct {
	of   *Streams
	from *backend.Database
	log  string
	ends Ends

	// bounds are how far the tables are copied; nil means to their end.
	bounds func(ctx context.Context, s *backend.Session, lock bool) ([]lead.Span, error)
}

// Ends are the functions that read a stream's rows from one side and write them to the
// other.
type Ends struct {
	// Fetch reads, in one statement, the present rows of the first n ids: of all, or of as
	// many as the limits allow.
	Fetch func(ctx context.Context, t *openjob.Table, ids []int64, l transfer.Limits) (rows []backend.Row, n int, err error)
	// Put writes these rows and deletes the other ids. It returns the ids of rows that a
	// unique key refused.
	Put func(ctx context.Context, t *openjob.Table, ids []int64, rows []backend.Row) (refused []int64, err error)
}

// Entry is a change in a log: the row's table and id. For a negative table number see
// backend.Below.
type Entry struct {
	seq, ID int64
	Table   int
}

const pageSize = 1000

// Passed is the result of a pass over a log.
type Passed struct {
	Applied int64
	Left    []Entry // entries that wait for a copier or for another row
}

// Empty reports whether the log had no entry.
func (p Passed) Empty() bool { return p.Applied == 0 && len(p.Left) == 0 }

// Pass goes through the present entries of the log once, however fast writers add more.
// Entries are not numbered in the order of commits, so the next pass begins at the start
// again.
func (st *Stream) Pass(ctx context.Context) (Passed, error) {
	var done Passed
	end, err := st.end(ctx)
	if err != nil {
		return done, err
	}
	for cursor, first := int64(0), end; ; {
		page, err := st.page(ctx, cursor, end)
		if err != nil || len(page) == 0 {
			return done, err
		}
		read := len(page)
		begins := page[0].seq
		cursor = page[read-1].seq
		page, noted, err := st.lookBelow(ctx, page)
		if err != nil {
			return done, err
		}
		if begins <= first { // so that the pass ends
			end = max(end, noted)
		}
		left, err := st.process(ctx, page)
		if err != nil {
			return done, err
		}
		done.Applied += int64(read - len(left))
		done.Left = append(done.Left, left...)
	}
}

// lookBelow replaces the entries that ask to check dependent rows by entries of those rows.
// It returns the other entries of the page, and the number of the last entry that it
// inserted, 0 for none. The changes that the entries note are committed by now, so that it
// sees all rows except those whose own entries come later.
func (st *Stream) lookBelow(ctx context.Context, page []Entry) (others []Entry, last int64, err error) {
	above := map[int][]int64{} // ids, by the tables' numbers
	var gone []int64
	for _, e := range page {
		table := backend.Below(e.Table) // its own inverse
		if e.Table >= 0 || table >= len(st.of.state.Tables) {
			others = append(others, e)
			continue
		}
		above[table] = append(above[table], e.ID)
		gone = append(gone, e.seq)
	}
	if len(gone) == 0 {
		return others, 0, nil
	}
	look := func(s *backend.Session) error {
		if err := st.of.leader.CheckEpoch(ctx, s); err != nil {
			return err
		}
		for table, ids := range above {
			for _, d := range st.of.state.RoutedBelow(st.of.state.Tables[table]) {
				if err := s.Exec(ctx, backend.NoteBelow(s.Database, st.log, d, ids)); err != nil {
					return err
				}
			}
		}
		last, err = s.Number(ctx, "SELECT MAX(seq) FROM "+s.Database.Quote(st.log))
		if err != nil {
			return err
		}
		return s.Exec(ctx, s.Database.Deletion(st.log, "seq", gone, ""))
	}
	err = st.do(ctx, func(s *backend.Session) error { return s.Tx(ctx, func() error { return look(s) }) })
	return others, last, err
}

func (st *Stream) do(ctx context.Context, f func(*backend.Session) error) error {
	return st.of.leader.From(st.from).Do(ctx, f)
}

// end is the number of the last entry. It also checks the epoch, as a runner that finds no
// entry must learn that another one has taken over.
func (st *Stream) end(ctx context.Context) (end int64, err error) {
	err = st.do(ctx, func(s *backend.Session) error {
		fence, err := s.Number(ctx, "SELECT epoch FROM "+st.from.Fence+" WHERE job = ?", st.of.state.Name)
		if err != nil {
			return err
		}
		if !proto.Leads(st.of.leader.Epoch(), fence) {
			return lead.ErrFenced
		}
		end, err = s.Number(ctx, "SELECT MAX(seq) FROM "+st.from.Quote(st.log))
		return err
	})
	return end, err
}

func (st *Stream) page(ctx context.Context, after, end int64) (page []Entry, err error) {
	err = st.do(ctx, func(s *backend.Session) error {
		page = page[:0]
		return s.Each(ctx, func(rows *sql.Rows) error {
			var e Entry
			if err := rows.Scan(&e.seq, &e.Table, &e.ID); err != nil {
				return err
			}
			page = append(page, e)
			return nil
		}, fmt.Sprintf("SELECT seq, tbl, id FROM %s WHERE seq > %d AND seq <= %d ORDER BY seq LIMIT %d", st.from.Quote(st.log), after, end, pageSize))
	})
	return page, err
}

func (st *Stream) readBounds(ctx context.Context, s *backend.Session, lock bool) ([]lead.Span, error) {
	if st.bounds != nil {
		return st.bounds(ctx, s, lock)
	}
	all := make([]lead.Span, len(st.of.state.Tables))
	for i := range all {
		all[i] = lead.Span{Low: proto.Top, High: proto.Top}
	}
	return all, nil
}

// process applies a page and returns the entries that stay in the log.
func (st *Stream) process(ctx context.Context, page []Entry) (left []Entry, err error) {
	var spans []lead.Span
	err = st.do(ctx, func(s *backend.Session) error {
		spans, err = st.readBounds(ctx, s, false) // after the page
		return err
	})
	if err != nil {
		return nil, err
	}
	apply := make([]map[int64]bool, len(st.of.state.Tables))
	var drop []Entry
	gone := make([]int64, 0, len(page))
	for _, e := range page {
		if e.Table < 0 || e.Table >= len(spans) {
			return nil, fmt.Errorf("%w: the log has an entry of a table %d", openjob.ErrChanged, e.Table)
		}
		switch proto.Classify(e.ID, spans[e.Table].Low, spans[e.Table].High) {
		case proto.Apply:
			if apply[e.Table] == nil {
				apply[e.Table] = map[int64]bool{}
			}
			apply[e.Table][e.ID] = true
		case proto.Drop:
			drop = append(drop, e)
		case proto.Wait:
			left = append(left, e)
		}
	}
	for tbl, ids := range apply {
		if err := st.applyTable(ctx, st.of.state.Tables[tbl], ids); err != nil {
			return nil, err
		}
	}
	for _, e := range page {
		if spans[e.Table].Low.Covers(e.ID) {
			if apply[e.Table][e.ID] {
				gone = append(gone, e.seq)
			} else {
				left = append(left, e)
			}
		}
	}
	return left, st.ack(ctx, gone, drop)
}

// applyTable sets ids[id] to true for the rows that were applied.
func (st *Stream) applyTable(ctx context.Context, t *openjob.Table, ids map[int64]bool) error {
	if len(ids) == 0 {
		return nil
	}
	list := make([]int64, 0, len(ids))
	for id := range ids {
		list = append(list, id)
	}
	slices.Sort(list)
	var some []int64
	return st.of.budget.Portions(ctx, t, func(l transfer.Limits) ([]backend.Row, bool, error) {
		rows, n, err := st.ends.Fetch(ctx, t, list, l)
		some, list = list[:n], list[n:]
		return rows, len(list) > 0, err
	}, func(rows []backend.Row) error {
		refused, err := st.ends.Put(ctx, t, some, rows)
		if err != nil {
			return err
		}
		for _, id := range refused {
			ids[id] = false
		}
		st.of.state.Observe(openjob.StepApplied, t, int64(len(some)))
		return nil
	})
}

// ack deletes the entries that were applied, and those that no copier has reached, by the
// bounds that it reads in the same transaction.
func (st *Stream) ack(ctx context.Context, gone []int64, drop []Entry) error {
	if len(gone) == 0 && len(drop) == 0 {
		return nil
	}
	remove := func(s *backend.Session) error {
		if err := st.of.leader.CheckEpoch(ctx, s); err != nil {
			return err
		}
		all := slices.Clone(gone)
		if len(drop) > 0 {
			spans, err := st.readBounds(ctx, s, true)
			if err != nil {
				return err
			}
			for _, e := range drop {
				if proto.Classify(e.ID, spans[e.Table].Low, spans[e.Table].High) == proto.Drop {
					all = append(all, e.seq)
				}
			}
		}
		if len(all) == 0 {
			return nil
		}
		return s.Exec(ctx, s.Database.Deletion(st.log, "seq", all, ""))
	}
	err := st.do(ctx, func(s *backend.Session) error { return s.Tx(ctx, func() error { return remove(s) }) })
	if err == nil {
		st.of.state.Observe(openjob.StepAcked, nil, int64(len(gone)))
	}
	return err
}

// Along is a stream from the log of the source with other ends, for callers that move only
// some of the rows.
func (ss *Streams) Along(ends Ends) *Stream {
	return &Stream{of: ss, from: ss.state.Source, log: ss.state.LogTable(), bounds: ss.state.Spans, ends: ends}
}
