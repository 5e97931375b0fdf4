// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardid/shardid/sharding"
)

// Resolve answers an ErrUnclear: whether the statement that was in flight on a physical
// table was executed. If it was, the table's present definition is what other shards are
// compared with. A statement that is not in flight is an ErrNotInFlight.
func (r *Runner) Resolve(ctx context.Context, number int64, at sharding.Target, wasDone bool) (err error) {
	v, err := r.visit(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	file := r.file(number)
	if file == nil {
		return r.noVersion(number)
	}
	for _, s := range v.shards {
		if s.name != at.DB {
			continue
		}
		known := false
		for _, d := range []direction{up, down} {
			steps, err := v.steps(s, file, d)
			if err != nil {
				return err
			}
			for i := range steps {
				known = known || steps[i].Target == at
				if kept := s.notes[steps[i].key(d)]; kept != nil && kept.state == began && steps[i].Target == at {
					return s.locked(ctx, func() error { return s.resolve(ctx, &steps[i], kept, wasDone) })
				}
			}
		}
		if !known {
			return fmt.Errorf("%w: %s has no statement for %s; name the table that the error of Up names", ErrNotInFlight, file.name, at)
		}
		return fmt.Errorf("%w: there is nothing to resolve of %s on %s; run Up", ErrNotInFlight, file.name, at)
	}
	if r.config.Router.DB(at.DB) == nil {
		return fmt.Errorf("%w: the router has no database %s; name the one that the error of Up names", ErrNotInFlight, at.DB)
	}
	return errors.Join(fmt.Errorf("versions: database %s does not answer", at.DB), v.missing)
}

func (s *shard) resolve(ctx context.Context, step *Step, inFlight *note, wasDone bool) error {
	if !wasDone {
		return s.atOnce(ctx, func(on execer) error { return s.forget(ctx, on, inFlight.key()) })
	}
	now, err := s.definitionOf(ctx, s, step)
	if err != nil {
		return err
	}
	resolved := *inFlight
	resolved.state, resolved.after = done, now
	return s.replace(ctx, &resolved)
}

// Adopt notes all versions up to the given one as done wherever there is no note of them,
// and sends none of their statements: for tables that were created otherwise, and for a
// server to which tables were moved with their definitions. It refuses with ErrDiffers
// while shards of a table differ, and needs all databases.
func (r *Runner) Adopt(ctx context.Context, to int64) (err error) {
	v, err := r.visit(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	if v.missing != nil {
		return v.missing
	}
	if r.file(to) == nil {
		return r.noVersion(to)
	}
	differ, err := v.drift(ctx)
	if err != nil {
		return err
	}
	if len(differ) > 0 {
		return fmt.Errorf("%w: %s", ErrDiffers, differ[0])
	}
	return v.each(v.shards, func(s *shard) error {
		return s.locked(ctx, func() error { return v.adopt(ctx, s, to) })
	})
}

func (v *visit) adopt(ctx context.Context, s *shard, to int64) error {
	if err := s.makeLog(ctx); err != nil {
		return err
	}
	return s.atOnce(ctx, func(on execer) error {
		have, err := s.session.notes(ctx, on)
		if err != nil {
			return err
		}
		for _, file := range v.versions {
			if file.number > to {
				break
			}
			steps, err := v.steps(s, file, up)
			if err != nil {
				return err
			}
			for i := range steps {
				c := execution{direction: up}
				if have[steps[i].key(up)] == nil {
					if err := s.write(ctx, on, c.note(&steps[i], adopted, "", "")); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}
