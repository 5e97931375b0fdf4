// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
)

// Phase is the state of a job.
type Phase string

// The phases, in the order of a migration that goes well.
const (
	PhaseNone      Phase = "none"                 // Run was never called, or the job was aborted and forgotten
	PhaseCopying   Phase = Phase(proto.Copying)   // rows are copied and followed; the source serves
	PhaseFollowing Phase = Phase(proto.Following) // all is copied, changes are followed; the source serves
	PhaseSwitched  Phase = Phase(proto.Switched)  // the shards serve; changes are followed back
	PhaseReturning Phase = Phase(proto.Returning) // a Rollback has begun to close the shards
	PhaseFinalized Phase = Phase(proto.Finalized) // the shards serve, and there is no way back
	PhaseAborted   Phase = Phase(proto.Aborted)   // an Abort has begun
)

// Progress is the progress of a job at one moment.
type Progress struct {
	Job    string          `json:"job"`
	Phase  Phase           `json:"phase"`
	Epoch  int64           `json:"epoch"` // how many runners have led the job so far
	Tables []TableProgress `json:"tables"`
	// Backlog is how many log entries of changes wait to be applied: to the shards before the
	// switch, to the source after it. One change may add several entries.
	Backlog int64 `json:"backlog"`
	Paused  bool  `json:"paused"` // see Pause
}

// TableProgress is how far the copy of one table has come.
type TableProgress struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"` // as the database estimates
	// Copied is the part of the table's range of ids that was copied, from 0 to 1.
	Copied float64 `json:"copied"`
}

// Copied is the part of the rows that was copied, from 0 to 1, by the estimates
// of their tables.
func (p Progress) Copied() float64 {
	var rows, copied float64
	for _, t := range p.Tables {
		rows += float64(t.Rows + 1)
		copied += float64(t.Rows+1) * t.Copied
	}
	if rows == 0 {
		return 0
	}
	return copied / rows
}

// Progress reads the progress of the job. It changes nothing, needs no runner, and may be
// called from any host.
func (j *Job) Progress(ctx context.Context) (Progress, error) {
	w, err := j.open(ctx)
	if err != nil {
		return Progress{}, fmt.Errorf("migrate: job %s: %w", j.cfg.Name, err)
	}
	defer w.Close()
	p := Progress{Job: j.cfg.Name}
	err = w.Source.Do(ctx, func(s *backend.Session) (err error) {
		p, err = w.progress(ctx, s)
		return err
	})
	if err == nil && (p.Phase == PhaseSwitched || p.Phase == PhaseReturning) {
		p.Backlog, err = w.backlogBehind(ctx)
	}
	if err != nil {
		return Progress{}, fmt.Errorf("migrate: job %s: progress: %w", j.cfg.Name, err)
	}
	return p, nil
}

func (w *openJob) progress(ctx context.Context, s *backend.Session) (Progress, error) {
	p := Progress{Job: w.cfg.Name, Phase: PhaseNone, Tables: []TableProgress{}}
	phase, err := w.Phase(ctx, s)
	if err != nil {
		return p, err
	}
	var spans []lead.Span
	if phase != "" {
		p.Phase = Phase(phase)
		if p.Epoch, err = s.Number(ctx, "SELECT epoch FROM "+s.Database.Fence+" WHERE job = ?", w.cfg.Name); err != nil {
			return p, err
		}
		if spans, err = w.Spans(ctx, s, false); err != nil {
			return p, err
		}
	}
	for _, t := range w.Tables {
		rows, _, err := openjob.Estimate(ctx, s, t.Name)
		if err != nil {
			return p, err
		}
		at := TableProgress{Name: t.Conf.Name, Rows: rows}
		if spans != nil {
			at.Copied, err = copiedPart(ctx, s, t, spans[t.Number].Low)
		}
		if err != nil {
			return p, err
		}
		p.Tables = append(p.Tables, at)
	}
	if p.Phase == PhaseCopying || p.Phase == PhaseFollowing {
		p.Backlog, err = s.Number(ctx, "SELECT COUNT(*) FROM "+s.Database.Quote(w.LogTable()))
	}
	if err != nil {
		return p, err
	}
	steer, err := steering(ctx, s, w.Name)
	p.Paused = steer.Paused
	return p, err
}

// copiedPart is the part of the ids that is at or below a bound.
func copiedPart(ctx context.Context, c *backend.Session, t *openjob.Table, low proto.Bound) (float64, error) {
	if low == proto.Top {
		return 1, nil
	}
	if !low.Set {
		return 0, nil
	}
	var first, last int64
	key := c.Database.Quote(t.Key)
	err := c.QueryRowContext(ctx, fmt.Sprintf("SELECT MIN(%s), MAX(%[1]s) FROM %s HAVING COUNT(*) > 0", key, c.Database.Quote(t.Name))).Scan(&first, &last)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	span := float64(last) - float64(first) + 1
	return max(0, min(1, (float64(low.ID)-float64(first)+1)/span)), err
}

// backlogBehind counts the changes in the logs of the shards.
func (w *openJob) backlogBehind(ctx context.Context) (sum int64, err error) {
	for _, side := range w.Shards {
		err := side.Do(ctx, func(s *backend.Session) error {
			n, err := s.Number(ctx, "SELECT COUNT(*) FROM "+side.Quote(w.BackTable()))
			sum += n
			return err
		})
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}
