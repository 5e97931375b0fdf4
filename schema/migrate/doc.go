// SPDX-License-Identifier: Apache-2.0

// Package migrate moves live tables into shards. While an application goes on
// inserting, updating and deleting, it copies every row to the database and the
// table that a sharding rule names, follows the changes, and compares both sides. Then
// it switches, and writers wait for a fraction of a second. Until Finalize a rollback
// is possible that keeps what was written to the shards.
//
// # Promise
//
// No row is lost, duplicated or changed: not when a runner is killed at any point, when
// a database goes away during a commit, when two runners run at once, or when a runner
// continues that was paused for long. Where that cannot be promised, the package refuses
// and says what to change.
//
// It works with database/sql on MariaDB 10.6 and newer, MySQL 8 and newer (InnoDB
// only), PostgreSQL 15 and newer, and SQLite 3.37 and newer. Source and shards may be in
// the same database of a server. Rows of PostgreSQL go to PostgreSQL.
//
// # The phases of a job
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
// # Why it is correct
//
// schema/internal/proto has the rules and the decisions, and a model that tries all
// interleavings of them:
//
//   - The bound of a chunk is written down before any row of the chunk is read.
//   - Log entries of rows that are being copied wait.
//   - Only entries that were read are deleted, after their rows are committed.
//   - Each transaction, on any database, checks under a lock that its runner still leads.
//   - A runner writes only the row that it means. A row that a unique key keeps out for the
//     moment waits for the row in its way; no other row is replaced for it.
//
// The connections are not those of the application's pool and are never returned to it. Isolation,
// sql_mode, time zone, character set and limits are set and read back before a connection is used.
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
// A job holds at most 16 MiB of rows at a time. All goroutines share that: copiers, the follower, and
// the way back. A larger row is held alone. Verify holds hashes of rows, and one row at a time on
// SQLite. Values count as the database writes them, two digits for a byte on SQLite, plus some 200
// bytes for each row.
//
// The driver's buffers and garbage that is not collected yet come on top. The total is less than 64 MB
// and four of the largest rows, or twelve on PostgreSQL, of which pgx makes copies. SQLite's own memory
// is not in that number: its page caches, and two or three copies of the row that is being copied.
//
// # What it does not do
//
// Keys: rows need a primary key of one integer column, and ids up to the largest int64.
//
// Foreign keys: all tables that foreign keys connect belong into one job. A key may refer to a table
// outside of the job if it deletes and nulls nothing; Finalize drops it from the retired table. If it
// is ON UPDATE CASCADE, on MySQL and MariaDB, a trigger on the table that it refers to refuses
// changes of the key from Run until Finalize or Abort, with error 1644 that names the row. Targets get no foreign keys.
// References without a foreign key are known only if Table.References names them.
//
// Jobs: a table of the source belongs to one job until that is finalized or aborted. Targets belong
// to one job of one source until it is aborted, which their database remembers. Several sources are
// not merged into the same tables.
//
// Triggers: those of a table of MySQL or MariaDB are made on its shards before the switch, if they
// name only tables of the job whose rows lie beside the table's, and if they begin with a guard that skips the
// rows of the job. Inspect says for each trigger what prevents that, and has the statements that add
// the guard. On the shards they run with the rights of the job's user. Other triggers are refused, and so are
// tables with triggers in SQLite.
//
// Sources: refused are engines other than InnoDB, a source that is configured to replicate another
// server (row events run no triggers; a MariaDB with slave_run_triggers_for_rbr is allowed), members
// of Galera or of Group Replication, and, in SQLite, unique indexes on expressions.
//
// Values: Inspect finds values that a copy would change. A row with such a value is not copied; it
// ends the call with a [RowError]. These are the value that an ENUM stores in place of an invalid one;
// a DECIMAL, a date, a time or bytes inside of MySQL's JSON, whose text is that of a DOUBLE or a
// string; and bytes that are not a character of their column's set. An UNSIGNED INTEGER inside of JSON
// becomes an INTEGER, which is equal to it. SQLite, where -0.0 prints as 0.0, has 0.0 after a copy.
//
// On MariaDB a writer that locks a table with LOCK TABLES has to name the log as well, or it gets error
// 1442. The retired tables stay until somebody drops them.
//
// # PostgreSQL
//
// A switch is one transaction: the lock, the last changes and the renames. A runner that is killed during it
// leaves no trace. One that is killed between its commit and the change of the route leaves the tables closed, as on
// MySQL; the next one goes on. TRUNCATE of a table that is being migrated gets an error. The triggers
// also fire for sessions with session_replication_role = replica. After a rollback the sequence of the key continues above
// the highest id.
//
// The job's user owns the tables, or is a member of the role that does. Where tables have foreign keys,
// the user needs the right to set session_replication_role, so that rows can be brought back unchecked.
//
// Foreign keys fire the triggers of the rows that they change. Therefore a key that refers to a table
// outside of the job may cascade: its changes are followed until the switch, and refused from then on until
// Finalize drops the key.
//
// Refused are tables with triggers, policies or rules of their own; tables that are partitioned or
// inherit; columns of money, xml, "char", a composite type or a type of an extension; databases with
// another encoding than UTF8; standbys and subscribers to publications. Enumerated types and domains
// have to exist on the databases of the shards first.
//
// # Failure modes
//
// Lost servers: a lost connection, a deadlock or a restarting server is waited for up to a minute. Then
// the call ends with an error and can be repeated.
//
// Switches: a switch that would take longer than allowed ends with a [PauseError] before any table was
// renamed. It is given up early enough for the renames, whose time a rehearsal has measured, and for a
// fourth of the pause. If a rename takes longer nevertheless, the switch is finished or undone, whichever
// is shorter, and [Switch].Over tells by how much the pause was too long. No bound holds for a runner
// that gets no processor time.
//
// Triggers: those on a table with other writers are made under a lock. Writers wait for some hundredths of
// a second, and for up to a second at a time while a long transaction is open.
//
// Changed tables: a TRUNCATE, which triggers do not see, and any ALTER of a table of the source end the
// job with [ErrChanged]. So do a TRUNCATE, a DROP or a restore of a shard. Before the switch the job has
// to be started again. After it the retired tables have the rows, and the runbook says how to go on.
//
// Configuration: a job stores digests of what decides where rows go and which ids they get. With
// another configuration Run, Follow, Verify, Cutover and Rollback end with a [SetupError] and do
// nothing. The digest of a caller's own rule, and of sharding.Interval, is that of the slots of some
// thousand keys, not of all.
//
// Leaders: on servers a second runner gets [ErrLocked] while the first one lives. A leader that its
// server has not heard for a minute loses the lock on the job, and all other connections sooner; the lock on the
// tables, in a switch, after twice its longest pause and ten seconds. When it continues, it is fenced. (Before
// PostgreSQL 14 a server does not close connections that are silent outside of transactions. There a leader that was
// stopped keeps the lock until its host's end is noticed.) SQLite has no lock that ends with its process, so there
// the runner that was started last leads, and older ones end with [ErrFenced].
//
// Fail-over: a replica that takes over from a server may lack the last commits. The next call notices
// the other server, removes what the shards have beyond what it knows to be copied, and compares all rows
// before it goes on. A source that knows nothing of a switch that the shards know of is refused with
// [ErrUnclear].
package migrate
