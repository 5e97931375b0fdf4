// SPDX-License-Identifier: Apache-2.0

// Package server starts private database servers for tests and ends them.
//
// # Promise
//
// Every server of MariaDB, MySQL, PostgreSQL, Redis or ZooKeeper is a process
// with its own data and its own loopback port. Only memory limits how many run at
// once. The package does not use servers that already run. The functions that run
// a server stop it when its test ends. On Linux the kernel kills it when the test process is
// killed. If a killed test process leaves data in the temporary directory,
// the next process that starts a server removes it.
//
// Other programs, such as those of Vitess, run in a [Home], which ends them.
//
// Kill sends SIGKILL to every process of the server. Start starts it again on
// the same data and port, so that a test sees the state after a crash.
//
// # Failure modes
//
// When the server's program is not installed the error names the package to
// install. When the server does not start, the error carries the end of its
// error log. A server that does not answer within a minute is an error.
//
// The first use on a machine makes a template of an empty data directory in
// the user's cache directory; later uses copy it. PostgreSQL refuses to run
// as root. When root runs the tests, PostgreSQL runs as the user postgres or,
// if there is none, nobody; this user must have access to the temporary directory.
//
// The package needs Linux or macOS. On systems other than Linux, Kill does not wait for the
// processes of a PostgreSQL server's connections.
package server
