// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/copier"
	"github.com/shardid/shardid/schema/internal/cutover"
	"github.com/shardid/shardid/schema/internal/follow"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/preflight"
	"github.com/shardid/shardid/schema/internal/proto"
)

// leader is an open job that this runner leads.
type leader struct {
	*openJob
	*lead.Leader

	streams *follow.Streams
	copier  *copier.Copier
	cut     *cutover.Stage
}

func (w *openJob) lead(ctx context.Context) (*leader, error) {
	l, err := lead.Take(ctx, w.State, w.cfg.Cause)
	if err != nil {
		return nil, err
	}
	streams := follow.NewStreams(w.State, l, w.budget)
	of := &leader{openJob: w, Leader: l, streams: streams}
	of.copier = copier.New(w.State, l, w.budget, copier.Pace{ChunkRows: w.cfg.ChunkRows, Copiers: w.cfg.Copiers, Throttle: w.cfg.Throttle})
	of.cut = cutover.New(w.State, l, streams, cutover.Config{Ready: w.cfg.Ready, Unchanged: of.checkAll, MoveIn: of.moveIn, TooLong: tooLong})
	return of, nil
}

// begin installs what is missing and returns the phase of the job.
func (l *leader) begin(ctx context.Context) (proto.Phase, error) {
	phase, err := l.ReadPhase(ctx)
	if err != nil || phase != "" {
		return phase, err
	}
	if found := l.Edges(); len(found) > 0 {
		return "", fmt.Errorf("%w: %s", ErrNotReady, strings.Join(found, "; "))
	}
	err = l.Source.Do(ctx, func(s *backend.Session) error {
		if err := preflight.CheckWriters(ctx, s); err != nil {
			return err
		}
		if err := lead.CheckOwner(ctx, s, l.Name, l.Tables.Names()); err != nil { // before anything is created; Register checks it again
			return err
		}
		for _, t := range l.Tables { // a user without the right to read a table must not create triggers first
			if _, err := s.Database.Identity(ctx, s, t.Name); err != nil {
				return err
			}
		}
		return l.Tables.CheckIDs(ctx, s)
	})
	if err != nil {
		return "", err
	}
	if err := l.checkBlocked(ctx); err != nil {
		return "", err
	}
	if err := l.install(ctx); err != nil {
		return "", errors.Join(err, l.Disown(ctx))
	}
	return proto.Copying, nil
}

// checkBlocked fails when Inspect has blocking findings for a job that has not begun. A database with shards that went away
// meanwhile blocks nothing: a runner waits for it.
func (l *leader) checkBlocked(ctx context.Context) error {
	inspected, err := preflight.Inspect(ctx, l.cfg.known(), l.cfg.inspected)
	if err != nil {
		return err
	}
	for _, f := range inspected {
		if f.Err != nil && Transient(f.Err) {
			return f.Err
		}
	}
	found := findingsOf(inspected)
	if !Blocked(found) {
		return nil
	}
	return &BlockedError{slices.DeleteFunc(found, func(f Finding) bool { return f.Severity != Block })}
}

// oldPrepared is how long a job that begins waits for transactions that were prepared before its triggers were there. Nobody waits
// for the job, and a resolver ends those of killed programs within about a minute.
const oldPrepared = 90 * time.Second

// awaitPrepared waits until the transactions have ended that are prepared now, and tells each second that it waits.
func (l *leader) awaitPrepared(ctx context.Context) error {
	told := false
	err := l.Source.Do(ctx, func(s *backend.Session) error {
		return s.Database.Unprepared(ctx, s, oldPrepared, func(remain error) { told = true; l.Source.Waits(remain) })
	})
	if err == nil && told {
		l.Source.Waits(nil)
	}
	return err
}

// install creates the shards, the triggers and the rows of the job.
func (l *leader) install(ctx context.Context) error {
	if err := l.Own(ctx); err != nil {
		return err
	}
	if err := l.makeTargets(ctx); err != nil {
		return err
	}
	shards, err := l.TargetIdentities(ctx)
	if err != nil {
		return err
	}
	if err := l.Define(ctx, l.Source, func(s *backend.Session) error { return openjob.MakeCapture(ctx, l.Job, s) }); err != nil {
		return err
	}
	// No trigger has noted the changes of transactions that are prepared now, and a copy may not read them.
	if err := l.awaitPrepared(ctx); err != nil {
		return err
	}
	err = l.OnSource(ctx, func(s *backend.Session) error {
		if err := l.Register(ctx, s); err != nil {
			return err
		}
		return l.NoteTargets(ctx, s, shards)
	})
	if errors.Is(err, lead.ErrOwned) { // another job has registered the table meanwhile
		err = errors.Join(err, l.dropTraces(ctx))
	}
	return err
}
