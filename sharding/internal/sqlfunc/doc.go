// SPDX-License-Identifier: Apache-2.0

// Package sqlfunc knows the functions of MySQL, MariaDB, PostgreSQL and SQLite by their names: which are aggregates, which
// depend only on their arguments, which read the clock, and what their results are. A function that is in no list may do
// anything.
package sqlfunc
