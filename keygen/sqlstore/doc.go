// Package sqlstore keeps what generators need to remember in the application's
// own database, MySQL, MariaDB, PostgreSQL or SQLite: segments in leaf_alloc,
// worker ids in WORKER_NODE, leased worker ids in worker_lease. The first two
// tables are those of Leaf and UidGenerator; schema.Apply creates all of them. The
// tables of tinyid ([TinyID]), CosId ([Store.CosID]) and wuid ([Store.WUID]) are sources
// as they are.
// [Periods] are counters of days, months and years for package periodic.
//
// # Promise
//
// A segment exists only once its UPDATE has committed, and costs one round
// trip. It is taken on a connection of the pool's own, never inside a
// transaction of the caller's, whose rollback would give the range back. The
// ranges are Leaf's, [old max_id, new max_id), so a tag can be shared with a
// running Leaf; those of tinyid's table and of CosId's are (old, new], as theirs are,
// and each may reserve while the other does.
//
// A lease is written down with its ceiling, and committed, before it is used.
// Two leases on one worker id never share a tick, whatever the clocks of the
// processes and of the database say: the next one begins at or above the
// highest ceiling of those before. The database's clock only decides when a
// worker id is free again.
//
// Every call ends with its context. Sessions may be set to any isolation level
// and time zone, and to autocommit=0, with which leases work and reserving a
// segment is an error.
//
// Behind PgBouncer in transaction mode, which keeps no prepared statements before version
// 1.21, open PostgreSQL with default_query_exec_mode=exec of pgx. Errors say so.
//
// # What a fail-over can lose
//
// A database that has acknowledged a commit may still forget it: InnoDB with
// innodb_flush_log_at_trx_commit=0, PostgreSQL with synchronous_commit=off when
// they crash, and any that fails over to an asynchronous replica. With
// semi-synchronous replication (AFTER_SYNC) or synchronous_commit=on with
// synchronous standbys nothing is lost.
//
// Leases notice a fail-over: the ledger notes the server's identity, and on
// another one every lease is lost and those that follow begin two terms later,
// above all that can have been promised, also when the lost server's clock was
// ahead by a term. As nothing is leased for more than a term ahead, generators
// have what is left of the leases they had, and then no ids until a term has
// passed since the first of them met the other server.
//
// The members of a Galera cluster or of a replication group (group_replication)
// count as one server, which they are by what they acknowledge: a change of the
// member, or connections to several at once, are no fail-over. A cluster that was
// bootstrapped anew from a member that had fallen behind is not noticed; do then as
// after a restored backup, below.
//
// Segments of a [Store.Tag], [TinyID], [Store.CosID], [Store.WUID] or [Periods] do not:
// ids reserved on the lost server and not yet replicated are given again, without an
// error. Segments of a [Store.GuardedTag] begin ten steps higher on another server, which
// covers a replica that was behind by less. So it is with worker ids of WORKER_NODE: those
// of a [Store.WorkerNode] are given again, and a [Store.GuardedWorkerNode] leaves out a
// thousand.
//
// Nothing protects from a loss after which the server is the same: a restored
// backup or snapshot of the same server, or going back to a server that took no
// part in what happened in between. Then raise max_id above the ids in use, and
// delete the row of worker_namespace whose namespace is empty: leases then count
// as lost.
//
// # What the tables must be
//
// The column max_id may be narrower than a bigint: a store looks once at its type,
// and a range that would not fit is [keygen.ErrExhausted] instead of a number that a
// lax sql_mode cuts. A type that does not hold every whole number, or an engine
// without transactions (MyISAM), is refused. The first range of a tag is compared
// with its row before and after, so that a trigger which sets max_id is found; one
// that is made while processes run is not.
//
// The numbers of worker_lease and worker_namespace must be bigints, as a ceiling that
// is cut would leave a worker id to two processes at once; a store looks at them before
// its first lease. Nor may these tables, or WORKER_NODE, be of an engine without
// transactions.
//
// # Failure modes
//
// Where the pool's only connection is inside the caller's own transaction, or that
// transaction has an SQLite file locked, calls wait for it until the context ends;
// the error says so. (A generator of package segment asks for three seconds at a
// time. A call of it that ends before only says that the source has not answered.)
// Give the store a *sql.DB of its own, or enough connections; on SQLite, a file of
// its own, or get ids before the transaction writes. Errors of the database are
// returned wrapped; a tag without a row is [keygen.ErrUnknownTag]; worker ids that
// are all held are [keygen.ErrNoWorker]. What fails until somebody changes the database (a table or right that
// is missing, a wrong password, a *sql.DB that was closed) is a
// [keygen.SetupError], which says what to do, and a counter at the end of its
// column is [keygen.ErrExhausted]; generators pass both on at once, also those
// that lived through outages before. A server that takes no changes (a replica, or one
// set read-only) is [keygen.ErrReadOnly], inside a SetupError for a tag's first range,
// a ledger's first lease and every WorkerNode. A generator that runs takes it for an
// outage, as in a fail-over the old primary is so for a moment: it uses up what it has
// reserved or leased, and waits then.
package sqlstore
