// SPDX-License-Identifier: Apache-2.0

// Package shardsql offers the databases of a [sharding.Router] as one
// database/sql database. Applications, GORM, sqlx and anything else that takes a
// *sql.DB send it their statements with logical names. It reads each text, sends
// it where its rows are, and answers as one unsharded database would.
//
// # Promise
//
// A statement whose conditions lead to one shard goes there as it is written; only
// the names of tables are replaced. A statement that shards cannot answer as one table
// would is refused with a [sharding.RouteError], and nothing is sent.
//
// # Queries on several shards
//
// Rows of several shards are read in parallel and merged: in the order of their columns,
// with LIMIT and OFFSET, DISTINCT, and in groups with COUNT, SUM, AVG, MIN, MAX,
// COUNT(DISTINCT) and HAVING.
//
// A query needs one connection for each shard at a time. Where a pool has fewer, answers are
// kept in memory, up to 64 MB for each connection. Groups, distinct rows and sorting may take
// another 64 MB; more is an error. COUNT(DISTINCT) takes memory for each value, unless it
// counts the sharding key.
//
// A pool keeps two idle connections unless its SetMaxIdleConns says more, and opens others
// anew for each query. A query for at most 1000 rows of each shard, by LIMIT and OFFSET
// together or by a unique key, therefore takes no more connections than the pool has kept
// before, and queries several shards on one connection, one after another. To query them in
// parallel, let the pool keep one connection for each of its shards.
//
// # Texts
//
// Texts of MySQL and MariaDB are ordered and grouped by the weights that the server gives them
// in the column's collation. Of several equal texts in a group any one may be returned, as
// with one table. Texts of PostgreSQL are grouped by their bytes under any deterministic
// collation. They are ordered if the collation of the column or of the database is C or of the
// provider builtin. Under other collations ORDER BY, MIN and MAX over several shards are
// refused, unless they say COLLATE "C".
//
// # Writes to several shards
//
// Each shard gets its part: of an INSERT its rows, of an UPDATE or DELETE by several keys its
// keys, and the whole of a statement without a key, which [sharding.AllShards] has to allow.
// Either all shards take the write or none does: it is one transaction, or is sent behind a
// savepoint of the caller's transaction. It spans databases only if [sharding.Transactions]
// allows that. If one of them cannot commit after another one has, the error is a
// [sharding.PartialCommitError].
//
// Expressions that each shard would compute differently (NOW, variables), and LIMIT, which
// each would count by itself, are refused. An INSERT returns its rows in the order of VALUES.
// Where IGNORE or DO NOTHING leaves rows out, the others are recognised by a unique key.
//
// An INSERT that leaves a column of [sharding.Table].Also to a database that numbers it
// (AUTO_INCREMENT, identity, INTEGER PRIMARY KEY) is refused with [sharding.ErrMissingKey],
// because the number would not lead to the row's shard.
//
// # Unique keys
//
// A unique key that does not lead to the shard is unique on each shard only. Before a write
// that depends on such a key, its rows are searched for by the key:
//
//   - those of an upsert (ON CONFLICT, ON DUPLICATE KEY UPDATE, IGNORE, REPLACE), by the key
//     that it names or by all keys of the table: first on their own shards, and what is not
//     found there on all others, within [sharding.FanOut];
//   - the value that an UPDATE gives to a unique key, on the other shards.
//
// An upsert of a row that exists under a sharding key of another slot is refused with
// [sharding.ErrKeyChange], because the row would be stored twice. No search is needed if the
// key contains the sharding key, or a column of [sharding.Table].Also whose value carries the
// slot.
//
// A search in a transaction uses the transaction's connections to the databases on which it
// has begun, and other connections for the others. It may have to wait for those: give its
// statements a context with a deadline where pools may be exhausted. A search takes no locks, so two
// simultaneous upserts of one new row under two sharding keys can still store it twice. An INSERT without a
// conflict clause is sent without a search. An upsert searches for no other unique keys than
// the primary key that it sets to values of its row.
//
// # Lookup tables
//
// A query with a value of a column of [sharding.Table].Lookups reads the lookup table first
// and then goes to the shards of at most 1,000 keys found there. Writes keep the table: new
// values are entered before the transaction commits, and old values are removed after it.
//
// A second owner of a unique value gets the driver's duplicate-key error. A write whose value
// cannot be known beforehand is refused with [sharding.ErrLookup]. So is a transaction that
// takes a value from one row and gives it to another, unless all of it lies in one database.
//
// Where all tables of the rows are in one database, at most 16 of them, a query for the row with
// a unique value does not read the lookup table: one text queries all tables. SQLite, which
// saves no round trip by that, reads the lookup table.
//
// A lookup table in another database than the row is written on a connection of its own and is
// not part of the transaction. After a rollback or a kill an entry may be left that leads to no
// row. Observers see these statements, too.
//
// # Broadcast tables
//
// A write to a broadcast table goes to the home database and to all databases of the router,
// each of which has a copy. A statement by itself may always span them; in a transaction it
// needs [sharding.Atomic] or [sharding.BestEffort]. A statement that would not leave the same
// rows everywhere is refused with [sharding.ErrCopies]: numbers and computed defaults that are
// left out, functions whose result may differ, LIMIT.
//
// # Migrations
//
// While the source of a [sharding.Migration] serves a table, statements go to the source as
// they are. ALTER, DROP, RENAME and TRUNCATE of the table are refused, because the migration
// would not notice them. A statement that finds its table closed by a switch or a rollback
// waits for the next place and is planned again. In a transaction that has executed something
// it fails with [sharding.ErrRouteMoved] instead. From the switch on, an INSERT without a
// value for the column that the source numbered is refused with [sharding.ErrNotNumbered].
//
// # Prepared statements
//
// A prepared statement is prepared in the databases that its arguments lead to, once for each
// connection: up to 1,000 texts for a database, and up to 100 texts for a connection that a
// transaction or a session at home holds. It is closed there with the statement or with the
// connection. Its rows are copied once more.
//
// Some parts are sent without preparing: other texts, those of a query or a write on several
// shards, and in the home database, outside of transactions and sessions, whatever may change
// the session, which is everything but queries without variables and unknown functions.
// Therefore ROW_COUNT() and its like after a prepared query belong to another connection.
//
// # Sessions and settings
//
// SET, locks, temporary tables and LAST_INSERT_ID of the home database last for a transaction
// and for a *sql.Conn, for the statements that go to the home database.
//
// All databases need the settings of the home database. They are compared when a pool is used
// for the first time, and a database that differs is refused with [sharding.ErrSettings]. On
// MySQL and MariaDB these are sql_mode, time zone, collation, max_sort_length and
// div_precision_increment, and the driver's parseTime; on PostgreSQL TimeZone, DateStyle,
// IntervalStyle, standard_conforming_strings, the encoding and the collation of the database.
// Whether drivers count rows that an UPDATE leaves unchanged (clientFoundRows) cannot be read:
// give all data source names the same value.
//
// A statement of PostgreSQL that fails ends its transaction on all databases, as on one. What
// follows fails with SQLSTATE 25P02 until ROLLBACK, or ROLLBACK TO a savepoint. COMMIT rolls
// everything back and fails.
//
// # Not supported yet
//
// Refused where several shards would have to answer:
//
//   - UNION of groups, INTERSECT, EXCEPT, DISTINCT ON, and a CTE that is read twice;
//   - a derived table that limits or ranks its rows, or groups them by something else than the
//     sharding key;
//   - expressions over aggregates other than + - * /, ROUND, COALESCE, IFNULL and NULLIF, and on
//     MySQL and MariaDB expressions that continue with an AVG;
//   - on MySQL and MariaDB orders, groups and sums of expressions other than conditions, CASE,
//     COALESCE and IF of one type, DATE, YEAR and its like, FROM_UNIXTIME, DATE_FORMAT of digits,
//     LOWER, UPPER, LENGTH, ABS, and sums and products of columns and integers;
//   - on PostgreSQL orders and groups of expressions other than conditions, CASE and COALESCE of
//     one type, casts to integers, DATE, DATE_TRUNC, LOWER, UPPER, TRIM, SUBSTR, LENGTH, ABS, and
//     sums and products; and of values of other types than numbers, texts, times, uuid, bytea and booleans (members
//     of ENUMs are grouped and not sorted);
//   - texts with a collation that has several levels of weights on MySQL and MariaDB, or that is
//     not one of SQLite's own;
//   - while the query runs, texts to compare of more than max_sort_length (1,024 bytes) in
//     groups, or of more than 4,096 bytes with a collation of MySQL that does not pad.
//
// # Ownership
//
// Queries outside of transactions may go to read-only copies of the databases: see
// [Config.Replicas]. [Config.Observer] learns of each statement: where it was sent or why it
// was refused, how many rows there were, and how long it took.
//
// The pools stay the caller's: their limits, their metrics, and closing them. Closing the
// database that [OpenDB] returns closes none of them.
package shardsql
