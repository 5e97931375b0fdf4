// SPDX-License-Identifier: Apache-2.0

// Package schema has what a DBA needs first: the DDL of shardid's tables, an inspection of
// the tables that are to be sharded, a diagnosis of shards, and a seed that makes generated
// ids start above the ids that a database has already given.
//
// # Promise
//
// [DDL] is the text for a DBA to read and run. [Apply] runs it where it has not been run.
// It creates leaf_alloc of Leaf, WORKER_NODE of UidGenerator, and worker_lease with
// worker_namespace. Tables made by Leaf and UidGenerator can be used.
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
// A table or column that cannot be used is an error that names it. When another writer
// holds a lock (SQLITE_BUSY, a deadlock, a serialization failure), statements are repeated
// for up to ten seconds, or until the context ends. [NextID] and Inspect read the state of
// one moment. The caller adds a margin for rows that other writers insert later.
package schema
