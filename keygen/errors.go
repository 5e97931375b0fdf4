// SPDX-License-Identifier: Apache-2.0

package keygen

import (
	"errors"
	"fmt"
)

// Errors that generators wrap; test for them with errors.Is.
var (
	// ErrClosed: the generator was closed. Returned by every generator that
	// has a Close method.
	ErrClosed = errors.New("keygen: generator is closed")

	// ErrLayout: a layout is invalid, a value does not fit its field, or an id does not belong
	// to the layout. It also means that worker ids are in use with another layout, so that an
	// id could be issued twice. Returned by Layout's methods, by constructors that take a
	// layout, by Assigners and ledgers, and by uuid.Time.
	ErrLayout = errors.New("keygen: layout")

	// ErrSyntax: a text is not an id in the expected form, or its number is
	// above the largest int64. Returned by ParseID, ID's decoders,
	// Encoding.Decode, Format.Parse and the parsers of other kinds of keys.
	ErrSyntax = errors.New("keygen: not an id")

	// ErrRange: an id is below 1, or has too many bits or digits for a text form. Returned by
	// Scrambler and Format.
	ErrRange = errors.New("keygen: id out of range")

	// ErrExpired: the layout's time field is used up, so no more ids can be made with it. Ids
	// made earlier still parse. Returned by snowflake, cached and objectid.
	ErrExpired = errors.New("keygen: layout has expired")

	// ErrClockRollback: the clock reads a time at which ids cannot be issued
	// safely. Returned by snowflake, cached and objectid.
	ErrClockRollback = errors.New("keygen: clock moved backwards")

	// ErrNoWorker: the assigner has no worker id to give. Returned by Assigners.
	ErrNoWorker = errors.New("keygen: no worker id")

	// ErrWorkerLost: the lease on the worker id was not renewed in time, and another process
	// got the worker id. Returned by leases; a generator then takes another worker id and goes
	// on.
	ErrWorkerLost = errors.New("keygen: worker id lost")

	// ErrStarved: no key became available before the context ended or the generator's own time
	// limit passed. The error also wraps the context's error and the last error of the source,
	// so errors.Is finds all three. Returned by segment, cached and snowflake.
	ErrStarved = errors.New("keygen: no key available in time")

	// ErrUnknownTag: the source has no row for this tag. A retry does not help; seed the tag.
	// Returned by sqlstore's sources.
	ErrUnknownTag = errors.New("keygen: unknown tag")

	// ErrRegressed: a source returned keys that are not above those it returned before, for
	// example after a restored backup. The generator issues no key of such a span. Returned by
	// segment.
	ErrRegressed = errors.New("keygen: source went backwards")

	// ErrExhausted: a counter has reached the end of its column or of int64. The error names
	// the counter. Returned by the sources of sqlstore, redisgen and zookeeper, and by
	// Counting.
	ErrExhausted = errors.New("keygen: no keys left")

	// ErrReadOnly: a database server refuses changes, because it is a replica or a standby, or
	// because somebody has set it read-only. At the start of a generator the error is inside a
	// SetupError. A running generator issues what it has in memory and then waits, because
	// during a fail-over the old primary is read-only for a moment. Returned by sqlstore and
	// ticket.
	ErrReadOnly = errors.New("keygen: server is read-only")

	// ErrUnknownGenerator: a keygen tag names a generator that the Set lacks, or a generator is
	// nil or a zero value that New did not make. Returned by Set.Lookup, through it by
	// gormplugin and sqlxhook, and by such generators.
	ErrUnknownGenerator = errors.New("keygen: unknown generator")
)

// SetupError says that a source or a ledger cannot work until somebody changes the database: a
// table or a right is missing, say. A retry fails in the same way, so callers do not retry.
// Returned by sqlstore, redisgen, ticket and zookeeper, and through them by New and Next of the
// generators; test for it with errors.As.
type SetupError struct {
	Cure string // what to do, in words for a person
	Err  error  // the database's error, or what is wrong in the database
}

// Error returns what is wrong and what to do.
func (e *SetupError) Error() string { return fmt.Sprintf("%v; %s", e.Err, e.Cure) }

// Unwrap returns Err.
func (e *SetupError) Unwrap() error { return e.Err }
