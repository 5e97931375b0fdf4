// Package redisgen issues keys from counters in Redis: spans of a counter for
// package segment, and dated serials such as 20261121000042. It also leases worker
// ids there ([Leases]). It works on one server, on several independent masters (but
// leases do not) and on a Redis Cluster, from version 5 on, of Redis or Valkey.
//
// No Redis client is imported: [New], [NewSerials], [NewPeriods] and [NewLeases] take anything with
// the method Eval of go-redis v9, whose Client, ClusterClient and UniversalClient
// fit as they are.
//
// # Promise
//
// [Counter] is a source of spans: one INCRBY reserves any number of keys, so
// that with package segment a thousand keys cost one round trip. The keys of one
// process rise; those of several processes rise together only roughly. The
// value in Redis is the highest key given so far, as other programs that INCRBY
// the same key by the same step expect.
//
// [Periods] are counters of days, months and years for package periodic, which fetches
// them by segments.
//
// [Serials] rise, one round trip each, within the process and among all
// processes whose clocks agree about the day. They leave a gap only where an
// answer was lost.
//
// No key is given twice as long as Redis keeps what it has answered. That takes
// appendonly yes and appendfsync always, a maxmemory-policy that evicts nothing,
// and no fail-over: replication is asynchronous, so a promoted replica may be
// some increments behind. Within those, the packages notice what can be noticed:
//
//   - A counter whose key is missing is never begun again at 1 by itself. It has
//     to be seeded once, with [Counter.Seed]; later its absence means that Redis
//     lost its data, and Reserve returns [keygen.ErrUnknownTag], or
//     [keygen.ErrRegressed] in a process that has got keys of it.
//   - A counter that went back is ErrRegressed in every process that saw it
//     further on, and nothing of it is issued there. Package segment remembers
//     that for its Counter, Serials for themselves.
//   - A process that starts after the loss cannot know how far the counter was.
//     Config.Floor, a number that the application keeps elsewhere (MAX(id) of
//     the table), refuses anything below it.
//   - Serials keep the newest day beside the day's counter. When only the counter
//     is gone, evicted say, that is ErrRegressed for new processes, too.
//
// After such a loss, raise the counter above the keys in use with Seed.
//
// # Leases
//
// [Leases] keep the contract of package workerid, as those of sqlstore do: a worker id
// is given with its ceiling, by generation, for one layout in each namespace. Redis
// may forget what it has answered, and need not for a lease: the ledger notes which
// server it is (its run_id, another one after each start) beside the leases. On
// another server, after a restart, and where the key of the namespace has gone, every
// lease is lost and those that follow begin two terms later, above all that can have
// been promised. So ids are unique without any file of Redis', and a restart of Redis
// costs a pause: generators have what is left of their leases, and then none until two
// terms have passed since the first of them met the new server. A slot that moves to
// another node of a cluster counts as a fail-over, too.
//
// The clock of Redis may step. When it goes back no lease is renewed until it is where
// it was: generators have what is left of their leases and then wait, and a process that
// starts gets a worker id that nobody holds, or [keygen.ErrNoWorker]. When it goes forth
// leases end early, and who had one is told ([keygen.ErrWorkerLost]) when another process
// has taken its worker id. Numbers of [Periods] are refused ([keygen.ErrClockRollback]) as
// long as the clock shows another period. A clock that goes back by more than a term while
// Redis forgets its leases is too much: those that follow may begin too early.
//
// Two more things are not noticed. A master that is cut off from the others, and goes on
// renewing leases for longer than two terms after another one was promoted, gives them
// twice: set min-replicas-to-write and min-replicas-max-lag for Sentinel, by which it
// stops; a master of a Redis Cluster stops by itself after cluster-node-timeout. Keep
// either below a term. And an older copy of the key that is put back by hand (RESTORE)
// into the running server it came from is taken for the newest.
//
// # Several masters
//
// N independent masters count with the step N from 1 to N (Config.Offset and
// Config.Step), so that their keys never meet and any of them may fail. Package
// ticket goes round them: a Counter is a ticket.Server.
//
// # Failure modes
//
// A Redis that does not answer, or answers that it is read-only or out of
// memory, makes Reserve return the client's error; segment retries until its
// caller's context ends. What no retry cures is a [keygen.SetupError], which says
// what to do: a key that holds no counter, a right or a password that is missing.
// A counter at the end of int64 is [keygen.ErrExhausted]. An increment whose answer
// was lost is a gap. A client that sends a command again by itself (go-redis does,
// three times) only enlarges the gap.
//
// When a master of a Redis Cluster dies, its counters wait until a replica is
// promoted and the client has heard of it. By itself, go-redis' ClusterClient asks for
// the masters every ten seconds in version 9.5, and every minute in 9.23
// (ClusterOptions.ClusterStateReloadInterval). After each error the packages call its
// ReloadState, so that the next try finds the new master: with 9.23, a generator of
// package segment had keys again 0.1 to 0.3 seconds after the promotion, and 59 seconds
// after it with a client that hides this method behind a type of the application's.
// Such a type should pass it on. Counters on other masters go on meanwhile.
package redisgen
