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

// Transient reports whether a call failed because of a temporary state of the databases:
// conflicting transactions, a lost connection, or a server that shuts down, starts, was
// replaced or accepts no writes. The same call may succeed later.
func Transient(err error) bool {
	return backend.Transient(err) || errors.Is(err, backend.ErrOtherServer)
}

// Errors that this package wraps; test for them with errors.Is. They are the same as in
// package schema/migrate.
var (
	// ErrConfig: the configuration cannot work; nothing was touched.
	ErrConfig = backend.ErrConfig

	// ErrUnsupported: this package cannot move rows of a table or database without risk;
	// nothing was changed.
	ErrUnsupported = backend.ErrUnsupported

	// ErrNotReady: a precondition of the step is not met. Nothing was changed; the text says
	// what to wait for or to change.
	ErrNotReady = backend.ErrNotReady

	// ErrLocked: another mover works on this database. It continues; try again when it has
	// ended. Not returned on SQLite, where the mover started last continues.
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
	return fmt.Sprintf("the slots were closed for %s, and stay on their old shard; move fewer slots at once, shorten the leases' term, or allow a longer pause", e.Max)
}

// Is makes a PauseError an ErrNotReady.
func (*PauseError) Is(target error) bool { return target == ErrNotReady }

// RowError is an error about one row of the slots.
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
