// Package keygen is the contract every key generator of shardid fulfils, and
// the value types that go with it. Read it first; the generators are leaves
// that know this package and not each other.
//
// # Promise
//
// A [Generator] returns a key that no other call, goroutine, process or host
// using the same configuration was or will be given, or it returns an error.
// It never returns a key together with an error, never the key 0 as a success,
// and never waits longer than its context allows.
//
// # The words
//
//   - A generator issues keys (the "UidGenerator", "IDGen" of other systems).
//   - A [Source] reserves a [Span] of consecutive keys somewhere durable: a
//     leaf_alloc row (Leaf's segment, 号段), a ticket server, a counter.
//   - An [Assigner] gives worker ids (UidGenerator's WorkerIdAssigner) as a
//     [Lease]; snowflake ids (雪花) are unique because no two running processes
//     hold the same worker id.
//   - A [Layout] says which bits of an id are time, worker and sequence.
//
// # Failure modes
//
// Every error wraps one of the sentinels in errors.go and says what to do
// next. Errors are for the caller to handle: a generator does not log.
package keygen
