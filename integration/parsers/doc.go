// SPDX-License-Identifier: Apache-2.0

// Package parsers compares internal/sqlparse with other parsers: with marino for MySQL
// and MariaDB, and with meyer for SQLite.
//
// For each text, sqlparse must either say that it cannot read it, or agree with the other
// parser on:
//
//   - the tables, each as often as it is named;
//   - the columns, so that sqlparse overlooks none;
//   - the conditions on columns that hold for every row: sqlparse may know fewer of
//     them, never one that the other parser does not see;
//   - the number of parameters, and which of them each condition uses;
//   - the number of rows of VALUES.
package parsers
