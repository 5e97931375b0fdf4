// SPDX-License-Identifier: Apache-2.0

// Package parsers reads SQL with internal/sqlparse and with other parsers, and tells
// where they see different things: marino reads as MySQL and MariaDB do, meyer as
// SQLite does.
//
// What they see has to be what sqlparse sees, or sqlparse has to say that it cannot
// read the text:
//
//   - the tables, each as often as it is named;
//   - the columns, so that none hides where nobody looks for it;
//   - the conditions on columns that hold for every row: sqlparse may know fewer of
//     them, never one that the other parser does not see;
//   - how many parameters there are, and which of them a condition takes;
//   - how many rows VALUES has.
package parsers
