// SPDX-License-Identifier: Apache-2.0

// Package database opens what a user names on the command line: a SQLite file,
// or a database on a server of MySQL, MariaDB or PostgreSQL.
//
// # Promise
//
// Files are opened read-only and are never created. A password appears in no
// error, whatever the name looks like and whatever the driver says about it.
//
// # Failure modes
//
// A name that cannot be read, a file that is missing or no database, and a
// server that does not answer within five seconds or does not let the user in
// are *input.Errors.
package database
