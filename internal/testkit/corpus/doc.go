// SPDX-License-Identifier: Apache-2.0

// Package corpus reads files of SQL statements with their expected outcomes: the statements that
// applications of one kind send, and their tables. Tests of the statement engine plan them, tests
// on real servers execute them, and the documentation lists those that are refused.
//
// A file is SQL text; blank lines separate its blocks. A block of comments alone is prose. A table
// is its CREATE TABLE with a line that gives its placement:
//
//	CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL);
//	-- sharded: orders by user_id in group shop, also id
//
// or "-- broadcast: countries" (the same rows in every database) or "-- home: jobs" (not sharded,
// in the home database). "also" names columns whose values carry the slot of the key, such as ids
// that were generated for it. "; order_id refers to orders" at the end of a line adds a parent. A statement is a separate block:
//
//	-- name: an order by its id
//	-- from: the project, and where in it
//	-- args: 1029, 'open', NULL
//	-- dialect: mysql
//	-- with: one
//	-- without: scatter
//	-- because: for refused statements, what to do instead
//	SELECT * FROM orders WHERE id = ?;
//
// "args" is omitted without arguments, and "dialect" if MySQL, MariaDB and SQLite all accept the
// text. "with" is the outcome if the columns of "also" carry the slot; "without" is the outcome if
// they do not, and every table has only its key and its parents; see [Outcome]. Both assume the defaults: reads
// without a key go to every shard, writes without a key are refused, and no write spans databases.
// The shards are eight tables of two databases in turn. The slot of a key is its last ten bits for
// "with", and its xxhash for "without".
//
// The text is in the common subset of MySQL and SQLite: times are written as text, booleans as 0
// and 1, and every id is given, never numbered by the database.
package corpus
