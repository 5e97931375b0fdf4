// SPDX-License-Identifier: Apache-2.0

// Package migrate moves live tables into shards: while an application goes on
// inserting, updating and deleting, it copies every row to the database and
// table that a sharding rule says, follows the changes, compares, and then
// switches, with writers held up for a fraction of a second. Until Finalize
// there is a way back that keeps what was written to the shards.
//
// # Promise
//
// No row is lost, doubled or changed on its way: not when a runner is killed
// anywhere, a database goes away in the middle of a commit, two runners run at
// once, or one that was thought dead wakes up. Where that cannot be promised the
// package refuses, and says what to change. It works with database/sql on
// MariaDB 10.6 and newer, MySQL 8 and newer (InnoDB only), PostgreSQL 15 and newer, and
// SQLite 3.37 and newer; source and shards may be in the same database of a server.
// Rows of PostgreSQL go to PostgreSQL.
//
// # The course of a job
//
// [New] takes the configuration, which must be the same for every runner of the
// job. [Job.Run] begins or resumes it:
//
//	copying → following → switched → finalized
//	             ↑            |
//	             └─ returning ┘
//
// While copying, triggers on the source note the key of every changed row in a
// log, in the transaction of the change. Copiers read chunks in the order of the
// key and insert them into the shards; an applier reads the noted rows again and
// writes them as they are by then. [Job.Follow] keeps that up until
// [Job.Cutover], which locks the tables, brings the last changes over, renames
// the tables to <name>_old and flips the route (see sharding.ReadRoute). The
// rename is what closes the source: it holds for every connection, old or new.
// From then on the shards' changes are carried back into the retired tables by
// the same engine, so that [Job.Rollback] can return; it renames the shards to
// <name>_sealed. [Job.Finalize] ends that, [Job.Abort] ends a job that has not
// switched. Each of them may be called again when it was cut off.
//
// Shards that have served are under that other name whenever the source serves:
// after the rollback, through Abort, and in another job of the tables, until its
// Cutover. So a connection that was idle since the switch, and writes where the
// shards were, is refused for as long as they are not in force again.
//
// [Job.Inspect] and [Job.Plan] tell beforehand what will happen, [Job.Verify]
// compares all rows while everything is running, before the switch and after it,
// [Job.Progress] says how far it is, and [Job.Pause], [Job.Resume] and [Job.Ask]
// steer runners on other hosts.
//
// # Why it can be trusted
//
// schema/internal/proto has the rules and the decisions, and a model that tries all
// interleavings of them. In short: a bound is written down before any row below
// it is read; entries of rows on their way wait; only entries that were seen are
// deleted, after their rows are committed; each transaction, on whichever
// database, checks under a lock that its runner still leads; and a runner only
// ever writes the row it means to. A row that a unique key keeps out for the
// moment waits for the one in its way: no other row is replaced to make room.
//
// Every connection is pinned: isolation, sql_mode, time zone, character set and
// limits are set and read back before it is used, and it never returns to the
// application's pool.
//
// # Ids and children
//
// Rows keep their ids, unless Config.IDs or Table.IDs says otherwise: [Affine]
// and [Keyed] compute new ones, [MapTable] takes them from a generator and
// remembers them on the source. Columns of the job that refer to them change with
// them. Targets have BIGINT for ids and references to them, whatever the source
// has. Logs, bounds and errors speak of the ids of the side that serves: old ones
// until the switch. [Job.ResolveOld] answers for references kept elsewhere.
//
// What the application inserts into the shards has to have an old id to come back
// to: [IDs.New] of one, for computed ids; with a map table it gets the next of the
// source. Rows that have none make a Rollback impossible, and it says so; they
// stay where they are.
//
// A child without the sharding key lies where its parent does, with Table.Via. A
// row whose parent changes its place follows it; one whose parent is missing
// waits, is no reason for a run to end, and one for a Cutover to be refused.
//
// Ids that carry a slot and ids that do not can be in one table: Also.From of the
// sharding.Table is the boundary. Every row that is copied is held against it,
// so that no id leads to another shard than the row's own.
//
// # Memory
//
// A job holds at most 16 MiB of rows at a time, in whatever number of goroutines and
// on whichever way: Copiers, Follow, and the way back share it. A row
// that is larger is held alone. Verify holds no rows but what tells them apart, and
// one row at a time on SQLite. What counts are values as the database writes them
// down, two digits for a byte on SQLite, and some 200 bytes for each row. What the
// driver keeps for the statement or the answer under way comes on top, and so does
// what the garbage collector has not found yet: all in all it is less than 64 MB and
// four of the largest rows. SQLite's own memory, which has two or three copies of the
// row under way, is not in that number.
//
// # What it does not do
//
// Rows need a primary key of one integer column. All tables that foreign keys
// connect belong into one job, unless a key only refers outwards and deletes or
// nulls nothing, and then Finalize drops it from the retired table. One that is
// ON UPDATE CASCADE may refer outwards on the servers: from Run until Finalize or
// Abort a trigger on the table that it refers to refuses to change what it refers to,
// with error 1644 that names the row. A table of the source belongs to one job until that is finalized or
// aborted; targets get no foreign keys, and belong to one job of one source until it is
// aborted, which their database remembers: sources are not merged into the same tables. References without a foreign key are known only if
// Table.References names them. Triggers of a table's own, on the servers, are made on
// its shards before the switch when they name tables of the job alone that lie where it
// does, and begin with a guard that leaves the job's rows out: Inspect says for each what
// keeps it from that, and has the statements that give it the guard. There they run with
// the rights of the job's user. Other triggers, tables with triggers in SQLite, other engines
// than InnoDB, ids above the largest int64, a source that is configured to repeat
// another server (row events run no triggers; a MariaDB with slave_run_triggers_for_rbr
// may), a member of Galera or of Group Replication as a source, and, in SQLite, unique indexes on
// expressions are refused. Values that a copy would change are found by Inspect, and a
// row with one is not copied but ends the call with a [RowError]: what an ENUM has in
// place of a value that was none of its members; a DECIMAL, a date, a time or bytes
// inside of MySQL's JSON, whose text is that of a DOUBLE or a string; bytes that are no
// character of their column's set. An UNSIGNED INTEGER inside of JSON becomes an
// INTEGER, which is equal to it; and SQLite, where -0.0 prints as 0.0, has 0.0 after a
// copy. On MariaDB a
// writer that locks a table with LOCK TABLES has to name the log as well, or it gets
// error 1442. The retired tables stay until somebody drops them.
//
// # PostgreSQL
//
// A switch is one transaction there: the lock, the last changes, the renames and the route.
// It lasts as a whole or not at all, and a runner that is killed in it leaves nothing.
// TRUNCATE of a table that is on its way gets an error, and triggers run for those, too,
// who write as a replica. A rollback has the sequence of the key go on above the greatest id. The
// job's user owns the tables, or is of the role that does, and where they have foreign keys may
// set session_replication_role, so that rows come back as they are, whatever they refer to. Foreign keys
// run the triggers of the rows that they change, so that one to a table that stays may cascade:
// what it carries on is followed until the switch, and refused from then on until Finalize drops
// the key. Refused are tables with triggers, policies or rules of their own, and those that are
// partitioned or inherit; a column of money,
// xml, "char", a composite type or one of an extension keeps a table from being moved; one of an enumerated
// type or a domain needs the type on the shards' databases first. Databases that have the
// encoding UTF8 alone are taken, standbys and subscribers to publications are not.
//
// # Failure modes
//
// A lost connection, a deadlock or a server that starts again is waited for up
// to a minute; then the call ends with an error and can be made again. A switch
// that would take longer than allowed is given up with a [PauseError] before
// anything was renamed, early enough for what the renames need, by a rehearsal, and
// for a fourth of the pause. A rename that takes longer all the same is gone on with
// or undone, whichever is shorter, and [Switch].Over tells by how much the pause was
// too long. No promise holds for a runner that gets no processor. Triggers
// on a table that others write to are made under a lock, which keeps writers for
// some hundredths of a second, and for up to a second at a time when a long
// transaction is open. A TRUNCATE, which no trigger sees, and any ALTER of a
// table of the source end the job with [ErrChanged], and so do a TRUNCATE, a DROP or a
// restore of a shard: before the switch the job has to be begun again, after it the
// retired tables have the rows, and the runbook says how the job goes on. A job
// remembers what decides where rows go and which ids they get, as digests in its
// tables; given another configuration, Run, Follow, Verify, Cutover and Rollback end
// with a [SetupError] and do nothing. A rule of the caller's own is known there by the
// slots of some thousand keys, as is sharding.Interval, not by what it computes for
// all. On SQLite there is no lock that dies with
// its process, so the runner that was started last leads, and older ones end
// with [ErrFenced]; on the servers a second runner gets [ErrLocked] while the
// first one lives. A leader of which its server hears nothing for a minute loses
// the lock on the job, and the one on the tables sooner; when it wakes up, it is
// fenced.
//
// When a replica takes over from one of the servers, it may lack what was
// committed last. The next call sees the other server, removes what the shards
// have beyond what it knows to be copied, and compares all rows before it goes on.
// A source that knows nothing of a switch which the shards know of is not
// followed: that is [ErrUnclear].
package migrate
