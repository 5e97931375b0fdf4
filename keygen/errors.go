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

	// ErrLayout: a layout cannot work, a value does not fit its field, or an id
	// does not belong to the layout; or worker ids are in use with another layout, so
	// that ids could come twice. Returned by Layout's methods, by constructors that
	// take a layout, by Assigners and ledgers, and by uuid.Time.
	ErrLayout = errors.New("keygen: layout")

	// ErrSyntax: a text is not an id in the expected form, or its number is
	// above the largest int64. Returned by ParseID, ID's decoders,
	// Encoding.Decode, Format.Parse and the parsers of other kinds of keys.
	ErrSyntax = errors.New("keygen: not an id")

	// ErrRange: an id is below 1, or has more bits or digits than a form of it
	// has room for. Returned by Scrambler and Format.
	ErrRange = errors.New("keygen: id out of range")

	// ErrExpired: the layout's time field is used up, so no id can be made with
	// it any more. Ids made earlier still parse. Returned by snowflake, cached
	// and objectid.
	ErrExpired = errors.New("keygen: layout has expired")

	// ErrClockRollback: the clock reads a time at which ids cannot be issued
	// safely. Returned by snowflake, cached and objectid.
	ErrClockRollback = errors.New("keygen: clock moved backwards")

	// ErrNoWorker: no worker id can be given. Returned by Assigners.
	ErrNoWorker = errors.New("keygen: no worker id")

	// ErrWorkerLost: the worker id was given to another process, because the
	// lease on it was not renewed in time. Returned by leases; a generator takes
	// another worker id then and goes on.
	ErrWorkerLost = errors.New("keygen: worker id lost")

	// ErrStarved: no key became available before the context ended or the
	// generator's patience did. It is wrapped together with the context's error
	// and with the last error of the source, so errors.Is finds all three.
	// Returned by segment, cached and snowflake.
	ErrStarved = errors.New("keygen: no key available in time")

	// ErrUnknownTag: the source has no row for this tag. Returned by
	// sqlstore's sources; retrying does not help, seeding the tag does.
	ErrUnknownTag = errors.New("keygen: unknown tag")

	// ErrRegressed: a source returned keys that are not above those it returned
	// before, as after a restored backup. Nothing of such a span is issued.
	// Returned by segment.
	ErrRegressed = errors.New("keygen: source went backwards")

	// ErrExhausted: a counter has reached the end of its column, or of int64.
	// Returned by the sources of sqlstore, redisgen and zookeeper, and by Counting;
	// its text says which counter.
	ErrExhausted = errors.New("keygen: no keys left")

	// ErrReadOnly: a database server takes no changes: it is a replica or a standby, or
	// somebody has set it read-only. At a start it comes in a SetupError; a generator
	// that runs uses up what it has and waits, as in a fail-over the old primary is
	// read-only for a moment. Returned by sqlstore and ticket.
	ErrReadOnly = errors.New("keygen: server is read-only")

	// ErrUnknownGenerator: a keygen tag names a generator that the Set lacks, or a
	// generator is nil, or the zero value that no New has made.
	// Returned by Set.Lookup, and through it by gormplugin and sqlxhook, and by such
	// generators.
	ErrUnknownGenerator = errors.New("keygen: unknown generator")
)

// SetupError says that a database cannot do what a source or a ledger needs until
// somebody changes something in it: a table is missing, or a right. Another try
// fails in the same way, so nobody waits for one. Returned by sqlstore,
// redisgen, ticket and zookeeper, and through them by New and Next of the
// generators; test for it with errors.As.
type SetupError struct {
	Cure string // what to do, for people
	Err  error  // what the database said, or what was found there
}

// Error says what is wrong and what to do.
func (e *SetupError) Error() string { return fmt.Sprintf("%v; %s", e.Err, e.Cure) }

// Unwrap returns what the database said.
func (e *SetupError) Unwrap() error { return e.Err }
