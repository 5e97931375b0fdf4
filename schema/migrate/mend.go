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

// Mend ends a switch whose runner died in the midst of it, while writers can reach neither
// side: it goes on with it, or goes back where that fails and no writer can have seen the
// other side yet. It reports whether it did. While somebody is at work on the switch, and
// when there is none, it does nothing and takes one connection to the source for a few
// queries: a process that stands by for a job calls it many times a second, as the command
// run does. Run begins with it.
//
// A file of SQLite does not tell whether a runner still lives: there Mend watches a
// rollback for half a second, and takes it over when it has not ended by then. The runner
// that had begun it gets ErrFenced.
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
			return err // somebody was faster
		}
		mended = true
		l.Does("ends a switch that was left half done")
		return l.cut.Mend(ctx)
	})
	if errors.Is(err, ErrLocked) { // somebody else does it
		return false, nil
	}
	return mended && err == nil, err
}

// stillAlive is for how long a rollback on files is left to whoever began it.
const stillAlive = 500 * time.Millisecond

// leftHalfDone reports whether a switch is half done and nobody is at work on it.
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

// halfDone reports whether a switch is half done, and in which epoch.
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
