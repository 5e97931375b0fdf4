// SPDX-License-Identifier: Apache-2.0

// Package shardsql offers the databases of a [sharding.Router] as one database/sql database.
// Applications, GORM, sqlx and other users of a *sql.DB send it statements with logical table
// names. It parses each text, sends it to the databases that have its rows, and returns the result
// of one unsharded database.
//
// # Promise
//
// A statement whose conditions lead to one shard goes there unchanged, except that table names are
// replaced. A statement that the shards cannot answer as one table would is refused with a
// [sharding.RouteError], and nothing is sent.
//
// # Queries on several shards
//
// docs/sql.md shows which statements one shard answers, which several, and which are refused. Rows of several shards are read in
// parallel and merged: ordered, cut by LIMIT and OFFSET, made distinct, grouped, and computed from aggregates.
//
// A query of rows reads each shard on a connection of its own, up to the limit of each pool (SetMaxOpenConns), or 32 connections of a
// pool without a limit. A query of groups, or of at most 1000 rows of each shard, takes no more of a pool than
// [sharding.FanOut] lets it query at a time. A connection without which the query can do is waited for a second at most. If shards share
// a connection, results are kept in memory, and so are groups, distinct rows and rows that are sorted here: up to 64 MB for a query.
// More is an error. COUNT(DISTINCT) uses memory for each value, unless it counts the sharding key.
//
// Rows that are neither read to the end nor closed keep these connections. A program that sends other
// statements beside them, such as an UPDATE for each row, needs pools with more connections than
// shards; otherwise the statements wait until their contexts end.
//
// A pool keeps two idle connections unless SetMaxIdleConns allows more, and opens the others anew
// for each query. Therefore a query for at most 1000 rows of each shard, by LIMIT and OFFSET
// together, by a unique key or by aggregates without GROUP BY, uses no more connections than the pool has kept before. It queries
// several shards on one connection, one after another. To query them in parallel, let the pool keep
// one connection for each of its shards.
//
// # Subqueries
//
// A subquery of rows that are not on the shards of its query is executed first, and its result written in its place, if it does
// not depend on the row. Its result must be a number or NULL, texts or times that are compared with a column of the same collation or
// type, or after IN a list of at most 10,000 of them. Refused are, on SQLite, times; and on MySQL and MariaDB
//
//   - texts of a character set that the connection may not be able to send, because it does not use utf8mb4;
//   - times that the driver returns in another zone than UTC, and a TIMESTAMP if the time zone of the session has
//     no fixed offset: there, one text may be that of two instants;
//   - lists of floats, lists beside an expression that is not known to be a number, and decimals with more digits
//     than their text has, such as an AVG or a quotient, unless they are compared or selected by themselves.
//
// The subquery and the query are read one after the other. Rows may change in between, as they may between
// shards. In a transaction of PostgreSQL the subqueries are executed behind a savepoint, to which the engine
// goes back if one turns out to depend on the row. A transaction that may not span databases
// executes such a subquery only on the database on which it has begun, and may begin with one only if there
// is a single database and no migration.
//
// # EXPLAIN
//
// EXPLAIN, and ANALYZE of MariaDB, of a query of one shard is sent to that shard. Of a query of several
// shards it is refused, unless [sharding.On] chooses one; [Explain] returns the text for each of them.
//
// # Writes to several shards
//
// Each shard gets its part of the write: of an INSERT its rows, of an UPDATE or DELETE by several
// keys its keys. A statement without a key goes to all shards, if the context has
// [sharding.AllShards]. Either all shards execute the write or none does: it is one transaction, or
// it follows a savepoint in the caller's transaction. It spans databases only if
// [sharding.Transactions] allows that. If one database cannot commit after another one has, the
// error is a [sharding.PartialCommitError].
//
// NOW() and other functions that read the clock have one value in a statement for several databases:
// the database on which the transaction has begun, or otherwise the home database, is asked for it
// first. As a column of a result it needs a name: NOW() AS now. Expressions that each shard would
// compute differently (RAND, variables) are refused, and so is LIMIT, which each shard would apply
// separately. An INSERT returns its rows in the order of VALUES. If IGNORE or DO NOTHING skips rows,
// the returned rows are matched by a unique key.
//
// PostgreSQL's INSERT … SELECT unnest($1::bigint[]), unnest($2::text[]), or SELECT … FROM unnest(…) AS a (x, y), inserts the
// elements on the shards of their rows. It is sent as INSERT … VALUES, in which PostgreSQL allows 65,535 values for
// each shard. With WHERE, ORDER BY or LIMIT it is refused, and if the parameter of an array has another use or a second type.
//
// A column that equals a column of a list of values leads to the shards of these values: UPDATE orders AS o SET note = v.note
// FROM (VALUES (1, 'a'), (2, 'b')) AS v (id, note) WHERE o.id = v.id. A list is VALUES, SELECTs without FROM with UNION, or
// unnest($1::bigint[]), also in IN (…) or in a CTE. On MySQL, MariaDB and SQLite it leads to shards if all values of the column
// are whole numbers, because these databases may compare other values as floats.
//
// PostgreSQL's WITH may write: WITH o AS (INSERT INTO orders … RETURNING id) INSERT INTO items … SELECT … FROM o. Each of
// the writes, and what follows, must lead to the same shard by its own conditions or rows, and need no search. A part may
// join what another one returns by a column that leads to shards, or by one that its UPDATE does not change.
//
// An INSERT that leaves a column of [sharding.Table].Also to a database that numbers it
// (AUTO_INCREMENT, identity, INTEGER PRIMARY KEY) is refused with [sharding.ErrMissingKey], because
// the number would not lead to the row's shard. If MySQL or MariaDB number rows of several shards in one
// INSERT, LastInsertId returns an error: libraries compute the numbers of all rows from the first one.
//
// # Statements by an id alone
//
// UPDATE orders SET note = 'x' WHERE id = 5 says nothing of the sharding key. If id is a primary or
// unique key, a query of each database finds the shard that has the row, and the statement is sent
// to that shard alone. That is done for an UPDATE or DELETE of one table, for a query that locks its
// rows, and for every query of it in a transaction that may not span databases. Joins and subqueries
// may read other rows of the same slots. The value is compared by =, IN or PostgreSQL's = ANY ($1). It
// is not done if [sharding.Table].OnMissing is [sharding.Refuse] or the context has [sharding.AllShards].
//
// If no shard has the row, the statement affects none; a write is still part of its transaction, and
// begins it on a database with shards if it has not begun on one. If two shards have a row with the
// value, or with one that the column treats as equal, a write is refused with
// [sharding.ErrCrossShard], and a query returns both rows. By a value of a partial unique index, which rows that it
// does not cover may have, too, all shards with such rows are written. An id that carries the slot
// ([sharding.Table].Also) needs no search.
//
// A column of [sharding.Table].Parents finds the shard in the same way: DELETE FROM items WHERE order_id = 5.
//
// A search counts all tables of the shards for [sharding.FanOut]. In a transaction it needs a free
// connection to each database on which the transaction has not begun, for as long as one query takes.
//
// A row may be newer than the first read of a transaction. MySQL and MariaDB write such a row, but
// show it only to a read that locks it. So if the transaction sees no row to write, the search is
// repeated on the transaction's own databases, and locks there what the statement would lock, with
// its FOR SHARE, SKIP LOCKED or NOWAIT. It is not repeated if the transaction sees a row that has since
// lost the value to a row of another shard: the write affects none. If the isolation level of BeginTx is
// sql.LevelSerializable, the first search locks already; without that, two writers of a row would be a deadlock.
//
// # Unique keys
//
// A unique key that does not lead to the shard is unique on each shard only. Before a write that
// depends on such a key, its rows are searched for by the key:
//
//   - the rows of an upsert (ON CONFLICT, ON DUPLICATE KEY UPDATE, IGNORE, REPLACE), by the key
//     that it names or by all keys of the table: first on their own shards, and rows not found
//     there on all other shards, within [sharding.FanOut];
//   - the value that an UPDATE sets in a unique key, on the other shards.
//
// An upsert of a row that exists under a sharding key of another slot is refused with
// [sharding.ErrKeyChange], because the row would be stored twice. No search is needed if the key
// contains the sharding key, or a column of [sharding.Table].Also whose value carries the slot.
//
// A search in a transaction uses the transaction's connections to the databases on which it has
// begun, and other connections for the other databases. It may have to wait for those: give its
// statements a context with a deadline if pools may be exhausted. A search takes no locks, so two
// simultaneous upserts of one new row under two sharding keys can still store it twice. It does not look at the condition
// of a partial index: a row that the index does not cover is found, too, and the write is refused if it is on another shard. An INSERT
// without a conflict clause is sent without a search. Of the unique keys that an upsert sets to
// values of its row, it searches for the primary key only.
//
// # Lookup tables
//
// A query with a value of a column of [sharding.Table].Lookups reads the lookup table first and
// then queries the shards of at most 1,000 keys found there. Writes maintain the lookup table: new
// values are inserted before the transaction commits, and old values are deleted after it.
//
// A second owner of a unique value gets the driver's duplicate-key error. A write whose value
// cannot be known beforehand is refused with [sharding.ErrLookup]. So is a transaction that takes a
// value from one row and gives it to another, unless both rows and the lookup table are in one
// database.
//
// If all tables of the rows are in one database, and there are at most 16, a query for the row with
// a unique value does not read the lookup table: one text queries all tables. On SQLite it reads
// the lookup table, because SQLite has no round trip to save.
//
// A lookup table in another database than the row is written on a separate connection, outside of
// the transaction. After a rollback or a kill, an entry without a row may remain. Observers see
// these statements, too.
//
// # Broadcast tables
//
// A write to a broadcast table goes to the home database and to all databases of the router, each
// of which has a copy. Outside of a transaction it may always span them; in a transaction it needs
// [sharding.Atomic] or [sharding.BestEffort]. A statement that would not leave the same rows in
// every copy is refused with [sharding.ErrCopies]: because it omits a column that the database
// numbers or computes by default, calls a function whose result may differ, or has a LIMIT, or a DISTINCT ON
// with an order in which two rows may be equal, or is an UPDATE that sets values of another table which is not joined by
// a unique key.
//
// # Migrations
//
// While the source of a [sharding.Migration] serves a table, statements go to the source unchanged.
// ALTER, DROP, RENAME and TRUNCATE of the table are refused, because the migration would not notice
// them. A statement that finds its table closed by a switch or a rollback waits until a database
// serves the table again, and is then planned again. In a transaction that has executed a statement, and
// after a BEGIN that was sent as a text, it fails with [sharding.ErrRouteMoved] instead. From the switch on, an INSERT without a value for
// the column that the source numbered is refused with [sharding.ErrNotNumbered].
//
// # Moving slots
//
// While slots switch to another shard, a statement that needs them waits until the router has the map with their new
// shard, and is then planned again, also if the former shard has refused it. It waits as long as its context and
// [sharding.Map.Patient] allow, and is then refused with [sharding.ErrSlotMoving]. In a transaction that has executed a statement
// it is refused at once, because the move may wait for locks of the transaction, and so it is after a BEGIN or SET autocommit that
// was sent as a text. Package slotstore moves slots. Once slots of a table have
// begun to move, statements of a program that does not follow its map are refused with [sharding.ErrStaleMap].
//
// # Altered tables
//
// The columns and unique keys of a table are read when a statement first names it: on the table's
// first shard or, if its database does not answer, in another database. If none answers, writes return
// the error, and so do queries that depend on the columns. Tables are altered while programs run, so
// one statement a minute reads them again. A statement that would be refused reads them again if that
// was not done in the last ten seconds. Nothing is read again in a transaction that has begun. In the
// minute after a change, an upsert does not search for the rows of a new unique key, and results of
// several shards are combined by the former types and collations.
//
// On MySQL and MariaDB the collations of texts and the members of ENUM and SET are read in all shards, where new servers may have
// created tables with another default collation. A query that sorts or groups by a column with several collations, or whose
// members have other positions in a shard, is refused. A database that does not answer
// within a second is left out until the columns are read again.
//
// # Prepared statements
//
// A prepared statement is prepared in the databases that its arguments lead to, once for each
// connection: up to 1,000 texts for a database, and up to 100 texts for a connection that a
// transaction or a session at home holds. It is closed there with the statement or with the
// connection. Its rows are copied once more. Prepare itself sends nothing, so a mistake in the text is
// reported when the statement is first executed.
//
// Some statements are sent without preparing them: texts beyond these limits, parts of a query or a
// write on several shards, and, in the home database outside of transactions and sessions, any
// statement that may change the session, which is everything except queries without variables and
// unknown functions. Therefore ROW_COUNT() and similar functions after a prepared query may be executed
// on another connection. If the map of a table has a lease, its slots may move at any time: a write that is outside of
// transactions is then prepared for each execution, because the map is compared again when the write has its connection.
//
// MySQL and MariaDB return a FLOAT, a DOUBLE(10,2) and a STDDEV with fewer digits from a text than from
// a prepared statement, and drivers return a BIGINT UNSIGNED in another type. A result of several shards
// has the digits and types that one table would return. Therefore parts of a prepared statement that have
// arguments are prepared for their execution, also if the driver writes arguments into texts. So is a
// query with such values whose arguments are not sent to the shards, if the driver would have prepared
// it for one table. If the driver was not asked before, the first such statement asks it: four queries.
//
// # Sessions and settings
//
// SET, locks, temporary tables and LAST_INSERT_ID of the home database last for a transaction and
// for a *sql.Conn, and apply to the statements that go to the home database. A statement that
// depends on them and would be sent on another connection is refused with [sharding.ErrSettings]:
//
//   - any statement after a SET, a BEGIN or a PRAGMA that was given as a text,
//   - one with a user variable after that was set,
//   - one with ROW_COUNT(), @@warning_count or SHOW WARNINGS after a statement on another connection, one
//     with FOUND_ROWS() after a query, and one with LAST_INSERT_ID() after an INSERT,
//   - one on shards that takes or releases a lock of its connection, such as GET_LOCK, or calls set_config.
//
// On PostgreSQL, SET LOCAL, SET CONSTRAINTS and SET TRANSACTION in a transaction are executed on all its databases, also
// on those where it begins later. A constraint that SET CONSTRAINTS names must exist in each of them.
//
// After a SET of sql_mode or standard_conforming_strings, a statement on routed tables is refused
// even on the same connection, because the database may parse it otherwise than shardsql. So it is after a SET of
// max_sort_length, div_precision_increment, sql_select_limit or extra_float_digits, with which it may return other rows or
// digits than those that are combined.
//
// All databases need the settings of the home database. The settings are compared when a pool is
// first used, and those of other databases than home again each minute, because another server may have taken over. A database that
// differs is refused with [sharding.ErrSettings]. On MySQL and
// MariaDB they are sql_mode, time zone, collation, max_sort_length, div_precision_increment,
// lc_time_names, default_week_format and group_concat_max_len, and the driver's parseTime; on PostgreSQL TimeZone, DateStyle, IntervalStyle,
// standard_conforming_strings, the encodings of the driver and of the database, and the collation of the database. A sql_select_limit, and an extra_float_digits
// with which a driver reads rounded floats, are refused. With parseTime the driver of MySQL reads a DATETIME that the zone of
// its loc skips in spring as another one, and 0000-00-00 as 0001-01-01. Such values are combined as equal: set loc to UTC,
// the default. Whether drivers
// count rows that an UPDATE leaves unchanged (clientFoundRows) cannot be read: set it to the same
// value in all data source names. If a statement for several shards has CONVERT_TZ, they must know its named time zones alike.
//
// On PostgreSQL a statement that fails aborts its transaction on all databases, as on one. Further
// statements fail with SQLSTATE 25P02, by an error with the method SQLState and not by one of the driver, until ROLLBACK, or ROLLBACK TO a savepoint. COMMIT rolls
// everything back and fails; its error wraps that of the first statement that failed.
//
// # Ownership
//
// Queries outside of transactions may go to read-only copies of the databases: see
// [Config.Replicas]. [Config.Observer] is told about each statement: its targets or the reason of
// its refusal, its number of rows, and its duration.
//
// The caller owns the pools: it sets their limits, reads their metrics and closes them. Closing the
// database that [OpenDB] returns closes none of them.
package shardsql
