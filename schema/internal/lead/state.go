// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
)

// State reads the state of a job from its databases. A caller need not lead.
type State struct{ *openjob.Job }

// ReadPhase reads the phase on a connection of its own.
func (st *State) ReadPhase(ctx context.Context) (phase proto.Phase, err error) {
	err = st.Source.Do(ctx, func(s *backend.Session) error {
		phase, err = st.Phase(ctx, s)
		return err
	})
	return phase, err
}

// Span is how far the copy of a table has come.
type Span struct {
	Low, High proto.Bound
	Identity  string
}

// Phase is the phase of the job, "" when it was never begun.
func (st *State) Phase(ctx context.Context, s *backend.Session) (proto.Phase, error) {
	return phaseOf(ctx, s, st.Name)
}

// ProgressOf returns a function that reads how far a job is.
func ProgressOf(job string) func(context.Context, *backend.Session) (openjob.Progress, error) {
	return func(ctx context.Context, s *backend.Session) (openjob.Progress, error) {
		phase, err := phaseOf(ctx, s, job)
		ended := phase == "" || phase == proto.Aborted || phase == proto.Finalized
		return openjob.Progress{Begun: !ended, Switched: phase == proto.Switched || phase == proto.Returning}, err
	}
}

func phaseOf(ctx context.Context, s *backend.Session, job string) (proto.Phase, error) {
	there, err := s.Database.Exists(ctx, s, backend.JobTable)
	if err != nil || !there {
		return "", err
	}
	var phase string
	err = s.QueryRowContext(ctx, "SELECT phase FROM "+backend.JobTable+" WHERE job = ?", job).Scan(&phase)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if p := proto.Phase(phase); p.Known() {
		return p, nil
	}
	return "", fmt.Errorf("%w: the job is %q, which this version does not know", ErrPhase, phase)
}

// Spans returns the progress of each table, in the order of the job. With lock, the rows
// stay locked until the end of the transaction.
func (st *State) Spans(ctx context.Context, s *backend.Session, lock bool) ([]Span, error) {
	all := make([]Span, len(st.Tables))
	query := "SELECT tbl, low, hig, identity FROM " + backend.SpanTable + " WHERE job = ?"
	if lock && !s.Locked {
		query += s.Database.LockRead()
	}
	found := 0
	err := s.Each(ctx, func(rows *sql.Rows) error {
		var tbl int
		var low, hig sql.NullInt64
		var identity string
		if err := rows.Scan(&tbl, &low, &hig, &identity); err != nil {
			return err
		}
		if tbl >= len(all) {
			return fmt.Errorf("%w: the job was begun with more than %d tables", openjob.ErrChanged, len(all))
		}
		found++
		all[tbl] = Span{boundOf(low), boundOf(hig), identity}
		return nil
	}, query, st.Name)
	if err == nil && found != len(all) {
		err = fmt.Errorf("%w: the job was begun with %d tables, not %d", openjob.ErrChanged, found, len(all))
	}
	return all, err
}

func boundOf(v sql.NullInt64) proto.Bound { return proto.Bound{Set: v.Valid, ID: v.Int64} }

// ReadSpans reads the spans on a connection of its own.
func (st *State) ReadSpans(ctx context.Context) (spans []Span, err error) {
	err = st.Source.Do(ctx, func(s *backend.Session) error {
		spans, err = st.Spans(ctx, s, false)
		return err
	})
	return spans, err
}

// servers identifies the servers of all databases of the job: the source's, and all together. The column has
// room for 64 letters.
func (st *State) servers() string {
	return backend.Digest(st.Source.ServerID)[:31] + "-" + st.allServers()[:32]
}

func (st *State) allServers() string {
	all := []string{st.Source.ServerID}
	for _, side := range st.Shards {
		all = append(all, side.ServerID)
	}
	return backend.Digest(strings.Join(all, "\n"))
}

// Moved reports whether a database is on another server than when the job was last there, and whether
// the source is. Earlier versions have stored no server of the source alone: it counts as moved with any other.
func (st *State) Moved(ctx context.Context, s *backend.Session) (moved, source bool, err error) {
	known, err := s.List(ctx, "SELECT servers FROM "+backend.JobTable+" WHERE job = ?", st.Name)
	if err != nil || len(known) != 1 {
		return true, true, err
	}
	moved = known[0] != st.servers() && known[0] != st.allServers()
	was, _, _ := strings.Cut(known[0], "-")
	is, _, _ := strings.Cut(st.servers(), "-")
	return moved, moved && was != is, nil
}

