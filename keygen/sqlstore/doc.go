// SPDX-License-Identifier: Apache-2.0

// Package sqlstore stores the state of generators in the application's own database, MySQL,
// MariaDB, PostgreSQL or SQLite: segments in leaf_alloc, worker ids in WORKER_NODE, leased
// worker ids in worker_lease. The first two tables are those of Leaf and UidGenerator;
// schema.Apply creates all three. The package also reserves from the tables of tinyid
// ([TinyID]), CosId ([Store.CosID]) and wuid ([Store.WUID]) without changing them. [Periods]
// are counters of days, months and years for package periodic.
//
// # Promise
//
// A segment exists only after its UPDATE has committed, and costs one round trip. The package
// reserves it on a connection of its own from the pool, never inside the caller's transaction,
// whose rollback would undo the reservation. The ranges have Leaf's form, [old max_id, new
// max_id), so a running Leaf can share a tag; ranges of tinyid's and CosId's tables have their
// form, (old, new], so those systems can reserve at the same time, too.
//
// A lease is written with its ceiling and committed before it is used. Two leases on one worker
// id never share a tick, whatever the clocks of the processes and of the database say, because
// each lease begins at or above the highest ceiling of those before. The database's clock only
// decides when a worker id is free again.
//
// Every call ends with its context. Sessions may have any isolation level and time zone. They
// may have autocommit=0: leases work with it, and reserving a segment is an error.
//
// PgBouncer in transaction mode keeps no prepared statements before version 1.21. Behind it,
// open PostgreSQL with pgx and default_query_exec_mode=exec; errors say so.
//
// # What a fail-over can lose
//
// A database can lose a commit that it acknowledged. InnoDB can lose it in a crash, with
// innodb_flush_log_at_trx_commit=0, or in a crash of its machine, with 2: set 1. PostgreSQL with
// synchronous_commit=off and SQLite with synchronous=OFF or NORMAL could lose it, too, but the
// package's own commits wait until they are on disk, whatever the sessions are set to. Any
// database can lose a commit in a fail-over to an asynchronous replica. With
// semi-synchronous replication (AFTER_SYNC), or synchronous_commit=on and synchronous standbys,
// nothing is lost. But MySQL and MariaDB replicate asynchronously again when no replica has
// answered for rpl_semi_sync_master_timeout, ten seconds by default: set it so high that this
// never happens.
//
// Leases detect a fail-over. The ledger stores the server's identity. On another server every
// lease is lost, and new leases begin two terms later. That is above every ceiling that the
// lost server can have written, even if its clock was ahead by a term. Because a lease reaches
// a term into the future at most, generators issue ids from what is left of their leases, and
// then no ids until a term has passed since the first of them met the other server.
//
// The members of a Galera cluster or of a replication group (group_replication) count as one
// server, because they acknowledge commits together. A change of the member, or connections to
// several members at once, is not a fail-over. The package does not detect a cluster that was
// bootstrapped anew from a member that had fallen behind; do then as after a restored backup,
// below.
//
// Segments of a [Store.Tag], [TinyID], [Store.CosID], [Store.WUID] or [Periods] do not detect a
// fail-over: ids that the lost server reserved and did not replicate are reserved again,
// without an error. Segments of a [Store.GuardedTag] begin ten steps higher on another server,
// or ten times the largest segment if that is more, which is enough for a replica that lagged by
// less. The same holds for worker ids of WORKER_NODE: those of a [Store.WorkerNode] are given
// again, and a [Store.GuardedWorkerNode] skips a thousand.
//
// Nothing detects a loss after which the server is the same: a backup or snapshot restored on
// the same server, or a return to a server that missed what happened in between. Nor is a server
// another one if it has the files of the lost one and its name: on MySQL auto.cnf, on MariaDB
// server_id, port and host name, on PostgreSQL the timeline. Only a promotion begins a timeline; a
// base backup or a copied folder that is just started, or a standby whose standby.signal somebody
// deleted, does not. Then end all
// processes, because they go on with the ids that they have in memory. Raise max_id above the
// ids in use, make all leases count as lost, and start the processes again:
//
//	UPDATE worker_namespace SET identity = '' WHERE namespace = '';
//
// Do not change rows of worker_lease by hand: a worker id of a process that was killed is free
// after a term by itself. Rows that somebody deleted nevertheless, or an emptied table, are
// missed, because worker_namespace stores their number: these worker ids are free after a term.
//
// Nor does anything detect a lost server that goes on: one that was cut off or suspended when
// its replica was promoted, and that accepts changes of processes which still reach it. It
// reserves the same segments as the other server, and two terms after the fail-over it extends
// leases that the other one has granted again. So it must accept no changes from the promotion
// on (fencing, STONITH), as the tools that promote replicas can ensure.
//
// # What the tables must be
//
// The column max_id may be narrower than a bigint. A store checks its type once, and a range
// that would not fit is [keygen.ErrExhausted]; with a lax sql_mode the server itself would cut
// the number. A type that cannot hold every whole number, and an engine without transactions
// (MyISAM), are refused. The first range of a tag is compared with the row before and after the
// UPDATE, which detects a trigger that sets max_id; a trigger that somebody creates later is
// not detected.
//
// The numbers in worker_lease and worker_namespace must be bigints, because a ceiling that the
// server cuts would give one worker id to two processes at once. A store checks them before its
// first lease. These tables, and WORKER_NODE, must have an engine with transactions.
//
// # Failure modes
//
// When the pool's only connection is inside the caller's own transaction, or that transaction
// has locked an SQLite file, calls wait until the context ends, and the error says so. (A
// generator of package segment asks for three seconds at a time. A call that ends earlier only
// says that the source has not answered.) Give the store a *sql.DB of its own or enough
// connections. On SQLite give it a file of its own, or get ids before the transaction writes.
//
// Errors of the database are returned wrapped. A tag without a row is [keygen.ErrUnknownTag].
// When all worker ids are held, the error is [keygen.ErrNoWorker]. An error that lasts until
// somebody changes the database is a [keygen.SetupError], which says what to do: a missing
// table or right, a wrong password, a closed *sql.DB. A counter at the end of its column is
// [keygen.ErrExhausted]. Generators return both at once, even if they lived through outages
// before.
//
// A server that refuses changes (a replica, or one that was set read-only) is
// [keygen.ErrReadOnly]. For a tag's first range, a ledger's first lease and every WorkerNode
// the error is inside a SetupError. A running generator treats it as an outage, because during
// a fail-over the old primary is read-only for a moment: it uses up what it has reserved or
// leased, and then waits.
package sqlstore
