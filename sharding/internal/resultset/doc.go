// SPDX-License-Identifier: Apache-2.0

// Package resultset gives a program rows that no single connection of a driver returns: merged rows of several shards,
// rows that are held in memory, rows of a pool's prepared statement, rows whose columns are renamed, and rows with the
// values of another protocol of MySQL.
//
// A program sees what its driver would have returned for one table: the names and types of the columns, the form of
// the values, and nothing after an error.
package resultset
