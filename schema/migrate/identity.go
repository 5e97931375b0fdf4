package migrate

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/schema/migrate/internal/proto"
)

// checkIdentities fails when a table was truncated, rebuilt or altered: the log
// does not know of it.
func (w *world) checkIdentities(ctx context.Context, s *session) error {
	spans, err := w.spans(ctx, s, false)
	if err != nil {
		return err
	}
	for _, t := range w.tables {
		identity, err := s.side.identity(ctx, s, t.name)
		if err != nil {
			return err
		}
		if identity != spans[t.ord].identity {
			return fmt.Errorf("%w: table %s was truncated, altered or restored", ErrChanged, t.conf.Name)
		}
	}
	return nil
}

// checkDefinitions is what can be asked of a table on another server.
func (w *world) checkDefinitions(ctx context.Context, s *session) error {
	spans, err := w.spans(ctx, s, false)
	if err != nil {
		return err
	}
	for _, t := range w.tables {
		is, err := s.side.identity(ctx, s, t.name)
		if err != nil {
			return err
		}
		if definitionOf(is) != definitionOf(spans[t.ord].identity) {
			return fmt.Errorf("%w: table %s was altered", ErrChanged, t.conf.Name)
		}
	}
	return nil
}

// definitionOf is the part of an identity that all servers have in common.
func definitionOf(identity string) string { return identity[strings.LastIndex(identity, " ")+1:] }

// place is a table of a shard: which of the job's, which of its targets.
type place struct{ tbl, shard int }

// standing is what tells that the table of a shard is still the one it was.
type standing struct {
	// numbers are those of the table under its name and under that of a closed one:
	// a TRUNCATE changes them, a DROP, and a restore from statements.
	numbers [2]string
	// beat counts up while a runner is at work: a restore of files goes back.
	beat int64
}

// follows: the table of the shard is the one that was written down.
func (is standing) follows(was standing) bool {
	return slices.Contains(is.numbers[:], was.numbers[0]) && is.beat >= was.beat
}

// standings reads those of all targets.
func (w *world) standings(ctx context.Context) (map[place]standing, error) {
	all := map[place]standing{}
	for _, side := range w.sides {
		if err := side.do(ctx, func(s *session) error { return w.standingsOn(ctx, s, all) }); err != nil {
			return nil, fmt.Errorf("database %s: %w", side.name, err)
		}
	}
	return all, nil
}

func (w *world) standingsOn(ctx context.Context, s *session, all map[place]standing) error {
	var names []string
	for _, to := range w.targetsOn(s.side) {
		names = append(names, to.name, sealed(to.name))
	}
	numbers, err := s.side.numbers(ctx, s, names)
	if err != nil {
		return err
	}
	beats := map[string]int64{}
	err = s.each(ctx, func(rows *sql.Rows) error {
		var name string
		var beat int64
		err := rows.Scan(&name, &beat)
		beats[name] = beat
		return err
	}, "SELECT name, beat FROM "+ownerTable+" WHERE job = ?", w.cfg.Name)
	for _, t := range w.tables {
		for i, to := range t.targets {
			if to.side == s.side {
				all[place{t.ord, i}] = standing{[2]string{numbers[to.name], numbers[sealed(to.name)]}, beats[to.name]}
			}
		}
	}
	return err
}

// noteTargets writes down what the tables of the shards are now.
func (l *lead) noteTargets(ctx context.Context, s *session, is map[place]standing) error {
	if err := s.exec(ctx, "DELETE FROM "+targetTable+" WHERE job = ?", l.cfg.Name); err != nil {
		return err
	}
	for at, now := range is {
		if err := l.noteTarget(ctx, s, at, now); err != nil {
			return err
		}
	}
	return nil
}

func (l *lead) noteTarget(ctx context.Context, s *session, at place, is standing) error {
	to := l.tables[at.tbl].targets[at.shard]
	return s.exec(ctx, "INSERT INTO "+targetTable+" (job, tbl, shard, place, identity, beat) VALUES (?, ?, ?, ?, ?, ?)",
		l.cfg.Name, at.tbl, at.shard, to.side.name+"/"+to.name, cmp.Or(is.numbers[:]...), is.beat)
}

