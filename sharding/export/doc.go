// SPDX-License-Identifier: Apache-2.0

// Package export translates a sharding configuration into the terms of the systems to which a team
// may move: Vitess, Apache ShardingSphere, Citus and TiDB.
//
// # Promise
//
// An export is exact or it is refused. If the other system routes by its own rules (Vitess,
// ShardingSphere), it places each row of each key where the router does, or the error says which
// table cannot be expressed in that system, why, and what to do instead. Citus and TiDB place rows
// themselves, so their exports are the statements that create the tables; tables that may be joined
// can still be joined.
//
//	files, err := export.Vitess(router, export.VitessConfig{Keyspace: "shop"})
//
// No export writes to a database. [CheckVitessRows] reads the shards and finds rows that Vitess
// would lose, and [Spider] reads the columns. An [Export] consists of a few small files, and of
// notes on what they cannot express. [VitessAdoption] writes the statements that turn live tables
// into those of Vitess without a copy.
//
// [FDW] and [Spider] move nothing: one PostgreSQL, or one MariaDB, reads the live shards as single
// tables.
//
// The export to Vitess is tested with Vitess' own vindexes, and that to TiDB on a TiDB. Those to
// ShardingSphere and Citus were checked against golden files, and say so.
//
// # Failure modes
//
// The error joins one [RefusedError] for each table that cannot be exported. There is no export
// then, because half of a configuration would be wrong.
package export
