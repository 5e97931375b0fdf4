// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// Transient reports whether a call failed because of a temporary state of the databases:
// conflicting transactions, a lost connection, or a server that shuts down, starts, was
// replaced or accepts no writes. The same call may succeed later.
func Transient(err error) bool {
	return backend.Transient(err) || errors.Is(err, backend.ErrOtherServer)
}

// Errors that this package wraps; test for them with errors.Is.
var (
	// ErrConfig: the configuration cannot work; nothing was touched. Returned
	// by New, and by everything that looks at the tables for one that the source
	// does not have.
	ErrConfig = backend.ErrConfig

	// ErrUnsupported: a table, a database or a step is not what this package can
	// migrate without risk; nothing was changed. Returned by everything that
	// looks at the tables.
	ErrUnsupported = backend.ErrUnsupported

	// ErrLocked: another runner leads the job on this database. It continues; try again when
	// it has ended. Not returned on SQLite, where the runner started last leads.
	ErrLocked = lead.ErrLocked

	// ErrFenced: a newer runner leads the job. This one has stopped, and wrote
	// nothing since.
	ErrFenced = lead.ErrFenced

	// ErrNotReady: a precondition of the step is not met. Nothing was changed; the text says
	// what to wait for or to change.
	ErrNotReady = backend.ErrNotReady

	// ErrPhase: the phase of the job does not allow this step.
	ErrPhase = lead.ErrPhase

	// ErrChanged: while the job was under way, a table of the source was altered, truncated or
	// restored, or a table of a shard was truncated, dropped or restored; or the job was begun
	// with another configuration, which is a *SetupError. Before the switch, abort the job and
	// begin again; after it, the retired tables have the rows of the shard.
	ErrChanged = openjob.ErrChanged

	// ErrUnclear: the source has tables under both the old and the new name, or under neither,
	// because somebody else renamed or created one; correct the names by hand. Or a server took over that
	// does not know of a switch.
	ErrUnclear = openjob.ErrUnclear

	// ErrNoID: an id has no counterpart on the other side. Returned by IDs.New,
	// IDs.Old and ResolveOld, and by a run that meets such an id.
	ErrNoID = idmap.ErrNoID

	// ErrSession: a connection does not accept or keep the settings that every connection of a
	// migration has.
	ErrSession = backend.ErrSession
)

// PauseError says that a switch would have made writers wait for longer than allowed.
// Everything is as before, and writers continue.
type PauseError struct {
	Max  time.Duration // the limit that was given
	Step string        // the step that it was in
	// Needs is how long the rest would have taken, which cannot be given up once it has begun;
	// 0 when the limit had already passed.
	Needs time.Duration
}

// Error names the step and what to do.
func (e *PauseError) Error() string {
	if e.Needs > 0 {
		return fmt.Sprintf("migrate: gave up while %s: that takes about %s, by a rehearsal, and too little is left of %s; writers continue as before. "+
			"Try again when the databases have less load, or allow a longer pause", e.Step, e.Needs.Round(time.Millisecond), e.Max)
	}
	return fmt.Sprintf("migrate: gave up after %s while %s; writers continue as before. "+
		"Look for long transactions on the tables, or allow a longer pause, and try again", e.Max, e.Step)
}

// tooLong makes the PauseError of a switch.
func tooLong(limit time.Duration, step string, needs time.Duration) error {
	return &PauseError{Max: limit, Step: step, Needs: needs}
}

// Is makes a PauseError an ErrNotReady.
func (*PauseError) Is(target error) bool { return target == ErrNotReady }

// BlockedError says that a job was not begun because of findings that block it, as
// Inspect returns them. Nothing was copied. It is an ErrNotReady.
type BlockedError struct {
	Findings []Finding // those whose Severity is Block
}

// Error lists the findings with their fixes.
func (e *BlockedError) Error() string {
	texts := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		where := f.Database
		if f.Table != "" {
			where += "/" + f.Table
		}
		texts[i] = fmt.Sprintf("%s: %s (%s)", where, f.Message, f.Fix)
	}
	return "inspect has blocking findings: " + strings.Join(texts, "; ")
}

// Is makes a BlockedError an ErrNotReady.
func (*BlockedError) Is(target error) bool { return target == ErrNotReady }

// RowError is an error about one row of the source.
type RowError struct {
	Table string
	ID    int64
	Err   error
}

// Error names the row.
func (e *RowError) Error() string { return fmt.Sprintf("table %s, row %d: %v", e.Table, e.ID, e.Err) }

// Unwrap returns the cause.
func (e *RowError) Unwrap() error { return e.Err }
