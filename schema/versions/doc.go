// SPDX-License-Identifier: Apache-2.0

// Package versions runs versioned DDL on every physical table of sharded and
// broadcast tables.
//
// A version is a file as goose has them, 00001_orders.sql, whose statements name
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
// PostgreSQL's COMMENT ON TABLE and COLUMN are read; each other statement is
// [ErrStatement], and nothing of any version is sent then. Only names are replaced, all
// else reaches the database as it is written. Tables that a statement names beside its own, as REFERENCES does,
// must be broadcast or lie in the same database slot for slot (tables of one
// group). A name that a database has once gets "_" and the physical table's name
// at its end, as gormplugin.Migrate does it: those of indexes on PostgreSQL and SQLite, of
// all constraints on PostgreSQL, and of foreign keys and CHECK constraints on MySQL and MariaDB. An index or a
// constraint can be dropped by its logical name where one of the files names it as it is made.
//
// # Promise
//
// Each database has a table, shardid_ddl, in which a statement is noted for each
// physical table before it is sent and after it was done. So Up goes on where it was
// broken off: by an error, a kill or a shard that cannot be reached. No version begins on
// any shard before the one before is done on all.
//
// On PostgreSQL and SQLite a version and its notes are one transaction in each
// database, unless the file says NO TRANSACTION (which SQLite does not heed). MySQL and
// MariaDB commit each DDL statement by itself; what was in flight at a kill is
// recognised by the definition of the table: as it was noted before, it is sent again; as
// another physical table has it after the statement, it is noted as done, and so is a DROP
// TABLE whose table is gone. The statement is run on the other physical tables first, so
// that one of them can be compared with. Anything else is
// [ErrUnclear], and [Runner.Resolve] takes the operator's answer. A session lock in the
// database keeps a second runner out, and a statement that the server goes on with after
// its client was killed.
//
// # What it does not do
//
// It does not know whether a table is being migrated or its slots are moving
// (schema/migrate notices a changed table, and ends its job). It changes no rows: INSERT and
// UPDATE are refused. A program that routes statements reads columns again when one of
// its statements fails for them.
package versions
