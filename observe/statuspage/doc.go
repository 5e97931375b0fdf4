// SPDX-License-Identifier: Apache-2.0

// Package statuspage shows a service to people: its generators, the segments and worker ids
// that its database has given, where slots and rows lie, its statements and migrations.
//
// # Promise
//
// The page only reads. It takes GET and HEAD, loads nothing from elsewhere, runs no script,
// and says so in its Content-Security-Policy. It works under any prefix. Everything on it
// stands in status.json beside it too, whose fields are not changed, only added to.
//
// It shows names of hosts, databases and tables, and the errors of databases. Mount it
// behind the program's own authentication.
package statuspage
