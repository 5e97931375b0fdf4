// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"cmp"
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

	// ErrKeyType: the value is no sharding key: it is NULL, or of a type or text that the rule does
	// not accept. Returned by every Rule of this package and by Router.Target.
	ErrKeyType = errors.New("not a sharding key")

	// ErrNoSlot: the rule has no slot for the key: the key is outside of a list or of an interval,
	// or the rule returned a slot outside 0..Slots()-1. Returned by rules and Router.Target.
	ErrNoSlot = errors.New("no slot for the key")

	// ErrMissingKey: a statement or a row has no sharding key, so its target is unknown. Returned
	// by the adapters, and by Router.TargetBy for ids that carry no slot.
	ErrMissingKey = errors.New("no sharding key")

	// ErrTooManyShards: a statement needs more targets than FanOut allows, or needs several where
	// its form allows one. Returned by Limits.Check and the adapters.
	ErrTooManyShards = errors.New("too many shards")

	// ErrCrossShard: one statement needs rows of several targets. Returned by the adapters.
	ErrCrossShard = errors.New("rows of more than one shard")

	// ErrCrossDatabase: a transaction that is bound to one database would execute a statement on
	// another one. Returned by the adapters before anything is sent.
	ErrCrossDatabase = errors.New("transaction spans databases")

	// ErrCopies: a statement would not leave the same rows in all copies of a broadcast table,
	// because each database would compute a value itself. Returned by the adapters before anything
	// is sent.
	ErrCopies = errors.New("copies of the table would differ")

	// ErrUnmergeable: the results of several shards cannot be combined into the result of one
	// table. Returned by the adapters before anything is sent, or, if it depends on the values,
	// instead of the result.
	ErrUnmergeable = errors.New("answers of several shards cannot be merged")

	// ErrKeyChange: an update would change the sharding key, and the row would no longer be found
	// on its shard. Returned by the adapters.
	ErrKeyChange = errors.New("sharding key would change")

	// ErrLookup: a write would leave a lookup table without a value of a row, because the value
	// cannot be known beforehand; or the lookup table does not match its column. Returned by the
	// adapters. See Table.Lookups.
	ErrLookup = errors.New("lookup table would not be kept")

	// ErrMisplaced: a row would be written to another shard than its own, where it would not be
	// found. Returned by the adapters before anything is sent.
	ErrMisplaced = errors.New("row belongs to another shard")

	// ErrRawTable: SQL text names a sharded table, but nothing determines the shard. Returned by
	// the adapters before anything is sent.
	ErrRawTable = errors.New("its text leads to no shard")

	// ErrSettings: the sessions of two databases differ in a setting on which the meaning of
	// statements or the form of rows depends, such as the time zone, or the databases speak different SQL.
	// Returned by package shardsql, which names the difference, before any other statement is sent there, or when a database
	// is asked for the order of texts.
	ErrSettings = errors.New("databases are set up differently")

	// ErrSameDatabase: two pools, of the router's databases or the home database, are of one database,
	// and there are broadcast tables, whose copy there would be written twice, or both databases have a
	// physical table of one name, whose rows would be read twice. Returned by package
	// shardsql, which names both, before any other statement is sent over the second pool. Open the
	// database once, give it one name in the router, and pass the same *sql.DB as the home database.
	ErrSameDatabase = errors.New("two pools are of one database")

	// ErrSlotMoving: the key's slot is moving to another shard. Nothing was done; the same
	// statement succeeds after the move, so retry it. Returned by Router.Target,
	// Snapshot.Everywhere, the shard's database (see SlotMoving), and by package shardsql after a
	// wait (see Map.Patient).
	ErrSlotMoving = errors.New("slot is moving to another shard")

	// ErrStaleMap: a map is older than the present one or was not made from it; or this process may
	// no longer use its map. Returned by Router.Swap and Map.Apply, and by Router.Target for a
	// Map.While that has ended.
	ErrStaleMap = errors.New("map of slots is out of date")

	// ErrRouteMoved: a table was switched to another database during a transaction. Roll the
	// transaction back and run it again from its beginning; it will use the new database. Returned
	// by the adapters, as a MovedError.
	ErrRouteMoved = errors.New("table moved during the transaction")

	// ErrRouteClosed: a table was closed, and no other database served it within
	// Migration.Patience. Returned by Router.Moved, Router.Load and the adapters, as a MovedError.
	ErrRouteClosed = errors.New("table is closed, and no other database serves it")

	// ErrRouteUnread: the route of a table of a Migration has not been read yet. Returned by
	// Router.Target until Router.Load has succeeded.
	ErrRouteUnread = errors.New("route of the table is not known yet")

	// ErrNotNumbered: an INSERT leaves a column empty that the source of a Migration numbered
	// before the first switch and that no database numbers any more. Returned by the adapters
	// before anything is sent; the statement may be sent again with a value for the column. See
	// Table.Unnumbered.
	ErrNotNumbered = errors.New("no database numbers the column any more")

	// ErrEpochUnarmed: a server may reach the first id of an epoch without the epoch's step, and
	// would then make ids of other servers. Returned by EpochRule.Check and EpochRule.Add.
	ErrEpochUnarmed = errors.New("server does not number by the new epoch")
)

// hints say what to do about an error if its RouteError has no more specific hint.
var hints = map[error]string{
	ErrUnknownTable:  "add it to the router's tables",
	ErrNoSlot:        "give the rule a slot for it, or correct the key",
	ErrTooManyShards: "add a condition on the sharding key, or raise the limit with sharding.FanOut",
	ErrSlotMoving:    "nothing was done; try again in a moment",
	ErrStaleMap:      "try again: a program that follows the map gets the present one as soon as the database of the map answers, other programs must follow it (slotstore.Store.Follow)",
	ErrRouteUnread:   "call Router.Load when the program starts",
}

