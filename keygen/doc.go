// SPDX-License-Identifier: Apache-2.0

// Package keygen defines the interfaces that every key generator of shardid implements, and the
// value types that they share. The generators are packages of their own: they import this
// package and not each other.
//
// # Promise
//
// A [Generator] returns a key that no other call, goroutine, process or host using the same
// configuration was or will be given, or it returns an error. It never returns a key together
// with an error. It never returns the key 0 as a success. It never waits longer than its
// context allows.
//
// # Terms
//
//   - A generator issues keys (the "UidGenerator", "IDGen" of other systems).
//   - A [Source] reserves a [Span] of consecutive keys in durable storage: a row of leaf_alloc (Leaf's segment, 号段), a ticket server, a counter.
//   - An [Assigner] gives worker ids (UidGenerator's WorkerIdAssigner) as a [Lease]; snowflake ids (雪花) are unique because no two running processes hold the same worker id.
//   - A [Layout] says which bits of an id are time, worker and sequence.
//
// # Failure modes
//
// Every error wraps one of the sentinels in errors.go and says what to do next. A generator
// does not log; the caller handles its errors.
package keygen
