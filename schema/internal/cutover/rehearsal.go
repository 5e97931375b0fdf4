// SPDX-License-Identifier: Apache-2.0

package cutover

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
)

// After the first rename a switch has to be finished, however long it takes. So the
// duration of a rename is measured before writers have to wait.

// rehearse returns how long the slowest of the databases needs to change a table's
// definition.
func (l *Stage) rehearse(ctx context.Context, sides ...*backend.Database) (time.Duration, error) {
	var mu sync.Mutex
	var longest time.Duration
	tasks := make([]func(context.Context) error, len(sides))
	for i, side := range sides {
		tasks[i] = func(ctx context.Context) error {
			took, err := l.rehearseOn(ctx, side, i)
			if err != nil {
				return fmt.Errorf("measure a rename on %s: %w", side.Label, err)
			}
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, took)
			return nil
		}
	}
	err := backend.Together(ctx, tasks...)
	return longest, err
}

// rehearseOn renames a table of its own, and renames it back. The faster of the two counts,
// as the other may have waited for a session that a switch would lock out. Each database
// has its own name for the table, as the source and a shard may share a database.
func (l *Stage) rehearseOn(ctx context.Context, side *backend.Database, n int) (took time.Duration, err error) {
	one, other := fmt.Sprintf("shardid_try_%s_%d", l.Name, n), fmt.Sprintf("shardid_was_%s_%d", l.Name, n)
	err = l.Define(ctx, side, func(s *backend.Session) error {
		drop := []string{"DROP TABLE IF EXISTS " + side.Quote(one), "DROP TABLE IF EXISTS " + side.Quote(other)}
		if err := s.ExecAll(ctx, append(drop, "CREATE TABLE "+side.Quote(one)+" (id INTEGER PRIMARY KEY)")); err != nil {
			return err
		}
		took = backend.RetryLimit
		for _, statement := range []string{side.Rename(one, other), side.Rename(other, one)} {
			began := time.Now()
			if err := s.Exec(ctx, statement); err != nil {
				return err
			}
			took = min(took, time.Since(began))
		}
		return s.ExecAll(ctx, drop)
	})
	return took, err
}

// rehearseCutover returns how long a cutover takes from its first rename on: one for each
// table of the source, one for all closed shards of a database, and the route.
func (l *Stage) rehearseCutover(ctx context.Context) (time.Duration, error) {
	steps := len(l.Tables) + 2
	for _, t := range l.Tables {
		if l.Source.Undoes() && l.Tables.CarriedInto(t) {
			steps += 2 * len(l.Source.Barrier(l.Capture(t))) // each is checked and created
		}
	}
	one, err := l.rehearse(ctx, append([]*backend.Database{l.Source}, l.Shards...)...)
	return one * time.Duration(steps), err
}

// rehearseRollback returns how long a rollback takes from its first rename on: databases
// rename their shards side by side; then each table of the source gets other
// triggers and its name.
func (l *Stage) rehearseRollback(ctx context.Context) (needs rollbackNeeds, err error) {
	shards := 0
	for _, side := range l.Shards {
		shards = max(shards, len(l.TargetsOn(side)))
	}
	steps := 1 // the route
	for _, t := range l.Tables {
		steps += len(l.Source.Barrier(l.Capture(t))) + len(l.Source.Capture(l.Capture(t))) + 2
	}
	one, err := l.rehearse(ctx, append([]*backend.Database{l.Source}, l.Shards...)...)
	needs.reinstating = one * time.Duration(steps)
	needs.all = needs.reinstating + one*time.Duration(shards+1) // and one for the phase
	return needs, err
}

// rollbackNeeds is how long a rollback takes from its first rename on, and how long from
// the moment when the last shard is closed.
type rollbackNeeds struct{ all, reinstating time.Duration }

// enough fails when the steps from the first rename on would not fit into the rest of a
// pause.
func (l *Stage) enough(limit, spent, needs time.Duration) error {
	if spent+needs <= limit {
		return nil
	}
	return l.conf.TooLong(limit, "about to rename the tables", needs)
}
