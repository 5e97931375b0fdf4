// SPDX-License-Identifier: Apache-2.0

// Package versions runs versioned DDL on every physical table of sharded and
// broadcast tables.
//
// A version is a file in the format of goose, as 00001_orders.sql. Its statements name
// logical tables:
//
//	-- +goose Up
//	CREATE TABLE orders (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL);
//	CREATE INDEX orders_user ON orders (user_id);
//
//	-- +goose Down
//	DROP TABLE orders;
//
// [Runner.Up] runs a statement on a sharded table once for each of its physical
// tables, and one on a broadcast table once in each database of the router.
// [Runner.Plan] returns the statements without sending them.
//
// # Statements
//
// CREATE TABLE, ALTER TABLE, DROP TABLE, RENAME TABLE, CREATE INDEX, DROP INDEX and
// PostgreSQL's COMMENT ON TABLE and COLUMN are allowed. Any other statement is an
// [ErrStatement], and then no statement of any version is sent.
//
// Only names are replaced. The database gets everything else as it is written. A statement may
// name other tables, as REFERENCES does, if they are broadcast tables or tables of the same
// group, whose rows lie in the same database.
//
// Some names may exist only once in a database: those of indexes on PostgreSQL and SQLite, of
// all constraints on PostgreSQL, and of foreign keys and CHECK constraints on MySQL and MariaDB.
// They get "_" and the name of the physical table as a suffix, as with gormplugin.Migrate. An
// index or a constraint can be dropped by its logical name if one of the files creates it by name.
//
// # Promise
//
// Each database has a table, shardid_ddl. It notes each statement for each physical table,
// before the statement is sent and after it was executed. Therefore Up continues after an error,
// a kill or an unreachable shard. A version begins when the version before it is done on all
// shards.
//
// On PostgreSQL and SQLite a version and its notes are one transaction in each database, unless
// the file says NO TRANSACTION (SQLite ignores that). MySQL and MariaDB commit each DDL statement
// by itself. Whether a statement that was in flight at a kill was executed is decided by the
// definition of its table:
//
//   - It is the definition that was noted before: the statement is sent again.
//   - It is the definition that another physical table has after the statement, or the statement
//     is DROP TABLE and the table does not exist: the statement is noted as executed. For this
//     comparison the statement runs on the other physical tables first.
//   - It is another one: [ErrUnclear]. [Runner.Resolve] takes the operator's answer.
//
// A session lock in the database excludes a second runner. It also waits for a statement that the
// server still executes for a client that was killed.
//
// # What it does not do
//
// It does not know whether a table is being migrated or its slots are moving; schema/migrate
// notices a changed table and ends its job. It changes no rows: INSERT and UPDATE are refused. A
// program that routes statements reads the columns again after a statement has failed because
// of them.
package versions
