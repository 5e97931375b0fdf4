// SPDX-License-Identifier: Apache-2.0

// Package redisgen issues keys from counters in Redis: spans of a counter for package segment,
// and dated serials such as 20261121000042. It also leases worker ids in Redis ([Leases]). It
// works on one server, on several independent masters (except leases) and on a Redis Cluster,
// from version 5 on, of Redis or Valkey.
//
// The package imports no Redis client. [New], [NewSerials], [NewPeriods] and [NewLeases] accept
// any value with the method Eval of go-redis v9, such as its Client, ClusterClient and
// UniversalClient.
//
// # Promise
//
// [Counter] is a source of spans. One INCRBY reserves any number of keys, so with package
// segment a thousand keys cost one round trip. The keys of one process rise; those of several
// processes rise together only roughly. The value in Redis is the highest key issued so far, so
// other programs may INCRBY the same key by the same step.
//
// [Periods] are counters of days, months and years for package periodic, which reserves
// segments of them.
//
// [Serials] cost one round trip each. They rise within a process, and among all processes whose
// clocks agree about the day. They have a gap only where an answer was lost.
//
// No key is issued twice, provided that Redis keeps what it has answered. That takes appendonly
// yes, appendfsync always, a maxmemory-policy that evicts nothing, and no fail-over:
// replication is asynchronous, so a promoted replica may lack some increments. The package
// detects some losses:
//
//   - It never begins a missing counter at 1. A counter must be seeded once with
//     [Counter.Seed]. If it is missing later, Redis has lost its data, and Reserve
//     returns [keygen.ErrUnknownTag], or [keygen.ErrRegressed] in a process that
//     has got keys of it.
//   - A counter that went back is ErrRegressed in every process that saw higher
//     keys, and none of its keys is issued there. Package segment checks that for
//     its Counter; Serials check it themselves.
//   - A process that starts after the loss cannot know how far the counter was.
//     Config.Floor, a number that the application stores elsewhere (MAX(id) of
//     the table), refuses all keys below it.
//   - Serials store the newest day beside the day's counter. If only the counter
//     is missing, because it was evicted, say, new processes get ErrRegressed, too.
//
// After such a loss, raise the counter above the keys in use with Seed. Running processes go on
// with the keys that they have in memory, two segments each with package segment: end them
// before, or seed as much higher.
//
// # Leases
//
// [Leases] fulfil the contract of package workerid, like those of sqlstore: a lease has a
// ceiling and a generation, and a namespace has one layout. Redis may lose what it has answered
// without harm to leases. The ledger stores the identity of the server beside the leases: its
// run_id, which is new after each start, and its master_replid2, which is new after each
// promotion. On another server, after a restart, on a master that was a replica meanwhile, and
// when the key of the namespace is missing, every lease is lost, and new leases begin two terms
// later, above every ceiling that may have been promised. So ids are unique without any file of Redis, and a
// restart of Redis costs a pause: generators issue ids from what is left of their leases, and
// then none until two terms have passed since the first of them met the new server. A slot that
// moves to another node of a cluster counts as a fail-over, too.
//
// The clock of Redis may step. When it goes back, no lease is renewed until it has caught up:
// generators issue ids from what is left of their leases and then wait, and a starting process
// gets a worker id that nobody holds, or [keygen.ErrNoWorker]. When it goes forward, leases end
// early, and a holder whose worker id another process has taken gets [keygen.ErrWorkerLost].
// Numbers of [Periods] are refused ([keygen.ErrClockRollback]) while the clock shows another
// period. One case is not covered: if the clock goes back by more than a term while Redis loses
// its leases, new leases may begin too early.
//
// The package does not detect three more cases. A master that is cut off from the others may go
// on renewing leases for longer than two terms after another one was promoted; the same lease
// is then granted twice. Set min-replicas-to-write and min-replicas-max-lag for Sentinel, so
// that such a master stops; a master of a Redis Cluster stops by itself after
// cluster-node-timeout. Keep either below a term. If somebody restores an older copy of the key
// (RESTORE) on the running server it came from, or an older snapshot of its machine with the
// memory, the package treats it as the newest. And a Redis that lost the key has lost the
// longest term with it: two terms are then two terms of the process that asks first. So shut
// down processes with a longer term before you delete the key, or restart a Redis without a
// file, while terms differ.
//
// # Several masters
//
// N independent masters count with the step N from 1 to N (Config.Offset and Config.Step), so
// their keys never collide and any of them may fail. Package ticket draws from them in turn: a
// Counter is a ticket.Server.
//
// # Failure modes
//
// When Redis does not answer, or answers that it is read-only or out of memory, Reserve returns
// the client's error; segment retries until its caller's context ends. An error that a retry
// cannot cure is a [keygen.SetupError], which says what to do: for a key that does not hold a
// counter, or a missing right or password. A counter at the end of int64 is
// [keygen.ErrExhausted]. An increment whose answer was lost is a gap. A client that sends a
// command again by itself (go-redis does, three times) only enlarges the gap.
//
// Every call ends with its context. A client may wait for longer: go-redis waits for an answer
// until its ReadTimeout has passed, three seconds by default. Its call then goes on in the
// background, and what it reserves is a gap. Serials ask Redis again only when it has ended.
//
// When a master of a Redis Cluster dies, its counters wait until a replica is promoted and the
// client knows about it; counters on other masters go on. By itself, go-redis' ClusterClient
// reads the list of masters every ten seconds in version 9.5, and every minute in 9.23
// (ClusterOptions.ClusterStateReloadInterval). After each error the package calls its
// ReloadState, so that the next try finds the new master. With 9.23, a generator of package
// segment had keys again 0.1 to 0.3 seconds after the promotion. With a client that hides this
// method behind a type of the application, it took 59 seconds. Such a type should implement
// ReloadState.
package redisgen
