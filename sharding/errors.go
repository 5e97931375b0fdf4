// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Errors that a RouteError wraps; test for them with errors.Is.
var (
	// ErrUnknownTable: the router has no such table. Returned by Router.Target.
	ErrUnknownTable = errors.New("not a sharded table")

	// ErrKeyType: the value is no sharding key: NULL, or a type or text that the
	// rule does not take. Returned by every Rule of this package and by
	// Router.Target.
	ErrKeyType = errors.New("not a sharding key")

	// ErrNoSlot: the rule has no slot for the key: it is outside of a list or of
	// an interval, or the rule answered outside 0..Slots()-1. Returned by rules
	// and Router.Target.
	ErrNoSlot = errors.New("no slot for the key")

	// ErrMissingKey: a statement or a row gives no sharding key, so its target
	// is unknown. Returned by the adapters, and by Router.TargetBy for ids that
	// carry no slot.
	ErrMissingKey = errors.New("no sharding key")

	// ErrTooManyShards: a statement needs more targets than FanOut allows, or
	// several where its form allows one. Returned by Limits.Check and the
	// adapters.
	ErrTooManyShards = errors.New("too many shards")

	// ErrCrossShard: one statement needs rows of several targets. Returned by
	// the adapters.
	ErrCrossShard = errors.New("rows of more than one shard")

	// ErrCrossDatabase: a transaction that is bound to one database is asked to
	// work on another one. Returned by the adapters before anything is sent.
	ErrCrossDatabase = errors.New("transaction spans databases")

	// ErrCopies: a statement would not leave the same rows in all copies of a
	// broadcast table, as each database would make a value for itself. Returned by the
	// adapters before anything is sent.
	ErrCopies = errors.New("copies of the table would differ")

	// ErrUnmergeable: the answers of several shards cannot be made into the
	// answer that one table would give. Returned by the adapters before anything
	// is sent, or, where only the values tell, in place of the answer.
	ErrUnmergeable = errors.New("answers of several shards cannot be merged")

	// ErrKeyChange: an update would give the sharding key another value and so
	// leave the row where nobody looks for it. Returned by the adapters.
	ErrKeyChange = errors.New("sharding key would change")

	// ErrLookup: a write would leave a lookup table without a value that a row has, as
	// nobody can tell the value beforehand, or the lookup table is not made as its column
	// is. Returned by the adapters. See Table.Lookups.
	ErrLookup = errors.New("lookup table would not be kept")

	// ErrMisplaced: a row belongs to another shard than the one it would be
	// written to, where nobody would look for it. Returned by the adapters before
	// anything is sent.
	ErrMisplaced = errors.New("row belongs to another shard")

	// ErrRawTable: SQL text names a sharded table, but nothing says which shard
	// is meant. Returned by the adapters before anything is sent.
	ErrRawTable = errors.New("SQL text names a sharded table")

	// ErrSettings: the sessions of two databases differ in what decides what a statement
	// means or what its rows look like, such as their time zones. Returned by package
	// shardsql, which names the setting, before anything else is sent there.
	ErrSettings = errors.New("databases are set up differently")

	// ErrSlotMoving: the key's slot is on its way to another shard. The same
	// statement succeeds when it has arrived; nothing was done, so try again.
	// Returned by Router.Target, Snapshot.Everywhere, and the shard's database
	// (see SlotMoving).
	ErrSlotMoving = errors.New("slot is moving to another shard")

	// ErrStaleMap: a map is older than, or not made from, the one in force; or
	// this process may not use its map any more. Returned by Router.Swap and
	// Map.Apply, and by Router.Target for a Map.While that is over.
	ErrStaleMap = errors.New("map of slots is out of date")

	// ErrRouteMoved: a table was switched to another place while a transaction was
	// under way. Roll the transaction back and run it again from its beginning; it
	// will find the new place. Returned by the adapters, as a MovedError.
	ErrRouteMoved = errors.New("table moved during the transaction")

	// ErrRouteClosed: the place of a table was closed, and no other one was opened
	// within Migration.Patience. Returned by Router.Moved, Router.Load and the
	// adapters, as a MovedError.
	ErrRouteClosed = errors.New("table is closed, and no other place serves it")

	// ErrRouteUnread: nobody has read yet which place serves a table of a
	// Migration. Returned by Router.Target until Router.Load has succeeded.
	ErrRouteUnread = errors.New("route of the table is not known yet")

	// ErrNotNumbered: an INSERT leaves a column empty that the source of a Migration
	// numbered before the first switch and that no database numbers any more.
	// Returned by the adapters before anything is sent; the statement may be sent
	// again with a value for it. See Table.Unnumbered.
	ErrNotNumbered = errors.New("no database numbers the column any more")

	// ErrEpochUnarmed: a server may reach the first id of an epoch without the
	// epoch's step, and would make ids that belong to others. Returned by
	// EpochRule.Check and EpochRule.Add.
	ErrEpochUnarmed = errors.New("server does not number by the new epoch")
)

// hints say what to do about an error where the place that refuses has nothing
// better to say.
var hints = map[error]string{
	ErrUnknownTable:  "add it to the router's tables",
	ErrNoSlot:        "give the rule a slot for it, or correct the key",
	ErrTooManyShards: "add a condition on the sharding key, or raise the limit with sharding.FanOut",
	ErrSlotMoving:    "nothing was done; try again in a moment",
	ErrStaleMap:      "load the present map of slots and try again",
	ErrRouteUnread:   "call Router.Load when the program starts",
}

