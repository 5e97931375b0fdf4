// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"errors"
	"fmt"
)

// Errors that this package wraps; test for them with errors.Is.
var (
	// ErrStatement: a statement of a file cannot be run on shards. Returned by New and by
	// every call that first reads a database's dialect.
	ErrStatement = errors.New("versions: this statement cannot be run on shards")

	// ErrFiles: the files cannot be read as versions.
	ErrFiles = errors.New("versions: the files cannot be read")

	// ErrChanged: the text of a statement was changed after it was run on a shard. Restore the
	// file, and write the change as a new version.
	ErrChanged = errors.New("versions: a file was changed after it was run")

	// ErrOrder: a database has a newer version than one that it lacks, or a version
	// that no file has.
	ErrOrder = errors.New("versions: the versions of a database are not those of the files in their order")

	// ErrPartial: a version is done on some of the physical tables and cannot be undone, or
	// undone on some and cannot be run. Finish the begun direction first.
	ErrPartial = errors.New("versions: a version is done in part")

	// ErrUnclear: it is unknown whether a statement that was in flight when its runner died
	// has been executed. Check the table, and call Resolve.
	ErrUnclear = errors.New("versions: it is unclear whether a statement was done")

	// ErrNotInFlight: Resolve was asked about a statement that is not in flight. It has written
	// nothing.
	ErrNotInFlight = errors.New("versions: no such statement is in flight")

	// ErrLocked: another runner works on the database, or the server has not yet ended
	// the statement of a runner that died.
	ErrLocked = errors.New("versions: another runner works on this database")

	// ErrNoDown: a version has no statements that undo it.
	ErrNoDown = errors.New("versions: this version has no Down statements")

	// ErrDiffers: the definitions of a table's shards differ, so that Adopt cannot know which
	// of them the files describe.
	ErrDiffers = errors.New("versions: the shards of a table differ")
)

// noVersionError is an ErrFiles: a version was asked for, and no file has it.
type noVersionError struct{ number, newest int64 }

// Error names the newest version.
func (m noVersionError) Error() string {
	return fmt.Sprintf("versions: no file has version %d; the newest is %d", m.number, m.newest)
}

// Is reports whether target is ErrFiles.
func (noVersionError) Is(target error) bool { return target == ErrFiles }

// UnreachableError is a database that did not answer. Up, Down, Plan and Drift return one
// for each, joined, after they have processed the others.
type UnreachableError struct {
	Database string
	Err      error
}

// Error names the database.
func (u *UnreachableError) Error() string {
	return fmt.Sprintf("versions: database %s cannot be reached: %v; repeat the command when it is back", u.Database, u.Err)
}

// Unwrap returns the driver's error.
func (u *UnreachableError) Unwrap() error { return u.Err }
