// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/preflight"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/schema/internal/verify"
)

// moveIn verifies every row when a database is on another server than when the job last
// used it. A replica that took over may lack the last commits: rows of a shard whose log
// entries are deleted, or changes of the source that shards have. After moveIn each row is
// correct, or its change is in the log.
func (l *leader) moveIn(ctx context.Context, phase proto.Phase) error {
	var moved, source bool
	err := l.Source.Do(ctx, func(s *backend.Session) (err error) {
		moved, source, err = l.Moved(ctx, s)
		return err
	})
	if err != nil || !moved {
		return err
	}
	if phase != proto.Switched {
		if err := l.startOver(ctx, source); err != nil {
			return err
		}
	}
	if _, err := verify.Compare(ctx, l.State, verify.Options{ChunkRows: l.cfg.ChunkRows, Workers: l.cfg.Copiers, Guarded: false}); err != nil {
		return fmt.Errorf("compare after a change of servers: %w", err)
	}
	is, err := l.TargetIdentities(ctx)
	if err != nil {
		return err
	}
	return l.OnSource(ctx, func(s *backend.Session) error {
		return l.Acknowledge(ctx, s, is)
	})
}

// startOver removes rows that shards may have above the bounds that this server has stored. A source that is
// where it was knows whether writers have reached the shards.
func (l *leader) startOver(ctx context.Context, anotherSource bool) error {
	if anotherSource {
		if err := l.checkTaken(ctx); err != nil {
			return err
		}
	}
	err := l.OnSource(ctx, func(s *backend.Session) error {
		if err := l.CheckDefinitions(ctx, s); err != nil {
			return err
		}
		return s.Exec(ctx, "UPDATE "+backend.SpanTable+" SET hig = ? WHERE job = ?", proto.Top.ID, l.cfg.Name)
	})
	if err != nil {
		return err
	}
	return l.copier.Prune(ctx)
}

// checkTaken fails when writers may have reached the shards: a source that lacks the last
// seconds of a switch would overwrite their rows.
func (w *openJob) checkTaken(ctx context.Context) error {
	return w.EachTarget(ctx, func(s *backend.Session, t *openjob.Table, i int) error {
		sh, err := s.Database.Describe(ctx, s, t.Targets[i].Present())
		if err != nil {
			return err
		}
		for _, name := range sh.Triggers {
			if strings.HasPrefix(name, "shardid_"+w.cfg.Name+"_b") {
				return fmt.Errorf("%w: another server has taken over, which knows of no switch, but one was under way: "+
					"check whether writers have reached the shards; if none has, drop the triggers shardid_%s_b… there and try again", ErrUnclear, w.cfg.Name)
			}
		}
		return nil
	})
}

// checkAll is for a job whose source serves. It checks the tables first: after a TRUNCATE
// or an ALTER of a table, a runner would take the missing rows for deletions and delete the
// only copies. If another runner leads meanwhile, the error is ErrFenced.
func (l *leader) checkAll(ctx context.Context) error {
	err := l.OnSource(ctx, func(s *backend.Session) error {
		if err := preflight.CheckWriters(ctx, s); err != nil {
			return err
		}
		return l.CheckIdentities(ctx, s)
	})
	if err != nil {
		return err
	}
	return l.CheckTargets(ctx)
}
