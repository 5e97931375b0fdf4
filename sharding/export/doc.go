// SPDX-License-Identifier: Apache-2.0

// Package export says a sharding configuration in the terms of the systems that
// a team may move on to: Vitess, Apache ShardingSphere, Citus and TiDB.
//
// # Promise
//
// An export is exact or it is refused. Where the other system routes by rules of
// its own (Vitess, ShardingSphere), each row of each key belongs there where the
// router puts it, or the error says which table cannot be said in that system's
// terms, why, and what would do instead. Citus and TiDB place rows by
// themselves, so their exports are the statements that make the tables; what is
// promised is that tables which may be joined stay joinable.
//
//	files, err := export.Vitess(router, export.VitessConfig{Keyspace: "shop"})
//
// Nothing is written to any database. [CheckVitessRows] reads: it looks for
// rows that are there already and that Vitess loses; and [Spider] reads the columns. An [Export] is a handful of
// small files, and notes on what they cannot carry. [VitessAdoption] writes the
// statements by which live tables become Vitess' without a copy.
//
// [FDW] and [Spider] move nothing: one PostgreSQL, or one MariaDB, reads the live shards as
// single tables.
//
// The export to Vitess is tested against Vitess' own vindexes, and that to TiDB on a TiDB.
// Those to ShardingSphere and Citus were checked against golden files, and say so.
//
// # Failure modes
//
// The error joins one [RefusedError] for each table that cannot be exported, and
// there is no export then: half of a configuration would be approximate.
package export
