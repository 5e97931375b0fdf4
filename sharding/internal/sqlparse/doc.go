// Package sqlparse reads the text of one SQL statement into a tree.
//
// It reads what moves rows: SELECT, INSERT, REPLACE, UPDATE and DELETE, with
// WITH, UNION, joins and subqueries, as MySQL, MariaDB, SQLite and PostgreSQL
// write them. It promises that
//
//   - every node has the bytes of the text that it was read from, so that a
//     caller can replace a name and leave every other byte as it was written;
//   - it never guesses. A statement that it does not know is [Unknown], an
//     expression that it does not know is [Opaque]; both name everything in them
//     that could be a table, a column, a parameter or a subquery;
//   - the tree depends on the text and the [Dialect] alone: there is no
//     database, no clock and no configuration.
//
// It does not know types, functions or columns, and evaluates nothing: what a
// tree proves about a row is the planner's business.
package sqlparse
