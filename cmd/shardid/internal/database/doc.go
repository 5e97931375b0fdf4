// SPDX-License-Identifier: Apache-2.0

// Package database opens a database that a user names on the command line: a SQLite file,
// or a database on a server of MySQL, MariaDB or PostgreSQL.
//
// # Promise
//
// Files are opened read-only and are never created. A password appears in no error,
// whatever the form of the name and the text of the driver's error.
//
// # Failure modes
//
// These are *input.Errors: a name that cannot be parsed, a file that is missing or not a
// database, and a server that refuses the user. A server that does not answer within five
// seconds, and a file that another process has locked for longer, are none: see Away.
package database
