// SPDX-License-Identifier: Apache-2.0

// Package restore brings a database server back to the state that it had before a test.
//
// # Promise
//
// Restore removes the databases and the users that a test has made, and ends its connections. It
// returns an error unless the server is as it was then: with the same settings, rights, plugins and
// replication, and without prepared transactions. A server with which Restore failed is not used again.
//
// It does not set back what no test of a new database sees: the numbers of connections and transactions, and the
// content of the server's caches.
package restore
