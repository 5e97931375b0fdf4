// SPDX-License-Identifier: Apache-2.0

// Package schema is what a DBA meets first: the tables that shardid needs, a
// look at the tables that are to be sharded, and the seed that makes generated
// ids start above the ids a database has already given.
//
// # Promise
//
// [DDL] is the text a DBA reads and runs; [Apply] runs it where it has not been
// run. The tables are leaf_alloc, as Leaf's segment mode (号段) has it,
// WORKER_NODE, as UidGenerator has it, and worker_lease with worker_namespace;
// tables made by those systems serve.
// [Inspect] reads and never writes. [Seed] raises a counter and never lowers
// it. Every function is safe for concurrent use, by several processes too, and
// uses one connection of the pool at a time, with its own transactions.
//
// It works with database/sql on MySQL 5.7 and newer, MariaDB 10.6 and newer,
// PostgreSQL 12 and newer and SQLite 3.37 and newer, whatever the driver. In
// PostgreSQL it sees the tables that a name without a schema reaches, and
// creates its own in the first schema of the search path, as any CREATE does.
//
// # Failure modes
//
// A table or column that cannot serve is an error that names it. Another
// writer's lock (SQLITE_BUSY, a deadlock, a serialization failure) is waited for up to ten seconds, or
// until the context ends. [NextID] and Inspect tell of one moment: rows that
// other writers insert later need the margin that the caller adds.
package schema
