// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/cutover"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// Mend finishes a switch whose runner died during it, while writers can reach neither side.
// Where it cannot finish the switch, it undoes it, if no writer can have used the other
// side yet. It reports whether it did. While a runner works on the switch, and when there
// is none, Mend does nothing and takes one connection to the source for a few queries: a
// standby process of a job calls it many times a second, as the command run does. Run
// begins with it.
//
// A SQLite file does not show whether a runner still lives: there Mend waits half a second
// for a rollback to end, and then takes it over. The runner that had begun it gets
// ErrFenced.
func (j *Job) Mend(ctx context.Context) (mended bool, err error) {
	left, err := j.leftHalfDone(ctx)
	if err != nil || !left {
		return false, err
	}
	err = j.leading(ctx, func(l *leader) error {
		half := false
		err := l.Source.Do(ctx, func(s *backend.Session) (err error) {
			half, err = cutover.HalfDone(ctx, l.State, s)
			return err
		})
		if err != nil || !half {
			return err // another runner finished it
		}
		mended = true
		l.Does("ends an unfinished switch")
		return l.cut.Mend(ctx)
	})
	if errors.Is(err, ErrLocked) { // another runner finishes it
		return false, nil
	}
	return mended && err == nil, err
}

// stillAlive is how long Mend waits for a rollback on files to be ended by its runner.
const stillAlive = 500 * time.Millisecond

// leftHalfDone reports whether a switch is unfinished and no runner works on it.
func (j *Job) leftHalfDone(ctx context.Context) (left bool, err error) {
	err = j.atSource(ctx, func(s *backend.Session) error {
		left = false
		if led, err := s.Led(ctx, j.cfg.Name); err != nil || led {
			return err
		}
		half, epoch, err := j.halfDone(ctx, s)
		if err != nil || !half || s.Database.Name() != "sqlite" {
			left = half
			return err
		}
		if err := backend.Wait(ctx, stillAlive); err != nil {
			return err
		}
		again, later, err := j.halfDone(ctx, s)
		left = again && later == epoch
		return err
	})
	return left, err
}

// halfDone reports whether a switch is unfinished, and in which epoch.
func (j *Job) halfDone(ctx context.Context, s *backend.Session) (half bool, epoch int64, err error) {
	known := j.cfg.known()
	of := openjob.New(known, s.Database)
	for _, t := range known.Tables {
		of.AddTable(t)
	}
	half, err = cutover.HalfDone(ctx, &lead.State{Job: of}, s)
	if err == nil && half {
		epoch, err = s.Number(ctx, fmt.Sprintf("SELECT epoch FROM %s WHERE job = ?", backend.FenceTable), j.cfg.Name)
	}
	return half, epoch, err
}
