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

// The tables of the shards must stay those that the job has filled: one that was
// emptied or restored meanwhile would lose rows at a cutover, and after one.

// place is a table of a shard: which of the job's, which of its targets.
type place struct{ tbl, shard int }

// targetIdentity is what tells that the table of a shard is still the one it was.
type targetIdentity struct {
	// numbers are those of the table under its name and under that of a closed one:
	// a TRUNCATE changes them, a DROP, and a restore from statements.
	numbers [2]string
	// beat counts up while a runner is at work: a restore of files goes back.
	beat int64
}

// follows: the table of the shard is the one that was written down.
func (is targetIdentity) follows(was targetIdentity) bool {
	return slices.Contains(is.numbers[:], was.numbers[0]) && is.beat >= was.beat
}

// Identities are those of the shards' tables.
type Identities map[place]targetIdentity

// TargetIdentities reads those of all tables of the shards.
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

// NoteTargets writes down what the tables of the shards are now.
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

// NotedTargets reads what was written down of the shards' tables. It has to be read before
// their identities now: a beat reaches the shards first.
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

// CompareTargets fails when a table of a shard is not the one that was written down.
func (st *State) CompareTargets(was, is Identities) error {
	for at, now := range is {
		if known, ok := was[at]; ok && !now.follows(known) {
			t := st.Tables[at.tbl]
			to := t.Targets[at.shard]
			return fmt.Errorf("%w: shard %s on %s was truncated, dropped, rebuilt or restored; before a cutover abort the job and begin again, after one %s has its rows, and the runbook says how to bring them back",
				openjob.ErrChanged, to.Name, to.Database.Label, backend.Retired(t.Conf.Name))
		}
	}
	return nil
}

// CheckTargets fails when a table of a shard is not what it was. One of which
// nothing is known is taken as it is: an operator has agreed to that.
func (l *Leader) CheckTargets(ctx context.Context) error {
	was, err := l.state.NotedTargets(ctx)
	if err != nil {
		return err
	}
	is, err := l.state.TargetIdentities(ctx)
	if err != nil {
		return err
	}
	err = l.OnSource(ctx, func(s *backend.Session) error {
		if err := l.state.CompareTargets(was, is); err != nil {
			return err
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

// beat counts up, on the shards first: what the source knows, they had.
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
