// SPDX-License-Identifier: Apache-2.0

// Package corpus reads files of SQL statements that say what is expected of each
// of them: the statements that applications of one sort send, and the tables that
// they are about. Tests of the statement engine plan them, tests on real servers
// run them, and the documentation lists those that are refused.
//
// A file is SQL text; blank lines separate its blocks. A block of comments alone is
// prose. A table is its CREATE TABLE with a line that says where its rows lie:
//
//	CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL);
//	-- sharded: orders by user_id in group shop, also id
//
// or "-- broadcast: countries" (the same rows in every database) or "-- home: jobs"
// (not sharded, in the home database). "also" names columns whose values carry the
// slot of the key, as ids do that were made for it. A statement is a block of its own:
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
// "args" is left out when there are none, "dialect" when MySQL, MariaDB and SQLite all
// take the text. "with" is what becomes of the statement when the columns behind "also"
// carry the slot, "without" when they do not and every table has its key alone; see
// [Outcome]. Both are meant with the defaults: reads without a key go to every shard,
// writes without a key are refused, and no write spans databases. The shards are eight
// tables of two databases in turn; the slot of a key is its last ten bits with, and its
// xxhash without.
//
// The text is MySQL's and SQLite's common ground: times are written as text, booleans
// as 0 and 1, and every table's id is given, never numbered by the database.
package corpus
