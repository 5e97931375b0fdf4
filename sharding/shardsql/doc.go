// SPDX-License-Identifier: Apache-2.0

// Package shardsql offers the databases of a [sharding.Router] as one
// database/sql database. Applications, GORM, sqlx and whatever else takes a
// *sql.DB send it their statements with logical names; it reads each text, sends
// it where its rows are, and answers as one unsharded database would.
//
// A statement whose conditions lead to one shard goes there as it is written; only
// names of tables are replaced. What cannot be answered as one table would answer
// is refused by a [sharding.RouteError], and nothing is sent.
//
// Texts of MySQL and MariaDB are ordered and grouped by the weights that the server
// gives them in the column's collation. Of equal texts in a group any may be returned,
// as it may be by one table. Texts of PostgreSQL are grouped by their bytes, under any
// deterministic collation, and ordered where it is C (as that of the column or of the
// database), or of the provider builtin; under others ORDER BY, MIN and MAX of several
// shards are refused, unless they say COLLATE "C".
//
// Rows of several shards are read side by side and merged: in the order of their
// columns, with LIMIT and OFFSET, DISTINCT, and in groups with COUNT, SUM, AVG, MIN,
// MAX, COUNT(DISTINCT) and HAVING. A query needs a connection for each shard at a time,
// or fewer where a pool has fewer: then answers are held, up to 64 MB for each
// connection. A pool keeps two connections between queries unless its SetMaxIdleConns
// says more, and opens the others anew for each query. So a query that asks a shard for at
// most 1000 rows, by LIMIT and OFFSET together or by a unique key, takes no more than the
// pool has shown to keep, and asks several shards on one of them, one after another; to
// have them asked side by side, let the pool keep one for each of its shards. Groups,
// distinct rows and sorting may hold 64 MB besides, of which COUNT(DISTINCT) takes a part
// for each value unless it counts the sharding key; more
// is an error.
//
// A write for several shards goes to each of them as its part: an INSERT with the rows
// of each, an UPDATE or DELETE whose conditions lead to several keys, and one without a
// key where [sharding.AllShards] allows it. Either all shards take it or none does: it
// is one transaction, or stands behind a savepoint of the caller's. Several databases
// are written together only where [sharding.Transactions] lets transactions span them;
// when one of them cannot commit after another one has, the error is a
// [sharding.PartialCommitError]. What each shard would compute otherwise (NOW,
// variables) and what it would count by itself (LIMIT) is refused. An INSERT returns its
// rows in the order of VALUES; where IGNORE or DO NOTHING leaves some out, the others
// are recognised by a unique key.
//
// An INSERT that leaves a column of [sharding.Table].Also to a database that numbers it
// (AUTO_INCREMENT, identity, INTEGER PRIMARY KEY) is refused with
// [sharding.ErrMissingKey]: the number would not lead to the row's shard.
//
// A unique key that does not lead to the shard holds on each shard by itself. So before
// a write depends on such a key, its rows are looked for by it: those of an upsert (ON
// CONFLICT, ON DUPLICATE KEY UPDATE, IGNORE, REPLACE) by the key that it names, or by
// all that the table has, first on their own shards, and what is not there on all
// others, within [sharding.FanOut]. A row that exists under a sharding key of another
// slot is refused with [sharding.ErrKeyChange], as the upsert would store it twice. What
// an UPDATE sets a unique key to is looked for on the other shards. No look is needed
// where the key has the sharding key among its columns, or a column of
// [sharding.Table].Also whose value carries the slot. In a transaction the databases on
// which it has begun are asked on its connections, and the others on one of their own,
// for which it may have to wait: give its statements a context that ends where pools may
// be exhausted. A look takes no locks: two upserts of one new row under two sharding
// keys can still store it twice. An INSERT that names no conflict is sent as it is, and
// so are other unique keys than the primary key that an upsert gives the values of its
// row.
//
// A query with a value of a column of [sharding.Table].Lookups asks the lookup table first,
// and goes to the shards of the keys that it names, at most 1,000. Where all tables are in one
// database, at most 16 of them, one text asks all of them for the row of a unique value, and
// no lookup table; SQLite, which saves no round trip by that, does not. An INSERT, an UPDATE that
// sets such a column to a value, and a DELETE keep the table: what rows get is entered
// before the transaction commits, and what they had is removed afterwards. A second owner
// of a unique value is the driver's duplicate-key error. What gives a column a value that
// nobody knows is refused with [sharding.ErrLookup], and so is giving a value to another
// row in the transaction that has taken it from one, unless all of it lies in one database. A
// lookup table in another database than the row is written on a connection of its own, and
// is no part of the transaction: what a rollback or a kill leaves over leads to no row. An
// observer is told of these statements, too.
//
// A write to a broadcast table goes to the home database and to those of the router,
// each of which has a copy. By itself it may always span databases, as it could not be
// done otherwise; in a transaction it needs [sharding.Atomic] or [sharding.BestEffort]. What each would make
// for itself is refused with [sharding.ErrCopies]: numbers and computed defaults that
// are left out, functions that are not known to give the same everywhere, LIMIT.
//
// It is being built. Still refused, where several shards would have to answer: UNION of
// groups, INTERSECT and EXCEPT; a CTE that is read twice; a derived table that limits or
// ranks its rows, or groups them by something else than the sharding key; of expressions
// over aggregates all but + - * /, ROUND, COALESCE, IFNULL and NULLIF, and on MySQL and
// MariaDB those that go on with an AVG; there orders, groups and sums of expressions but for
// conditions, CASE, COALESCE and IF of one type, DATE, YEAR and its like, FROM_UNIXTIME,
// DATE_FORMAT of digits, LOWER, UPPER, LENGTH, ABS, and sums and products of columns and
// integers; on PostgreSQL orders and groups of expressions but for conditions, CASE and
// COALESCE of one type, DATE, DATE_TRUNC, LOWER, UPPER, TRIM, SUBSTR, LENGTH, ABS, and sums and
// products, values of other types than numbers, texts, times, uuid, bytea and booleans (members of
// ENUMs are grouped and not sorted), and DISTINCT ON; those of texts whose collation has several levels of weights on MySQL and MariaDB, or is none of
// SQLite's own; and while it runs, a query that would have to compare texts of more than
// max_sort_length (1,024 bytes) in groups, or of more than 4,096 bytes with a collation of
// MySQL that does not pad.
//
// The tables of a [sharding.Migration] are followed: while the source serves them,
// statements go there as they are, but for ALTER, DROP, RENAME and TRUNCATE of them,
// which the migration would not notice; one that finds its table closed by a switch or a
// rollback waits for the next place and is planned again, in a transaction that has
// done something it fails with [sharding.ErrRouteMoved]. An INSERT without a value for
// the column that the source numbered is refused with [sharding.ErrNotNumbered] from the
// switch on.
//
// A prepared statement is prepared in the databases that its arguments lead to, once for
// each connection, and closed there with it: 1,000 texts for a database. Its rows are
// copied once more. In a transaction, and in a session at home, it is prepared at most once
// on the connection that these hold, and closed there with it or with these: 100 texts for
// a connection. Sent as statements are that nobody has prepared are other texts, the parts
// of a scatter and of a write to several shards, and in the home database, outside of
// transactions and sessions, what may leave something in its session: all but queries
// without variables and unknown functions. ROW_COUNT() and the like after a prepared query
// are those of another connection therefore.
//
// Queries about shards outside of transactions may go to read-only copies of the
// databases: see [Config.Replicas].
//
// A statement of PostgreSQL that fails ends its transaction on all databases, as it does
// on one: what follows fails with SQLSTATE 25P02 until ROLLBACK, or ROLLBACK TO a
// savepoint, and COMMIT rolls everything back and fails.
//
// All databases have to be set up as the home database is: on MySQL and MariaDB their
// sessions are asked for sql_mode, time zone, collation, max_sort_length and
// div_precision_increment, and their drivers for parseTime, when a pool is used for the
// first time; on PostgreSQL for TimeZone, DateStyle, IntervalStyle,
// standard_conforming_strings, the encoding and the collation of the database. One that differs is refused with [sharding.ErrSettings]. Whether drivers
// count the rows that an UPDATE leaves as they are (clientFoundRows) cannot be asked: give
// all data source names the same.
//
// A session at home (SET, locks, temporary tables, LAST_INSERT_ID) goes on in a
// transaction and on a *sql.Conn, for the statements that go home.
//
// [Config.Observer] is told of each statement what became of it: where it was sent, or why
// it was refused, how many rows there were, and how long it took.
//
// The pools behind it stay the caller's: their limits, their metrics, and closing
// them. Closing the database that [OpenDB] returns closes none of them.
package shardsql
