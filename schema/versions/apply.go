// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// outcomes are the definitions that tables had after each statement of a version, on any
// database. They are safe for concurrent use.
type outcomes struct {
	mu    sync.Mutex
	after map[int][]string // by statement
}

func (o *outcomes) add(statement int, definition string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.after[statement] = append(o.after[statement], definition)
}

func (o *outcomes) has(statement int, definition string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Contains(o.after[statement], definition)
}

// outcomes returns the definitions that the notes contain.
func (v *visit) outcomes(file *version, d direction) *outcomes {
	known := &outcomes{after: map[int][]string{}}
	for _, s := range v.shards {
		for k, n := range s.notes {
			if k.version == file.number && k.direction == d && n.state == done {
				known.add(k.statement, n.after)
			}
		}
	}
	return known
}

// applyAll runs the remaining statements of a version in the databases. A version that was
// not begun before runs on the first database alone first. A database where the outcome of
// a statement is unclear is tried again when the others have shown its outcome.
func (v *visit) applyAll(ctx context.Context, shards []*shard, file *version, d direction, begun bool) error {
	known := v.outcomes(file, d)
	apply := func(s *shard) error { return v.apply(ctx, s, file, d, known) }
	rest := shards
	if !begun {
		if err := apply(shards[0]); err != nil {
			return err
		}
		rest = shards[1:]
	}
	unclear := make(chan *shard, len(shards))
	err := v.each(rest, func(s *shard) error {
		err := apply(s)
		if errors.Is(err, ErrUnclear) {
			unclear <- s
			return nil
		}
		return err
	})
	close(unclear)
	var again []*shard
	for s := range unclear {
		again = append(again, s)
	}
	if err := errors.Join(err, v.each(again, apply)); err != nil || d == up || v.missing != nil {
		return err
	}
	return v.each(shards, func(s *shard) error { return v.forgetUndone(ctx, s, file) })
}

// forgetUndone removes the notes of a version that all databases have undone. Until then
// they show the outcome of a statement that was in flight on another database. Another
// runner may have removed them meanwhile, and have applied the version again.
func (v *visit) forgetUndone(ctx context.Context, s *shard, file *version) error {
	steps, err := v.steps(s, file, down)
	if err != nil {
		return err
	}
	return s.locked(ctx, func() error {
		return s.atOnce(ctx, func(on execer) error {
			have, err := s.session.notes(ctx, on)
			if err != nil {
				return err
			}
			for i := range steps {
				if kept := have[steps[i].key(down)]; kept == nil || kept.state == began {
					return nil
				}
			}
			return s.forgetVersion(ctx, on, file.number)
		})
	})
}

// apply runs the remaining statements of a version in one database.
func (v *visit) apply(ctx context.Context, s *shard, file *version, d direction, known *outcomes) error {
	steps, err := v.steps(s, file, d)
	if err != nil {
		return err
	}
	c := &execution{visit: v, shard: s, file: file, direction: d, steps: steps, known: known}
	err = s.locked(ctx, func() error {
		if err := s.makeLog(ctx); err != nil {
			return err
		}
		if s.transactional(file.in(d).tx) {
			return c.inOneTransaction(ctx)
		}
		return c.oneByOne(ctx)
	})
	if err != nil {
		return fmt.Errorf("%s in %s: %w", file.name, s.name, err)
	}
	return nil
}

// execution runs a version in one database.
type execution struct {
	*visit
	*shard

	file      *version
	direction direction
	steps     []Step
	known     *outcomes
}

// inOneTransaction runs the version and its notes in one transaction.
func (c *execution) inOneTransaction(ctx context.Context) error {
	var finished []Step
	err := c.atOnce(ctx, func(on execer) error {
		finished = nil
		have, err := c.session.notes(ctx, on)
		if err != nil {
			return err
		}
		for i := range c.steps {
			step := &c.steps[i]
			if kept := have[step.key(c.direction)]; kept != nil && kept.state != began {
				continue
			}
			if err := c.execute(ctx, on, step, ""); err != nil {
				return err
			}
			finished = append(finished, *step)
		}
		if c.direction == down {
			return c.forgetVersion(ctx, on, c.file.number)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, step := range finished {
		c.tell(step)
	}
	return nil
}

// execute sends a statement, and notes that it was executed.
func (c *execution) execute(ctx context.Context, on execer, step *Step, before string) error {
	if _, err := on.ExecContext(ctx, step.SQL); err != nil {
		return fmt.Errorf("%s: %w: %s", step.Target, err, shortened(step.SQL))
	}
	after, err := c.definitionOf(ctx, on, step)
	if err != nil {
		return err
	}
	return c.write(ctx, on, c.note(step, done, before, after))
}

func (c *execution) note(step *Step, state noteState, before, after string) *note {
	return &note{
		version: step.Version, direction: c.direction, statement: step.Statement, place: step.Target.Table,
		state: state, fingerprint: fingerprint(step.text), before: before, after: after,
	}
}

// oneByOne runs the version where a transaction cannot undo a statement.
func (c *execution) oneByOne(ctx context.Context) error {
	have, err := c.session.notes(ctx, c)
	if err != nil {
		return err
	}
	c.inFlightLast(have)
	for i := range c.steps {
		step := &c.steps[i]
		kept := have[step.key(c.direction)]
		if kept != nil && kept.state != began {
			continue
		}
		if err := c.runStep(ctx, step, kept); err != nil {
			return err
		}
		c.tell(*step)
	}
	return nil
}

// inFlightLast moves a statement that was in flight behind the same statement on other
// tables, as these show its outcome.
func (c *execution) inFlightLast(have notes) {
	inFlight := func(step Step) int {
		if kept := have[step.key(c.direction)]; kept != nil && kept.state == began {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(c.steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.Statement, b.Statement), cmp.Compare(inFlight(a), inFlight(b)))
	})
}

// runStep runs one statement, which may have been in flight.
func (c *execution) runStep(ctx context.Context, step *Step, inFlight *note) error {
	now, err := c.definitionOf(ctx, c, step)
	if err != nil {
		return err
	}
	switch {
	case inFlight == nil:
		if err := c.replace(ctx, c.note(step, began, now, "")); err != nil {
			return err
		}
	case now == inFlight.before: // it was not executed, as the definition would have changed
	case step.drops && now == nothing(step), c.known.has(step.Statement, now):
		return c.replace(ctx, c.note(step, done, inFlight.before, now))
	default:
		return fmt.Errorf("%w: statement %d on %s; before it the table was\n%s\nand now it is\n%s\ncompare them, and run shardid ddl resolve --version %d --table %s with --done or --not-done (Runner.Resolve): %s",
			ErrUnclear, step.Statement, step.Target, inFlight.before, now, step.Version, step.Target, shortened(step.SQL))
	}
	if _, err := c.ExecContext(ctx, step.SQL); err != nil {
		return fmt.Errorf("%s: %w: %s", step.Target, err, c.withdraw(ctx, step, now))
	}
	after, err := c.definitionOf(ctx, c, step)
	if err != nil {
		return err
	}
	c.known.add(step.Statement, after)
	return c.replace(ctx, c.note(step, done, now, after))
}

// withdraw removes the note of a failed statement, if the table shows that nothing was
// done, so that its file can be corrected. It returns the statement, for the error.
func (c *execution) withdraw(ctx context.Context, step *Step, before string) string {
	if now, err := c.definitionOf(ctx, c, step); err == nil && now == before {
		_ = c.atOnce(ctx, func(on execer) error { return c.forget(ctx, on, step.key(c.direction)) }) // after an error the note stays
	}
	return shortened(step.SQL)
}
