// SPDX-License-Identifier: Apache-2.0

// Package statuspage is a web page about a service: its generators, the segments and worker ids
// that its database has issued, the places of slots and rows, its statements and migrations.
//
// # Promise
//
// The page only reads. It takes GET and HEAD, loads nothing from other hosts and runs no
// script; its Content-Security-Policy forbids both. It works under any prefix. status.json
// beside it has the same content. Fields may be added to it; existing ones do not change.
//
// It shows names of hosts, databases and tables, and the errors of databases. Mount it
// behind the program's own authentication.
package statuspage
