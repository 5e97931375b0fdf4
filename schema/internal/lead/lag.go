// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/proto"
)

const (
	askShards = time.Second // for as long a leader waits for what shards say of their logs
	mostCaps  = 1024        // of a log
)

// logAge is what is known of the age of a log's entries.
type logAge struct {
	caps []logCap
	// caught is the moment up to which the changes of the log are known to be brought over:
	// that in which it ended below the oldest entry that is still there. It is 0 when the
	// oldest entry is older than this runner's lead, so that nothing more is known of it.
	caught int64
}

// logCap is the last entry of a log at a moment of the source's clock: entries above it
// are younger.
type logCap struct{ now, seq int64 }

// look notes how the log stands at this moment of the source's clock.
func (a *logAge) look(ctx context.Context, s *backend.Session, log string, now int64) error {
	if there, err := s.Database.Exists(ctx, s, log); err != nil || !there {
		return err
	}
	first, err := s.Number(ctx, "SELECT MIN(seq) FROM "+s.Database.Quote(log))
	if err != nil {
		return err
	}
	if first == 0 {
		a.caps, a.caught = nil, now // of an empty log, the younger entries are all
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

// lag is the moment up to which all changes of the side that serves are known to be on the
// other one, 0 when it is not known.
func (p *Pulse) lag(ctx context.Context, s *backend.Session, now int64) (int64, error) {
	phase, err := (&State{Job: p.job}).Phase(ctx, s)
	if err != nil {
		return 0, err
	}
	back := phase == proto.Switched || phase == proto.Returning
	if back != p.back || p.logs == nil { // the other side serves: its logs begin anew
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

// lagOfShards is that of the shard which is known the least of. One that does not answer
// in time leaves what is known of it as it is.
func (p *Pulse) lagOfShards(ctx context.Context, now int64) (caught int64) {
	ctx, done := context.WithTimeout(ctx, askShards)
	defer done()
	tasks := make([]func(context.Context) error, len(p.job.Shards))
	for i, side := range p.job.Shards {
		tasks[i] = func(context.Context) error { // one that fails does not end the others
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
