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

// moveIn makes sure of every row when a database is on another server than when
// the job was last there. A replica that took over may lack what was committed
// last: rows of a shard whose changes were done with, or changes of the source
// that shards have. After it each row is right, or its change is in the log.
func (l *leader) moveIn(ctx context.Context, phase proto.Phase) error {
	var moved bool
	err := l.Source.Do(ctx, func(s *backend.Session) (err error) {
		moved, err = l.Moved(ctx, s)
		return err
	})
	if err != nil || !moved {
		return err
	}
	if phase != proto.Switched {
		if err := l.startOver(ctx); err != nil {
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

// startOver removes what shards may have above the bounds that this server
// knows.
func (l *leader) startOver(ctx context.Context) error {
	if err := l.checkTaken(ctx); err != nil {
		return err
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

// checkTaken fails when shards may have rows of writers: a source that lacks the
// last seconds of a switch would have them overwritten.
func (w *openJob) checkTaken(ctx context.Context) error {
	return w.EachTarget(ctx, func(s *backend.Session, t *openjob.Table, i int) error {
		sh, err := s.Database.Describe(ctx, s, t.Targets[i].Present())
		if err != nil {
			return err
		}
		for _, name := range sh.Triggers {
			if strings.HasPrefix(name, "shardid_"+w.cfg.Name+"_b") {
				return fmt.Errorf("%w: another server has taken over, which knows of no switch, but one was under way: "+
					"see whether writers have reached the shards; when none has, drop the triggers shardid_%s_b… there and try again", ErrUnclear, w.cfg.Name)
			}
		}
		return nil
	})
}

// checkAll is for a job whose source serves, and has to see all that its writers do: what
// looks like changes of a table that was truncated or altered, a runner would do to the
// only copies that are left. No other runner leads meanwhile, or the answer is ErrFenced.
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
