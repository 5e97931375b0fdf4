// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
)

// spans are the progress of each table's copy, as an earlier run has stored it; none when
// there was none.
type spans []lead.Span

// mark is the version in which the slots began to move, the server of the new shard, and the identity
// of a table: "12/0a1b2c3d4e5f6071 4711 …". Marks of earlier versions have no server.
type mark string

func newMark(version, server, identity string) mark {
	return mark(version + "/" + server + " " + identity)
}

func (m mark) version() string {
	version, _, _ := strings.Cut(m.head(), "/")
	return version
}

func (m mark) server() string {
	_, server, _ := strings.Cut(m.head(), "/")
	return server
}

func (m mark) identity() string {
	_, identity, _ := strings.Cut(string(m), " ")
	return identity
}

func (m mark) head() string {
	head, _, _ := strings.Cut(string(m), " ")
	return head
}

// newServer identifies the server of the new shard.
func (b *batch) newServer() string { return backend.Digest(b.job.Shards[0].ServerID)[:16] }

func (s spans) ofThisMove(marks []mark) bool {
	return len(s) == len(marks) && mark(s[0].Identity).version() == marks[0].version()
}

func (s spans) usable(marks []mark) bool {
	for i := range s {
		if m := mark(s[i].Identity); m.version() != marks[i].version() || m.identity() != marks[i].identity() {
			return false
		}
	}
	return len(s) == len(marks)
}

// resume returns the progress of the tables, after it has removed the rows that a crash
// left above. The copy of a table that has changed begins again.
func (b *batch) resume(ctx context.Context) (spans, error) {
	marks, err := b.marks(ctx)
	if err != nil {
		return nil, err
	}
	left, err := b.left(ctx)
	if err != nil {
		return nil, err
	}
	if !left.ofThisMove(marks) { // nothing was copied yet
		if err := b.checkFree(ctx); err != nil {
			return nil, err
		}
	}
	lost, err := b.lostTriggers(ctx)
	if err != nil {
		return nil, err
	}
	if !left.usable(marks) || len(lost) > 0 {
		if left, err = b.begin(ctx, marks, left.ofThisMove(marks)); err != nil {
			return nil, err
		}
	}
	for _, t := range b.job.Tables {
		sp := left[t.Number]
		if !sp.Low.Less(sp.High) {
			continue
		}
		if err := b.removeCopies(ctx, t, proto.Chunk{After: sp.Low, To: sp.High}); err != nil {
			return nil, err
		}
		b.job.Observe(StepPruned, t, 0)
	}
	return left, nil
}

// marks are the marks of this move, by table.
func (b *batch) marks(ctx context.Context) (all []mark, err error) {
	err = b.job.Source.Do(ctx, func(s *backend.Session) error {
		all = nil
		for _, t := range b.job.Tables {
			identity, err := s.Database.Identity(ctx, s, t.Name)
			if err != nil {
				return err
			}
			all = append(all, newMark(strconv.FormatInt(b.slots.all[0].Version, 10), b.newServer(), identity))
		}
		return nil
	})
	return all, err
}

func (b *batch) left(ctx context.Context) (all spans, err error) {
	err = b.leader.OnSource(ctx, func(s *backend.Session) error {
		n, err := s.Number(ctx, "SELECT COUNT(*) FROM "+backend.SpanTable+" WHERE job = ?", b.job.Name)
		if err != nil || n != int64(len(b.job.Tables)) {
			all = nil
			return err
		}
		all, err = b.state.Spans(ctx, s, false)
		return err
	})
	return all, err
}

// lostTriggers returns the names of triggers that the tables lack, before or after the copy has begun.
func (b *batch) lostTriggers(ctx context.Context) (lost []string, err error) {
	err = b.job.Source.Do(ctx, func(s *backend.Session) error {
		lost = nil
		for _, t := range b.job.Tables {
			more, err := s.LostTriggers(ctx, b.job.TriggerName("s", t.Number, ""), s.Database.Capture(b.job.Capture(t)))
			if err != nil {
				return err
			}
			lost = append(lost, more...)
		}
		return nil
	})
	return lost, err
}

// unaltered fails when a table was truncated or altered since the copy began, or has lost its
// triggers: its changes are then unknown. It stores the server on which all rows were compared.
func (b *batch) unaltered(ctx context.Context) error {
	marks, err := b.marks(ctx)
	if err != nil {
		return err
	}
	left, err := b.left(ctx)
	if err != nil {
		return err
	}
	for i, m := range marks {
		if len(left) != len(marks) || mark(left[i].Identity).identity() != m.identity() {
			return fmt.Errorf("%w: table %s was truncated or altered while its slots were copied; run again to begin the copy anew", ErrChanged, b.job.Tables[i].Name)
		}
	}
	lost, err := b.lostTriggers(ctx)
	if err == nil && len(lost) > 0 {
		err = fmt.Errorf("%w: the triggers %s are gone, and nobody knows what has changed since; run again to begin the copy anew", ErrChanged, strings.Join(lost, ", "))
	}
	if err != nil || mark(left[0].Identity).server() == b.newServer() {
		return err
	}
	return b.leader.OnSource(ctx, func(s *backend.Session) error {
		for i, m := range left {
			was := mark(m.Identity)
			is := newMark(was.version(), b.newServer(), was.identity())
			if err := s.Exec(ctx, "UPDATE "+backend.SpanTable+" SET identity = ? WHERE job = ? AND tbl = ?", string(is), b.job.Name, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// keeps fails when another server has taken over the new shard since its rows were compared: it may lack
// rows that only the old shard still has. An operator who has compared them deletes the marks.
func (b *batch) keeps(ctx context.Context) error {
	left, err := b.left(ctx)
	if err != nil || len(left) == 0 {
		return err
	}
	// A connection shows that the server is still the same: one that is not any more cannot be used.
	err = b.job.Shards[0].Do(ctx, func(s *backend.Session) error {
		_, err := s.Number(ctx, "SELECT 1")
		return err
	})
	if err != nil {
		return err
	}
	if known := mark(left[0].Identity).server(); known != "" && known != b.newServer() {
		return fmt.Errorf("%w: another server has taken over %s since the rows of its new slots were compared, and rows that it has not received are only in the tables of %s, so these are kept: "+
			"insert there what is missing, execute DELETE FROM %s WHERE job = '%s' on %[3]s, and run again", ErrNotReady, b.job.Shards[0].Label, b.job.Source.Label, backend.SpanTable, b.job.Name)
	}
	return nil
}

// begin creates the triggers and stores that nothing is copied.
func (b *batch) begin(ctx context.Context, marks []mark, dirty bool) (spans, error) {
	if dirty {
		for _, t := range b.job.Tables {
			if err := b.removeCopies(ctx, t, proto.Chunk{To: proto.Top}); err != nil {
				return nil, err
			}
		}
	}
	if err := b.leader.Define(ctx, b.job.Source, func(s *backend.Session) error { return openjob.MakeCapture(ctx, b.job, s) }); err != nil {
		return nil, err
	}
	all := make(spans, len(b.job.Tables))
	err := b.leader.OnSource(ctx, func(s *backend.Session) error {
		if err := s.Exec(ctx, "DELETE FROM "+backend.SpanTable+" WHERE job = ?", b.job.Name); err != nil {
			return err
		}
		for _, t := range b.job.Tables {
			all[t.Number] = lead.Span{Identity: string(marks[t.Number])}
			if err := s.Exec(ctx, "INSERT INTO "+backend.SpanTable+" (job, tbl, name, identity) VALUES (?, ?, ?, ?)", b.job.Name, t.Number, t.Conf.Name, string(marks[t.Number])); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}
