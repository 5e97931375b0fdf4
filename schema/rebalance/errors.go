// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"errors"
	"fmt"
	"time"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// Transient reports whether a call failed because of a state of the databases that
// passes: transactions of others in the way, a lost connection, a server that goes down,
// starts, has become another one or takes no writes. The same call may succeed later.
func Transient(err error) bool {
	return backend.Transient(err) || errors.Is(err, backend.ErrOtherServer)
}

// Errors that this package wraps; test for them with errors.Is. They are those of
// package schema/migrate, too.
var (
	// ErrConfig: the configuration cannot work; nothing was touched.
	ErrConfig = backend.ErrConfig

	// ErrUnsupported: a table or a database is not what this package can move rows of
	// without risk; nothing was changed.
	ErrUnsupported = backend.ErrUnsupported

	// ErrNotReady: a precondition of the step is not met. Nothing was changed; the
	// text says what to wait for or to mend.
	ErrNotReady = backend.ErrNotReady

	// ErrLocked: another mover is at work on this database. It goes on; try again when
	// it ended. Not returned on SQLite, where the last one started goes on.
	ErrLocked = lead.ErrLocked

	// ErrFenced: a newer mover has taken over. This one has stopped, and wrote nothing
	// since.
	ErrFenced = lead.ErrFenced

	// ErrChanged: a table was altered or truncated while its slots were copied. Run again
	// to begin the copy anew.
	ErrChanged = openjob.ErrChanged
)

// PauseError says that keys of slots would have been refused for longer than
// MoverConfig.MaxPause. The slots stay where they were. It is an ErrNotReady.
type PauseError struct {
	Max time.Duration // the limit that was given
}

// Error says what to do.
func (e *PauseError) Error() string {
	return fmt.Sprintf("the slots were closed for %s, and are where they were; move fewer at once, shorten the leases' term, or allow a longer pause", e.Max)
}

// Is makes a PauseError an ErrNotReady.
func (*PauseError) Is(target error) bool { return target == ErrNotReady }

// RowError is about one row of the slots.
type RowError struct {
	Table string
	ID    int64
	Err   error
}

// Error names the row.
func (e *RowError) Error() string { return fmt.Sprintf("table %s, row %d: %v", e.Table, e.ID, e.Err) }

// Unwrap returns the cause.
func (e *RowError) Unwrap() error { return e.Err }

func rowError(table string, id int64, err error) error { return &RowError{table, id, err} }