// hintFor returns what to do about err, if that can be said in general.
func hintFor(err error) string {
	for sentinel, hint := range hints {
		if errors.Is(err, sentinel) {
			return hint
		}
	}
	return ""
}

// RouteError is a refusal: nothing was sent to any database, but for the queries
// whose values turned out to be [ErrUnmergeable].
type RouteError struct {
	Op     string // what was asked for: "create", "query", "update", …
	Table  string // logical table
	Column string // the sharding key's column, if one is concerned
	Hint   string // what to do about it
	Err    error  // one of the errors above, or one that wraps it
}

// Error returns one sentence with everything the RouteError holds.
func (e *RouteError) Error() string {
	var b strings.Builder
	b.WriteString("sharding: " + e.Op)
	if e.Table != "" {
		b.WriteString(" " + e.Table)
	}
	b.WriteString(" refused: " + e.Err.Error())
	if e.Column != "" {
		b.WriteString(" (" + e.Column + ")")
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Unwrap returns e.Err.
func (e *RouteError) Unwrap() error { return e.Err }

// Reason returns the sentence of Error without what it says of the values of one
// statement, so that refusals can be counted by their reasons.
func (e *RouteError) Reason() string {
	sentinel := e.Err
	for next := errors.Unwrap(sentinel); next != nil; next = errors.Unwrap(sentinel) {
		sentinel = next
	}
	return (&RouteError{Op: e.Op, Table: e.Table, Err: sentinel, Hint: e.Hint}).Error()
}

// ShardError is an error of one of several shards: what its database, or the way
// to it, answered to a statement, or what a function returned that was called for
// it. It tells those who alert and fail over which shard that was.
type ShardError struct {
	Target Target // the physical table that the statement was for
	Err    error  // the driver's, or what gorm's TranslateError makes of it
}

// Error names the shard.
func (e *ShardError) Error() string { return "shard " + e.Target.String() + ": " + e.Err.Error() }

// Unwrap returns e.Err.
func (e *ShardError) Unwrap() error { return e.Err }

// The errors of COMMIT with [Atomic].
var (
	// ErrInDoubt: the connection was lost in COMMIT, and the database that decides about the
	// transaction cannot be asked. The transaction is committed everywhere or nowhere, and
	// nobody can tell which until then: read what it was to write before it is sent
	// again. A resolver of package sharding/twophase ends it.
	ErrInDoubt = errors.New("sharding: the transaction is in doubt")
	// ErrResolved: a resolver has rolled the transaction back on all databases, as it had
	// not decided for too long after it was prepared. Send it again.
	ErrResolved = errors.New("sharding: the transaction was rolled back by a resolver")
)

// PartialCommitError tells that a transaction over several databases committed
// in some of them only. It happens with [BestEffort] alone.
type PartialCommitError struct {
	// Committed are the databases that have committed, in that order.
	Committed []string
	// Failed are the other databases, each with its error. What they were to
	// write is lost, or, when the error is a broken connection during COMMIT,
	// may be written.
	Failed map[string]error
}

// Error names the databases of both kinds.
func (e *PartialCommitError) Error() string {
	var failed []string
	for _, db := range slices.Sorted(maps.Keys(e.Failed)) {
		failed = append(failed, fmt.Sprintf("%s (%v)", db, e.Failed[db]))
	}
	return fmt.Sprintf("sharding: transaction committed in %s only, not in %s; what it wrote there stays, so repair the others or undo it by hand",
		strings.Join(e.Committed, ", "), strings.Join(failed, ", "))
}

// Unwrap returns the errors of the failed databases.
func (e *PartialCommitError) Unwrap() []error {
	var errs []error
	for _, db := range slices.Sorted(maps.Keys(e.Failed)) {
		errs = append(errs, e.Failed[db])
	}
	return errs
}

// MovedError tells that the place a statement was sent to is closed. The statement
// did nothing.
type MovedError struct {
	// Table is the logical table.
	Table string
	// Waited is how long the next place was waited for: 0 in a transaction.
	Waited time.Duration
	// Err wraps ErrRouteMoved or ErrRouteClosed, and what the database said.
	Err error
}

// Error says what to do.
func (e *MovedError) Error() string {
	if errors.Is(e.Err, ErrRouteMoved) {
		return fmt.Sprintf("sharding: %s: %v; roll back and run the transaction again", e.Table, e.Err)
	}
	return fmt.Sprintf("sharding: %s: %v; waited %s: see how the migration stands, and finish its switch or roll it back", e.Table, e.Err, e.Waited.Round(time.Millisecond))
}

// Unwrap returns e.Err.
func (e *MovedError) Unwrap() error { return e.Err }

// FenceMessage is what a shard's database says when it refuses to write a row
// of a slot that is moving away: the text of the error of its trigger.
const FenceMessage = "shardid: slot is moving"

// moveLog begins the name of the log of a move. MariaDB fails a statement once that was prepared
// before the triggers of the move were created: it says that the log does not exist.
const moveLog = "shardid_log_slots_"

// SlotMoving makes the refusal of a shard's database, and the failure of a statement that knew
// nothing of the move's triggers, into an error that wraps [ErrSlotMoving]. Other errors, and nil,
// are returned as they are.
func SlotMoving(err error) error {
	if err == nil || errors.Is(err, ErrSlotMoving) || !strings.Contains(err.Error(), FenceMessage) && !strings.Contains(err.Error(), moveLog) {
		return err
	}
	return fmt.Errorf("%w: %w; %s", ErrSlotMoving, err, hints[ErrSlotMoving])
}