// CheckIdentities fails when a table was truncated, rebuilt or altered, or has lost its
// triggers: the log then lacks changes.
func (st *State) CheckIdentities(ctx context.Context, s *backend.Session) error {
	spans, err := st.Spans(ctx, s, false)
	if err != nil {
		return err
	}
	for _, t := range st.Tables {
		identity, err := s.Database.Identity(ctx, s, t.Name)
		if err != nil {
			return err
		}
		if was := spans[t.Number].Identity; identity != was {
			return fmt.Errorf("%w: table %s was %s", openjob.ErrChanged, t.Conf.Name, becameOf(was, identity))
		}
		lost, err := s.LostTriggers(ctx, st.TriggerName("s", t.Number, ""), s.Database.Capture(st.Capture(t)))
		switch {
		case err != nil:
			return err
		case len(lost) > 0:
			return fmt.Errorf("%w: table %s has lost the triggers %s, and nobody knows what has changed since; "+
				"somebody has dropped them, or a connection was killed in the midst of a RENAME, after which MariaDB may have none of them; abort the job and begin again", openjob.ErrChanged, t.Conf.Name, strings.Join(lost, ", "))
		}
	}
	return st.CheckWatches(ctx, s)
}

// becameOf says what has happened to a table of a source that serves, and what to do.
func becameOf(was, is string) string {
	if definitionOf(was) != definitionOf(is) {
		return "altered; abort the job and begin again"
	}
	return "truncated, rebuilt or restored; if it lacks rows, save those that the shards have, because abort empties these; then abort the job and begin again"
}

// CheckSame fails when a runner could not go on because a table is not the one that the job has stored. It only
// reads. Behind says that the shards serve.
func (st *State) CheckSame(ctx context.Context, behind bool) error {
	was, err := st.NotedTargets(ctx)
	if err != nil {
		return err
	}
	is, err := st.TargetIdentities(ctx)
	if err != nil {
		return err
	}
	if behind {
		if err := st.CheckBackCapture(ctx, was); err != nil {
			return err
		}
	}
	return st.Source.Do(ctx, func(s *backend.Session) error { return st.CompareAll(ctx, s, was, is, behind) })
}

// CompareAll compares the identities of all tables with the earlier ones. On another server the
// numbers differ. Behind says that the shards serve.
func (st *State) CompareAll(ctx context.Context, s *backend.Session, was, is Identities, behind bool) error {
	moved, _, err := st.Moved(ctx, s)
	if err != nil {
		return err
	}
	if !moved {
		if err := st.CompareTargets(was, is); err != nil {
			return err
		}
	}
	switch {
	case behind:
		return nil
	case moved:
		return st.CheckDefinitions(ctx, s)
	}
	return st.CheckIdentities(ctx, s)
}

// CheckWatches fails when rows may have changed without a trigger that notes it.
func (st *State) CheckWatches(ctx context.Context, s *backend.Session) error {
	lost, err := openjob.WatchesOf(st.Job).Lost(ctx, s)
	if err == nil && len(lost) > 0 {
		err = fmt.Errorf("%w: the triggers %s are gone, which keep a key from changing that tables of the job refer to; nobody knows what foreign keys have changed since", openjob.ErrChanged, strings.Join(lost, ", "))
	}
	return err
}

// CheckDefinitions makes the checks that are possible on another server.
func (st *State) CheckDefinitions(ctx context.Context, s *backend.Session) error {
	spans, err := st.Spans(ctx, s, false)
	if err != nil {
		return err
	}
	for _, t := range st.Tables {
		is, err := s.Database.Identity(ctx, s, t.Name)
		if err != nil {
			return err
		}
		if definitionOf(is) != definitionOf(spans[t.Number].Identity) {
			return fmt.Errorf("%w: table %s was altered; abort the job and begin again", openjob.ErrChanged, t.Conf.Name)
		}
	}
	return nil
}

// definitionOf is the part of an identity that is the same on all servers.
func definitionOf(identity string) string { return identity[strings.LastIndex(identity, " ")+1:] }

// Differs returns the differences between this configuration and the one with which the job
// was begun. A table without a stored digest is accepted.
func (st *State) Differs(ctx context.Context, s *backend.Session) ([]string, error) {
	phase, err := st.Phase(ctx, s)
	if err != nil || phase == "" || phase == proto.Aborted || phase == proto.Finalized {
		return nil, err
	}
	var names, digests []string
	err = s.Each(ctx, func(rows *sql.Rows) error {
		var name, digest string
		err := rows.Scan(&name, &digest)
		names, digests = append(names, name), append(digests, digest)
		return err
	}, "SELECT name, setup FROM "+backend.SpanTable+" WHERE job = ? ORDER BY tbl", st.Name)
	if err != nil {
		return nil, err
	}
	return st.Tables.Differs(names, digests), nil
}
