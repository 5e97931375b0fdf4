// SPDX-License-Identifier: Apache-2.0

// Package shardid has no code: it says which package does what.
//
// Ids for the rows of tables that have outgrown AUTO_INCREMENT come from a generator:
//
//   - keygen is what all generators have in common, and how an id is printed and read;
//     keygen/snowflake, keygen/cached, keygen/segment, keygen/ticket, keygen/uuid,
//     keygen/objectid, keygen/redisgen and keygen/zookeeper make ids, and keygen/workerid
//     says which worker a process is;
//   - gormplugin fills the primary keys of GORM models on insert, sqlxhook those of sqlx.
//
// Rows are spread over databases and tables by sharding. A router of that package becomes
// one *sql.DB by sharding/shardsql, under GORM, sqlx or plain database/sql.
//
// A live table is moved to sharded ids by schema/migrate, or by the command shardid
// migrate: inspected, copied, followed, compared, switched, and taken back if need be.
// schema makes and checks the tables that generators need, and schema/versions runs one
// DDL on all physical tables.
//
// Metrics, traces, health and a status page are in observe.
//
// The README begins with programs that run.
package shardid
