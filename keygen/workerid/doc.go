// Package workerid gives worker ids to generators that need one (the
// WorkerIdAssigner of UidGenerator).
//
// # Promise
//
// An assigner gives the id it was asked to give, or an error; it never guesses
// one. Whether two processes can hold the same id depends on the assigner and
// stands in its comment. Assigners that keep worker ids in a database are in
// sqlstore.
//
// # Failure modes
//
// An id outside of what the layout can hold is an error that wraps
// [keygen.ErrNoWorker].
package workerid