// hintFor returns the general hint for err, or "".
func hintFor(err error) string {
	for sentinel, hint := range hints {
		if errors.Is(err, sentinel) {
			return hint
		}
	}
	return ""
}

// RouteError is a refusal: nothing was sent to any database. The exception is a query whose values
// turned out to be [ErrUnmergeable].
type RouteError struct {
	Op     string // the refused operation: "create", "query", "update", …
	Table  string // logical table
	Column string // the sharding key's column, if one is concerned
	Hint   string // what to do about it
	Err    error  // one of the errors above, or one that wraps it
}

// Error returns one sentence with all fields of the RouteError.
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
	if hint := cmp.Or(e.Hint, hintFor(e.Err)); hint != "" {
		b.WriteString("; " + hint)
	}
	return b.String()
}

// Unwrap returns e.Err.
func (e *RouteError) Unwrap() error { return e.Err }

// Reason returns the sentence of Error without the values of the statement, so that refusals can be
// counted by their reasons.
func (e *RouteError) Reason() string {
	return (&RouteError{Op: e.Op, Table: e.Table, Err: reported(e.Err), Hint: e.Hint}).Error()
}

// ShardError is the error of one of several shards: an error of its database or of the connection
// to it, or of a function that was called for the shard. Its Target tells alerts and failovers
// which shard that was.
type ShardError struct {
	Target Target // the physical table of the statement
	Err    error  // the driver's error, or gorm's translation of it (TranslateError)
}

// Error names the shard.
func (e *ShardError) Error() string { return "shard " + e.Target.String() + ": " + e.Err.Error() }

// Unwrap returns e.Err.
func (e *ShardError) Unwrap() error { return e.Err }

// The errors of COMMIT with [Atomic].
var (
	// ErrInDoubt: the connection was lost during COMMIT, and the database that decides the
	// transaction's outcome cannot be queried. The transaction is committed everywhere or nowhere,
	// and the outcome is unknown until a resolver of package sharding/twophase ends it. Read the
	// rows before you send the writes again.
	ErrInDoubt = errors.New("sharding: the transaction is in doubt")
	// ErrResolved: a resolver has rolled the transaction back on all databases, because it was not
	// decided in time after it was prepared. Send it again.
	ErrResolved = errors.New("sharding: the transaction was rolled back by a resolver")
)

// PartialCommitError means that a transaction over several databases was committed in only some of
// them. It occurs only with [BestEffort], and in writes of broadcast tables outside of transactions.
type PartialCommitError struct {
	// Committed are the databases that have committed, in the order of their commits. There are none if
	// the connection broke during the first COMMIT.
	Committed []string
	// Failed are the other databases, each with its error. Their writes are lost, or, if the error
	// is a broken connection during COMMIT, may be committed.
	Failed map[string]error
}

// Error names the databases of both kinds.
func (e *PartialCommitError) Error() string {
	var failed []string
	for _, db := range slices.Sorted(maps.Keys(e.Failed)) {
		failed = append(failed, fmt.Sprintf("%s (%v)", db, e.Failed[db]))
	}
	if len(e.Committed) == 0 {
		return fmt.Sprintf("sharding: transaction may be committed in one of %s, because a connection was lost during COMMIT; read its rows there before you send it again",
			strings.Join(failed, ", "))
	}
	return fmt.Sprintf("sharding: transaction committed in %s only, not in %s; its writes there stay, so repair the others or undo them by hand",
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

// MovedError means that the table to which a statement was sent is closed. The statement did
// nothing.
type MovedError struct {
	// Table is the logical table.
	Table string
	// Waited is how long the statement waited for another database to serve the table: 0 in a
	// transaction.
	Waited time.Duration
	// Err wraps ErrRouteMoved or ErrRouteClosed, and the database's error.
	Err error
}

// Error says what to do.
func (e *MovedError) Error() string {
	if errors.Is(e.Err, ErrRouteMoved) {
		return fmt.Sprintf("sharding: %s: %v; roll back and run the transaction again", e.Table, e.Err)
	}
	return fmt.Sprintf("sharding: %s: %v; waited %s; check the status of the migration, and finish its switch or roll it back", e.Table, e.Err, e.Waited.Round(time.Millisecond))
}

// Unwrap returns e.Err.
func (e *MovedError) Unwrap() error { return e.Err }

// FenceMessage is the error text of the trigger with which a shard's database refuses to write a
// row of a slot that is moving away.
const FenceMessage = "shardid: slot is moving"

// moveLog is the prefix of the log tables of moves, and noFence the error that shard_fence does not exist. On MariaDB a
// statement that was prepared before the triggers of the move were created fails once: its error says
// that a table which they use does not exist.
const (
	moveLog = "shardid_log_slots_"
	noFence = ".shard_fence' doesn't exist"
)

// SlotMoving returns an error that wraps [ErrSlotMoving] for the refusal of a shard's database, and
// for the failure of a statement that was prepared before the move's triggers. It returns other
// errors, and nil, unchanged.
func SlotMoving(err error) error {
	if err == nil || errors.Is(err, ErrSlotMoving) {
		return err
	}
	text := err.Error()
	if !strings.Contains(text, FenceMessage) && !strings.Contains(text, moveLog) && !strings.Contains(text, noFence) {
		return err
	}
	return fmt.Errorf("%w: %w; %s", ErrSlotMoving, err, hints[ErrSlotMoving])
}
