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
	// Over is by how much Pause was longer than allowed, which happens when the renames take
	// longer than in the rehearsal; 0 when it was not.
	Over time.Duration
	// Drained is how many changes were applied during the pause.
	Drained int64
	// Epoch is the one in which the route was changed.
	Epoch int64
}

// Cutover makes the shards serve. Under a lock on the tables it applies the last changes,
// renames the tables to <name>_old, so that nobody can write to them any more, and changes
// the route. When writers would wait for longer than maxPause, everything stays as it is
// and the error is a *PauseError; Switch says how long they waited. The time for a rename
// is measured before, on a table of the job's own, and the first rename is made only if all
// of them fit into the rest of maxPause. When a database becomes slower at that moment, the
// switch is finished or undone, whichever takes fewer statements; see Switch.Over.
//
// Run must have copied the tables, and few changes may be left: when writers add more than
// can be applied in a fourth of maxPause, or the backlog takes more than some seconds, the
// error is ErrNotReady and says how many changes wait. Shards that somebody emptied are
// ErrChanged. After the switch, Follow copies changes of the shards back into the retired
// tables, until Rollback or Finalize. The next Cutover or Run finishes an interrupted
// switch.
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
			return l.cut.CloseRetired(ctx) // the switch may have been interrupted right before
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

// Rollback makes the source serve again, with everything that was written to the shards
// since the switch. Under locks on all shards it applies the last changes to the source,
// renames the shards to <name>_sealed, so that nobody can write to them any more, renames
// the retired tables back and changes the route. The job then follows the source again, and
// may be switched again.
//
// When writers would wait for longer than maxPause, everything stays as it is and the error
// is a *PauseError. Closed shards are opened again when the remaining steps, as measured by
// a rehearsal, do not fit into maxPause. Once the source's tables are being opened, the
// rollback continues; see Switch.Over. The next Rollback finishes one that was interrupted
// after it closed a shard. After a finished rollback, another one does nothing. For a job
// that was never switched, the error is ErrPhase.
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
