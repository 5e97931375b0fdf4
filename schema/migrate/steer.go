// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
)

// steerTable is where operators tell runners what to do, from any host. The first of them
// creates it.
const steerTable = "shardid_steer"

// Steering is what operators have requested from the runners of a job. A Config.Throttle
// that waits while Paused is true obeys Pause.
type Steering struct {
	// Paused: no more chunks should be copied for now. Changes are still followed, so that the
	// log does not grow.
	Paused bool
	// Wanted: another process waits to lead the job for a moment. The leading runner should
	// end its Run or Follow, and begin again when Wanted is false.
	Wanted bool
	// Asked is how often another process has requested to lead. A runner that was fenced and
	// finds that Asked has grown was replaced by such a request.
	Asked int64
	// Leader says what the leading process does, while Wanted is true and a process leads: that which has requested it,
	// or the one that has not ended its Run or Follow yet. See Runner.Does.
	Leader string
}

// Pause asks all runners, including those that start later, to copy no more until Resume. A
// pause of any length loses nothing.
func (j *Job) Pause(ctx context.Context) error { return j.steer(ctx, "paused = 1") }

// Resume undoes Pause.
func (j *Job) Resume(ctx context.Context) error { return j.steer(ctx, "paused = 0") }

// Ask asks the leading runner to stop leading for at most d, by the clock of the source;
// zero cancels the request. Runners that read [Job.Steering] obey, so that Cutover,
// Rollback, Finalize or Abort can lead.
func (j *Job) Ask(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return j.steer(ctx, "wanted_until = "+now) // Status tells when the request has ended
	}
	return j.steer(ctx, fmt.Sprintf("asked = asked + 1, wanted_until = %s + %d", now, int64((d+time.Second-1)/time.Second)))
}

// Steering reads what operators have requested.
func (j *Job) Steering(ctx context.Context) (steer Steering, err error) {
	err = j.atSource(ctx, func(s *backend.Session) error {
		steer, err = steering(ctx, s, j.cfg.Name)
		return err
	})
	return steer, err
}

func steering(ctx context.Context, s *backend.Session, job string) (steer Steering, err error) {
	there, err := s.Database.Exists(ctx, s, steerTable)
	if err != nil || !there {
		return steer, err
	}
	err = s.QueryRowContext(ctx, withClock(s.Database, "SELECT paused <> 0, wanted_until > "+now+", asked FROM "+steerTable+" WHERE job = ?"), job).
		Scan(&steer.Paused, &steer.Wanted, &steer.Asked)
	if errors.Is(err, sql.ErrNoRows) {
		return steer, nil
	}
	if err != nil || !steer.Wanted {
		return steer, err
	}
	leads, err := runner(ctx, s, job)
	if err == nil && leads != nil && leads.Leads {
		steer.Leader = leads.Does
	}
	return steer, err
}

// lastRequest returns how many seconds ago the last request to lead has ended; nil if there was none.
func lastRequest(ctx context.Context, s *backend.Session, job string) (*int64, error) {
	there, err := s.Database.Exists(ctx, s, steerTable)
	if err != nil || !there {
		return nil, err
	}
	var ago int64
	err = s.QueryRowContext(ctx, withClock(s.Database, "SELECT "+now+" - wanted_until FROM "+steerTable+" WHERE job = ? AND wanted_until > 0"), job).Scan(&ago)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // nobody has requested anything
	}
	return &ago, err
}

// now is a placeholder for the clock of the database, in seconds.
const now = "{now}"

func withClock(s *backend.Database, text string) string {
	return strings.ReplaceAll(text, now, s.Clock())
}

// steer stores a request for the runners.
func (j *Job) steer(ctx context.Context, set string) error {
	return j.atSource(ctx, func(s *backend.Session) error {
		const columns = " (job VARCHAR(64) NOT NULL PRIMARY KEY, paused INTEGER NOT NULL DEFAULT 0, wanted_until BIGINT NOT NULL DEFAULT 0, asked BIGINT NOT NULL DEFAULT 0)"
		if err := s.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+steerTable+columns); err != nil {
			return err
		}
		if err := s.Ensure(ctx, steerTable, "job", j.cfg.Name); err != nil {
			return err
		}
		return s.Exec(ctx, withClock(s.Database, "UPDATE "+steerTable+" SET "+set+" WHERE job = ?"), j.cfg.Name)
	})
}

// atSource runs f on a connection of the source.
func (j *Job) atSource(ctx context.Context, f func(*backend.Session) error) error {
	source, err := backend.Open(ctx, "source", backend.FenceTable, j.cfg.Source)
	if err != nil {
		return fmt.Errorf("migrate: job %s: %w", j.cfg.Name, err)
	}
	defer source.Close()
	source.Waits = j.cfg.waits
	if err := source.Do(ctx, f); err != nil {
		return fmt.Errorf("migrate: job %s: %w", j.cfg.Name, err)
	}
	return nil
}
