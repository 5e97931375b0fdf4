package migrate

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/shardid/shardid/schema/internal/backend"
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

// targetIdentities reads those of all tables of the shards.
func (w *openJob) targetIdentities(ctx context.Context) (map[place]targetIdentity, error) {
	all := map[place]targetIdentity{}
	for _, side := range w.Shards {
		if err := side.Do(ctx, func(s *backend.Session) error { return w.targetIdentitiesOn(ctx, s, all) }); err != nil {
			return nil, fmt.Errorf("database %s: %w", side.Label, err)
		}
	}
	return all, nil
}

func (w *openJob) targetIdentitiesOn(ctx context.Context, s *backend.Session, all map[place]targetIdentity) error {
	var names []string
	for _, to := range w.TargetsOn(s.Database) {
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
	}, "SELECT name, beat FROM "+backend.OwnerTable+" WHERE job = ?", w.cfg.Name)
	for _, t := range w.Tables {
		for i, to := range t.Targets {
			if to.Database == s.Database {
				all[place{t.Number, i}] = targetIdentity{[2]string{numbers[to.Name], numbers[backend.Sealed(to.Name)]}, beats[to.Name]}
			}
		}
	}
	return err
}

// noteTargets writes down what the tables of the shards are now.
func (l *leader) noteTargets(ctx context.Context, s *backend.Session, is map[place]targetIdentity) error {
	if err := s.Exec(ctx, "DELETE FROM "+backend.TargetTable+" WHERE job = ?", l.cfg.Name); err != nil {
		return err
	}
	for at, now := range is {
		if err := l.noteTarget(ctx, s, at, now); err != nil {
			return err
		}
	}
	return nil
}

func (l *leader) noteTarget(ctx context.Context, s *backend.Session, at place, is targetIdentity) error {
	to := l.Tables[at.tbl].Targets[at.shard]
	return s.Exec(ctx, "INSERT INTO "+backend.TargetTable+" (job, tbl, shard, place, identity, beat) VALUES (?, ?, ?, ?, ?, ?)",
		l.cfg.Name, at.tbl, at.shard, to.Database.Label+"/"+to.Name, cmp.Or(is.numbers[:]...), is.beat)
}

// noted reads what was written down of the shards' tables. It has to be read before
// their identities now: a beat reaches the shards first.
func (w *openJob) noted(ctx context.Context) (was map[place]targetIdentity, err error) {
	err = w.Source.Do(ctx, func(s *backend.Session) error {
		was = map[place]targetIdentity{}
		return s.Each(ctx, func(rows *sql.Rows) error {
			var at place
			var of targetIdentity
			err := rows.Scan(&at.tbl, &at.shard, &of.numbers[0], &of.beat)
			was[at] = of
			return err
		}, "SELECT tbl, shard, identity, beat FROM "+backend.TargetTable+" WHERE job = ?", w.cfg.Name)
	})
	return was, err
}

// compareTargets fails when a table of a shard is not the one that was written
// down. It returns those of which nothing is.
func (w *openJob) compareTargets(was, is map[place]targetIdentity) (unknown []place, err error) {
	for at, now := range is {
		known, ok := was[at]
		if !ok {
			unknown = append(unknown, at)
		} else if !now.follows(known) {
			t := w.Tables[at.tbl]
			to := t.Targets[at.shard]
			return nil, fmt.Errorf("%w: shard %s on %s was truncated, dropped, rebuilt or restored; before a cutover abort the job and begin again, after one %s has its rows, and the runbook says how to bring them back",
				ErrChanged, to.Name, to.Database.Label, backend.Retired(t.Conf.Name))
		}
	}
	return unknown, nil
}

// checkTargets fails when a table of a shard is not what it was. One of which
// nothing is known is taken as it is: an operator has agreed to that.
func (l *leader) checkTargets(ctx context.Context) error {
	was, err := l.noted(ctx)
	if err != nil {
		return err
	}
	is, err := l.targetIdentities(ctx)
	if err != nil {
		return err
	}
	err = l.onSource(ctx, func(s *backend.Session) error {
		unknown, err := l.compareTargets(was, is)
		for _, at := range unknown {
			if err == nil {
				err = l.noteTarget(ctx, s, at, is[at])
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return l.beat(ctx, is)
}

// beat counts up, on the shards first: what the source knows, they had.
func (l *leader) beat(ctx context.Context, is map[place]targetIdentity) error {
	next := int64(1)
	for _, of := range is {
		next = max(next, of.beat+1)
	}
	for _, side := range l.Shards {
		err := l.on(ctx, side, func(s *backend.Session) error {
			return s.Exec(ctx, "UPDATE "+backend.OwnerTable+" SET beat = ? WHERE job = ? AND owner = ?", next, l.cfg.Name, l.mark)
		})
		if err != nil {
			return fmt.Errorf("database %s: %w", side.Label, err)
		}
	}
	return l.onSource(ctx, func(s *backend.Session) error {
		return s.Exec(ctx, "UPDATE "+backend.TargetTable+" SET beat = ? WHERE job = ?", next, l.cfg.Name)
	})
}
