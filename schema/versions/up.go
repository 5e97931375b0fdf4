// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Up runs all versions up to the given one, 0 for all, wherever they are not done. A
// version runs on one database first, and on the others when it has succeeded there. When a
// database fails, the others finish that version, and no further one is begun. While a
// database is unreachable, no version is begun, and one that was begun is finished on the
// others. Errors are joined. Call it again to continue.
func (r *Runner) Up(ctx context.Context, to int64) (err error) {
	v, err := r.visit(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	if to != 0 && r.file(to) == nil {
		return r.noVersion(to)
	}
	if err := v.inOrder(); err != nil {
		return err
	}
	for _, file := range r.versions {
		if to != 0 && file.number > to {
			break
		}
		if err := v.run(ctx, file); err != nil {
			return err
		}
	}
	return v.missing
}

// run applies a version to all shards that lack it.
func (v *visit) run(ctx context.Context, file *version) error {
	if err := v.look(ctx); err != nil {
		return err
	}
	var lacking []*shard
	begun := false
	for _, s := range v.shards {
		steps, err := v.steps(s, file, up)
		if err != nil {
			return err
		}
		if err := s.notes.check(file, steps, up); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		state, _ := s.notes.state(file.number, steps)
		if state == Undoing {
			return fmt.Errorf("%w: Down of %s was begun in %s; run Down again first", ErrPartial, file.name, s.name)
		}
		begun = begun || state != Pending && len(steps) > 0
		if state != Applied {
			lacking = append(lacking, s)
		}
	}
	switch {
	case len(lacking) == 0:
		return nil
	case v.missing != nil && !begun:
		return v.missing
	}
	return errors.Join(v.applyAll(ctx, lacking, file, up, begun), v.missing)
}

// Down undoes the newest version that any database has, on all of them, and returns its
// number, or 0 if there is none. It resumes after an interruption, and begins with one
// database as Up does.
func (r *Runner) Down(ctx context.Context) (undone int64, err error) {
	v, err := r.visit(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	if err := v.inOrder(); err != nil {
		return 0, err
	}
	var newest int64
	for _, s := range v.shards {
		newest = slices.Max(append(s.notes.versions(), newest))
	}
	file := r.file(newest)
	if file == nil {
		return 0, v.missing
	}
	having, begun, err := v.undoable(file)
	if err != nil {
		return 0, err
	}
	if v.missing != nil && !begun {
		return 0, v.missing
	}
	return newest, errors.Join(v.applyAll(ctx, having, file, down, begun), v.missing)
}

// undoable returns the shards that have the version, and whether one of them is undoing it.
func (v *visit) undoable(file *version) (having []*shard, begun bool, err error) {
	if len(file.down.statements) == 0 {
		return nil, false, fmt.Errorf("%w: %s", ErrNoDown, file.name)
	}
	for _, s := range v.shards {
		steps, err := v.steps(s, file, up)
		if err != nil {
			return nil, false, err
		}
		undo, err := v.steps(s, file, down)
		if err != nil {
			return nil, false, err
		}
		if err := errors.Join(s.notes.check(file, steps, up), s.notes.check(file, undo, down)); err != nil {
			return nil, false, fmt.Errorf("%s: %w", s.name, err)
		}
		switch state, _ := s.notes.state(file.number, steps); {
		case state == Undoing || state == Applied && len(steps) > 0:
			having = append(having, s)
			begun = begun || state == Undoing
		case state != Pending && len(steps) > 0:
			return nil, false, fmt.Errorf("%w: %s is %s in %s; run Up first", ErrPartial, file.name, state, s.name)
		}
	}
	return having, begun, nil
}
