// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/schema/internal/cutover"
	"github.com/shardid/shardid/schema/internal/proto"
)

// Switch is what a Cutover or a Rollback did.
type Switch struct {
	// Pause is how long writers could not write, from the request of the lock to
	// its release; 0 when the switch had been made before.
	Pause time.Duration
	// Over is by how much Pause was longer than allowed, which happens when the
	// renames take longer than their rehearsal; 0 when it was not.
	Over time.Duration
	// Drained is how many changes were brought over during the pause.
	Drained int64
	// Epoch is the one in which the route was changed.
	Epoch int64
}

// Cutover makes the shards the place of the tables: under a lock on them it
// brings the last changes over, renames the tables to <name>_old, so that nobody
// can write to them any more, and flips the route. When that would keep writers
// waiting for longer than maxPause, everything stays as it is and the error is a
// *PauseError; Switch says how long they waited in vain. How long a rename takes is
// measured beforehand, on a table of the job's own, and the first one is made only if
// all of them fit into what is left of maxPause. When a database slows down in that
// moment, the switch is finished or undone, whichever takes fewer statements;
// Switch.Over tells.
//
// Run must have copied the tables, and little may be left to follow: when writers
// add more than could be brought over in a fourth of maxPause, or too much has
// gathered for some seconds of work, the error is ErrNotReady and says how many
// changes wait. Shards that somebody emptied are ErrChanged. After the switch,
// Follow carries changes of the shards back into the retired tables, until
// Rollback or Finalize. A switch that was cut off is finished by the next Cutover
// or Run.
func (j *Job) Cutover(ctx context.Context, maxPause time.Duration) (done Switch, err error) {
	if maxPause <= 0 {
		return done, fmt.Errorf("%w: maxPause: %s is not above zero", ErrConfig, maxPause)
	}
	err = j.leading(ctx, func(l *leader) error {
		phase, err := l.ReadPhase(ctx)
		if err != nil {
			return err
		}
		switch phase {
		case proto.Switched:
			return l.cut.CloseRetired(ctx) // the switch may have been cut off right before
		case proto.Finalized:
			return nil
		case proto.Following:
			var r cutover.Result
			l.Does("switches to the shards")
			r, err = l.cut.Cutover(ctx, maxPause)
			l.note(ctx, "cutover", r, err)
			done = Switch(r)
			return err
		}
		return fmt.Errorf("%w: the job is %q; Run must have copied the tables", ErrNotReady, phase)
	})
	return done, err
}

// Rollback makes the source the place of the tables again, with everything that
// was written to the shards since the switch: under locks on all shards it brings
// the last changes back, renames the shards to <name>_sealed, so that nobody can
// write to them any more, renames the retired tables back and flips the route.
// The job then follows the source again, and may be switched again.
//
// When that would keep writers waiting for longer than maxPause, everything stays
// as it is and the error is a *PauseError. Shards that are closed are opened again
// when the rest, by a rehearsal, does not fit into maxPause any more; once the source's
// tables are touched it goes on, and Switch.Over tells when that took too long. A rollback that was cut
// off after it closed a shard is finished by the next Rollback, and one that was
// made already does nothing. Of a job that was never switched it is an ErrPhase.
func (j *Job) Rollback(ctx context.Context, maxPause time.Duration) (done Switch, err error) {
	if maxPause <= 0 {
		return done, fmt.Errorf("%w: maxPause: %s is not above zero", ErrConfig, maxPause)
	}
	err = j.leading(ctx, func(l *leader) error {
		phase, err := l.ReadPhase(ctx)
		if err != nil {
			return err
		}
		switch phase {
		case proto.Copying, proto.Following:
			return l.cut.RolledBack(ctx, phase)
		case proto.Switched, proto.Returning:
			var r cutover.Result
			l.Does("switches back to the source")
			r, err = l.cut.Rollback(ctx, phase, maxPause)
			l.note(ctx, "rollback", r, err)
			done = Switch(r)
			return err
		}
		return fmt.Errorf("%w: the job is %q; a rollback is possible from the cutover until finalize", ErrPhase, phase)
	})
	return done, err
}
