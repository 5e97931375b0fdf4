// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// The tables of the shards must stay the ones that the job has filled: a table that was
// emptied or restored meanwhile would lose rows at or after a cutover.

// place is a table of a shard: the number of the job's table and of its target.
type place struct{ tbl, shard int }

// targetIdentity shows whether the table of a shard is still the same.
type targetIdentity struct {
	// numbers are the server's numbers of the table under its name and under its sealed name.
	// A TRUNCATE, a DROP and a restore from statements change them.
	numbers [2]string
	// beat is a counter that rises while a runner works: a restore of files lowers it.
	beat int64
}

// follows reports whether the table of the shard is the stored one.
func (is targetIdentity) follows(was targetIdentity) bool {
	return slices.Contains(is.numbers[:], was.numbers[0]) && is.beat >= was.beat
}

// Identities are the identities of the shards' tables.
type Identities map[place]targetIdentity

// TargetIdentities reads the identities of all tables of the shards.
func (st *State) TargetIdentities(ctx context.Context) (Identities, error) {
	all := Identities{}
	for _, side := range st.Shards {
		if err := side.Do(ctx, func(s *backend.Session) error { return st.targetIdentitiesOn(ctx, s, all) }); err != nil {
			return nil, fmt.Errorf("database %s: %w", side.Label, err)
		}
	}
	return all, nil
}

func (st *State) targetIdentitiesOn(ctx context.Context, s *backend.Session, all Identities) error {
	var names []string
	for _, to := range st.TargetsOn(s.Database) {
		names = append(names, to.Name, backend.Sealed(to.Name))
	}
	numbers, err := s.Database.Numbers(ctx, s, names)
	if err != nil {
		return err
	}
	beats := map[string]int64{}
	err = s.Each(ctx, func(rows *sql.Rows) error {
		var name string
		var beat int64
		err := rows.Scan(&name, &beat)
		beats[name] = beat
		return err
	}, "SELECT name, beat FROM "+backend.OwnerTable+" WHERE job = ?", st.Name)
	for _, t := range st.Tables {
		for i, to := range t.Targets {
			if to.Database == s.Database {
				all[place{t.Number, i}] = targetIdentity{[2]string{numbers[to.Name], numbers[backend.Sealed(to.Name)]}, beats[to.Name]}
			}
		}
	}
	return err
}

// NoteTargets stores the present identities of the shards' tables.
func (l *Leader) NoteTargets(ctx context.Context, s *backend.Session, is Identities) error {
	if err := s.Exec(ctx, "DELETE FROM "+backend.TargetTable+" WHERE job = ?", l.job.Name); err != nil {
		return err
	}
	for at, now := range is {
		if err := l.noteTarget(ctx, s, at, now); err != nil {
			return err
		}
	}
	return nil
}

func (l *Leader) noteTarget(ctx context.Context, s *backend.Session, at place, is targetIdentity) error {
	to := l.job.Tables[at.tbl].Targets[at.shard]
	return s.Exec(ctx, "INSERT INTO "+backend.TargetTable+" (job, tbl, shard, place, identity, beat) VALUES (?, ?, ?, ?, ?, ?)",
		l.job.Name, at.tbl, at.shard, to.Database.Label+"/"+to.Name, cmp.Or(is.numbers[:]...), is.beat)
}

// NotedTargets reads the stored identities of the shards' tables. It must be called before
// TargetIdentities, because a beat is written to the shards first.
func (st *State) NotedTargets(ctx context.Context) (was Identities, err error) {
	err = st.Source.Do(ctx, func(s *backend.Session) error {
		was = Identities{}
		return s.Each(ctx, func(rows *sql.Rows) error {
			var at place
			var of targetIdentity
			err := rows.Scan(&at.tbl, &at.shard, &of.numbers[0], &of.beat)
			was[at] = of
			return err
		}, "SELECT tbl, shard, identity, beat FROM "+backend.TargetTable+" WHERE job = ?", st.Name)
	})
	return was, err
}

// CompareTargets fails when a table of a shard is not the stored one.
func (st *State) CompareTargets(was, is Identities) error {
	for at, now := range is {
		if known, ok := was[at]; ok && !now.follows(known) {
			t := st.Tables[at.tbl]
			to := t.Targets[at.shard]
			return fmt.Errorf("%w: shard %s on %s was truncated, dropped, rebuilt or restored; before a cutover, abort the job and begin again; after a cutover %s has its rows, and the runbook says how to restore them",
				openjob.ErrChanged, to.Name, to.Database.Label, backend.Retired(t.Conf.Name))
		}
	}
	return nil
}

// CheckTargets fails when a table of a shard is not the stored one. A table without a
// stored identity is accepted: an operator has agreed to that.
func (l *Leader) CheckTargets(ctx context.Context) error {
	return checkTargets(ctx, l, func(context.Context, Identities) error { return nil })
}

// checkTargets calls capture with the stored identities when all tables are the stored ones.
func checkTargets(ctx context.Context, l *Leader, capture func(context.Context, Identities) error) error {
	was, err := l.state.NotedTargets(ctx)
	if err != nil {
		return err
	}
	is, err := l.state.TargetIdentities(ctx)
	if err != nil {
		return err
	}
	changed := l.state.CompareTargets(was, is)
	if changed == nil {
		changed = capture(ctx, was)
	}
	err = l.OnSource(ctx, func(s *backend.Session) error { // which another runner may have fenced: it renames tables and drops triggers
		if changed != nil {
			return changed
		}
		if err := l.state.CheckWatches(ctx, s); err != nil {
			return err
		}
		for at, now := range is {
			if _, known := was[at]; known {
				continue
			}
			if err := l.noteTarget(ctx, s, at, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return l.beat(ctx, is)
}

// beat raises the counter, on the shards first, so that the source never stores a value
// that they lack.
func (l *Leader) beat(ctx context.Context, is Identities) error {
	next := int64(1)
	for _, of := range is {
		next = max(next, of.beat+1)
	}
	for _, side := range l.job.Shards {
		err := l.On(ctx, side, func(s *backend.Session) error {
			return s.Exec(ctx, "UPDATE "+backend.OwnerTable+" SET beat = ? WHERE job = ? AND owner = ?", next, l.job.Name, l.term.mark)
		})
		if err != nil {
			return fmt.Errorf("database %s: %w", side.Label, err)
		}
	}
	return l.OnSource(ctx, func(s *backend.Session) error {
		return s.Exec(ctx, "UPDATE "+backend.TargetTable+" SET beat = ? WHERE job = ?", next, l.job.Name)
	})
}
