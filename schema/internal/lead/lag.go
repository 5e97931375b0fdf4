// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/proto"
)

const (
	askShards = time.Second // how long a leader waits for the shards' answers about their logs
	mostCaps  = 1024        // of one log
)

// logAge is what is known about the age of a log's entries.
type logAge struct {
	caps []logCap
	// caught is the moment up to which the changes of the log are known to be applied: the
	// latest moment at which all entries of the log were older than the oldest present one. It
	// is 0 when the oldest entry is older than this runner's leadership, so that nothing is
	// known about its age.
	caught int64
}

// logCap is the last entry of a log at a moment of the source's clock: later entries are
// younger.
type logCap struct{ now, seq int64 }

// look reads the log at this moment of the source's clock.
func (a *logAge) look(ctx context.Context, s *backend.Session, log string, now int64) error {
	if there, err := s.Database.Exists(ctx, s, log); err != nil || !there {
		return err
	}
	first, err := s.Number(ctx, "SELECT MIN(seq) FROM "+s.Database.Quote(log))
	if err != nil {
		return err
	}
	if first == 0 {
		a.caps, a.caught = nil, now // in an empty log, all later entries are younger
		return nil
	}
	last, err := s.Number(ctx, "SELECT MAX(seq) FROM "+s.Database.Quote(log))
	if err != nil {
		return err
	}
	for len(a.caps) > 0 && a.caps[0].seq < first {
		a.caught = a.caps[0].now
		a.caps = a.caps[1:]
	}
	if len(a.caps) < mostCaps {
		a.caps = append(a.caps, logCap{now, last})
	}
	return nil
}

// lag is the moment up to which all changes of the serving side are known to be on the
// other side, 0 when it is unknown.
func (p *Pulse) lag(ctx context.Context, s *backend.Session, now int64) (int64, error) {
	phase, err := (&State{Job: p.job}).Phase(ctx, s)
	if err != nil {
		return 0, err
	}
	back := phase == proto.Switched || phase == proto.Returning
	if back != p.back || p.logs == nil { // the other side serves now, which has other logs
		p.back, p.logs = back, map[*backend.Database]*logAge{}
		for _, side := range append(p.job.Shards[:len(p.job.Shards):len(p.job.Shards)], p.job.Source) {
			p.logs[side] = &logAge{}
		}
	}
	if back {
		return p.lagOfShards(ctx, now), nil
	}
	log := p.logs[p.job.Source]
	err = log.look(ctx, s, p.job.LogTable(), now)
	return log.caught, err
}

// lagOfShards is the earliest moment of all shards. For a shard that does not answer in
// time, the last known moment stays.
func (p *Pulse) lagOfShards(ctx context.Context, now int64) (caught int64) {
	ctx, done := context.WithTimeout(ctx, askShards)
	defer done()
	tasks := make([]func(context.Context) error, len(p.job.Shards))
	for i, side := range p.job.Shards {
		tasks[i] = func(context.Context) error { // a failed task does not end the others
			_ = side.Once(ctx, func(s *backend.Session) error { return p.logs[side].look(ctx, s, p.job.BackTable(), now) })
			return nil
		}
	}
	_ = backend.Together(ctx, tasks...)
	caught = now
	for _, side := range p.job.Shards {
		caught = min(caught, p.logs[side].caught)
	}
	return caught
}
