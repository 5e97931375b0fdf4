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

// steerTable is where operators say what runners should do, from any host. It
// is made when the first one says something.
const steerTable = "shardid_steer"

// Steering is what operators want of the runners of a job. A Config.Throttle
// that waits while Paused is true obeys Pause.
type Steering struct {
	// Paused: no more chunks should be copied for now. Changes are still followed,
	// so that the log does not grow.
	Paused bool
	// Wanted: somebody waits to lead the job for a moment. Whoever leads it should
	// end its Run or Follow, and begin again when Wanted is false.
	Wanted bool
	// Asked is how often somebody has wanted to lead so far. A runner that was
	// fenced and finds that it has grown made room without knowing.
	Asked int64
}

// Pause asks all runners to copy no more until Resume, also those that start
// later. Nothing is lost by a pause of any length.
func (j *Job) Pause(ctx context.Context) error { return j.steer(ctx, "paused = 1") }

// Resume undoes Pause.
func (j *Job) Resume(ctx context.Context) error { return j.steer(ctx, "paused = 0") }

// Ask asks the leading runner to make room, for as long as it takes but at most
// for d, by the clock of the source; zero takes that back. Runners that look at
// [Job.Steering] obey, and Cutover, Rollback, Finalize or Abort can lead then.
func (j *Job) Ask(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return j.steer(ctx, "wanted_until = 0")
	}
	return j.steer(ctx, fmt.Sprintf("asked = asked + 1, wanted_until = %s + %d", now, int64((d+time.Second-1)/time.Second)))
}

// Steering reads what operators want.
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
		err = nil
	}
	return steer, err
}

// now stands for the clock of the database, in seconds.
const now = "{now}"

func withClock(s *backend.Database, text string) string {
	return strings.ReplaceAll(text, now, s.Clock())
}

// steer notes something for the runners.
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