// noted reads what was written down of the shards' tables. It has to be read before
// their standings: a beat reaches the shards first.
func (w *world) noted(ctx context.Context) (was map[place]standing, err error) {
	err = w.source.do(ctx, func(s *session) error {
		was = map[place]standing{}
		return s.each(ctx, func(rows *sql.Rows) error {
			var at place
			var of standing
			err := rows.Scan(&at.tbl, &at.shard, &of.numbers[0], &of.beat)
			was[at] = of
			return err
		}, "SELECT tbl, shard, identity, beat FROM "+targetTable+" WHERE job = ?", w.cfg.Name)
	})
	return was, err
}

// compareTargets fails when a table of a shard is not the one that was written
// down. It returns those of which nothing is.
func (w *world) compareTargets(was, is map[place]standing) (unknown []place, err error) {
	for at, now := range is {
		known, ok := was[at]
		if !ok {
			unknown = append(unknown, at)
		} else if !now.follows(known) {
			t := w.tables[at.tbl]
			to := t.targets[at.shard]
			return nil, fmt.Errorf("%w: shard %s on %s was truncated, dropped, rebuilt or restored; before a cutover abort the job and begin again, after one %s has its rows, and the runbook says how to bring them back",
				ErrChanged, to.name, to.side.name, retired(t.conf.Name))
		}
	}
	return unknown, nil
}

// checkTargets fails when a table of a shard is not what it was. One of which
// nothing is known is taken as it is: an operator has agreed to that.
func (l *lead) checkTargets(ctx context.Context) error {
	was, err := l.noted(ctx)
	if err != nil {
		return err
	}
	is, err := l.standings(ctx)
	if err != nil {
		return err
	}
	err = l.onSource(ctx, func(s *session) error {
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
func (l *lead) beat(ctx context.Context, is map[place]standing) error {
	next := int64(1)
	for _, of := range is {
		next = max(next, of.beat+1)
	}
	for _, side := range l.sides {
		err := l.on(ctx, side, func(s *session) error {
			return s.exec(ctx, "UPDATE "+ownerTable+" SET beat = ? WHERE job = ? AND owner = ?", next, l.cfg.Name, l.mark)
		})
		if err != nil {
			return fmt.Errorf("database %s: %w", side.name, err)
		}
	}
	return l.onSource(ctx, func(s *session) error {
		return s.exec(ctx, "UPDATE "+targetTable+" SET beat = ? WHERE job = ?", next, l.cfg.Name)
	})
}

// checkAll is for a job whose source serves: what looks like changes of a table that
// was truncated or altered, a runner would do to the only copies that are left. No
// other runner leads meanwhile, or the answer is ErrFenced.
func (l *lead) checkAll(ctx context.Context) error {
	if err := l.onSource(ctx, func(s *session) error { return l.checkIdentities(ctx, s) }); err != nil {
		return err
	}
	return l.checkTargets(ctx)
}

// unchanged ends a pass when a table was truncated or altered: what differs then
// must not be noted, for the runner would delete the only copies.
func (v *verifier) unchanged(ctx context.Context) error {
	if !v.guarded {
		return nil
	}
	was, err := v.noted(ctx)
	if err != nil {
		return err
	}
	is, err := v.standings(ctx)
	if err != nil {
		return err
	}
	return v.source.do(ctx, func(s *session) error {
		changed := v.changed(ctx, s, was, is)
		phase, err := v.phase(ctx, s) // afterwards: a switch takes the tables away
		if served := phase == proto.Switched; err == nil && (served != v.behind || !served && phase != proto.Copying && phase != proto.Following) {
			err = fmt.Errorf("%w: the job is %q by now; verify again", ErrPhase, phase)
		}
		if err != nil {
			return err
		}
		return changed
	})
}

// changed compares all tables with what they were. On another server they have
// other numbers.
func (v *verifier) changed(ctx context.Context, s *session, was, is map[place]standing) error {
	moved, err := v.moved(ctx, s)
	if err != nil {
		return err
	}
	if !moved {
		if _, err := v.compareTargets(was, is); err != nil {
			return err
		}
	}
	switch {
	case v.behind:
		return nil
	case moved:
		return v.checkDefinitions(ctx, s)
	}
	return v.checkIdentities(ctx, s)
}

// explain names what became of a table when that made a statement fail.
func explain(ctx context.Context, err error, unchanged func(context.Context) error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrFenced) || errors.Is(err, ErrChanged) || errors.Is(err, ErrPhase) {
		return err
	}
	if cause := unchanged(ctx); errors.Is(cause, ErrChanged) || errors.Is(cause, ErrPhase) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
