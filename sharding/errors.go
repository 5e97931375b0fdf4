package sharding

import (
	"errors"
	"strings"
)

// Errors that a RouteError wraps; test for them with errors.Is.
var (
	// ErrUnknownTable: the router has no such table. Returned by Router.Target.
	ErrUnknownTable = errors.New("not a sharded table")

	// ErrKeyType: the value is no sharding key: NULL, or a type or text that is
	// no integer. Returned by every Rule of this package and by Router.Target.
	ErrKeyType = errors.New("not an integer sharding key")

	// ErrNoSlot: the rule answered with a slot outside 0..Slots()-1. Returned by
	// Router.Target, for rules that are not of this package.
	ErrNoSlot = errors.New("the rule's slot has no target")

	// ErrMissingKey: a statement or a row gives no sharding key, so its target
	// is unknown. Returned by the adapters.
	ErrMissingKey = errors.New("no sharding key")

	// ErrCrossShard: one statement needs rows of several targets. Returned by
	// the adapters.
	ErrCrossShard = errors.New("rows of more than one shard")

	// ErrCrossDatabase: a transaction that is bound to one database is asked to
	// work on another one. Returned by the adapters before anything is sent.
	ErrCrossDatabase = errors.New("transaction spans databases")

	// ErrKeyChange: an update would give the sharding key another value and so
	// leave the row where nobody looks for it. Returned by the adapters.
	ErrKeyChange = errors.New("sharding key would change")

	// ErrRawTable: SQL text names a sharded table, but nothing says which shard
	// is meant. Returned by the adapters before anything is sent.
	ErrRawTable = errors.New("SQL text names a sharded table")
)

// RouteError is a refusal: nothing was sent to any database.
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
