// SPDX-License-Identifier: Apache-2.0

// Package server starts private database servers for tests and ends them.
//
// # Promise
//
// Every server, of MariaDB, MySQL, PostgreSQL, Redis or ZooKeeper, is a process of
// its own with its own copy of the data, on its own loopback port, as many at once
// as the machine's memory allows. Nothing is assumed to be running and nothing
// outlives the test: the functions that run a server stop it when its test ends,
// failed or not, and on Linux the kernel kills it when the test process itself is
// killed. Data that a killed test process leaves in the temporary directory is
// removed by the next one that starts a server.
//
// Programs that are none of these, such as Vitess', run in a [Home], which ends them.
//
// Kill is kill -9, of every process of the server, and Start starts it again on
// the same data and port, so that a test sees what a crash leaves behind.
//
// # Failure modes
//
// When the server's program is not installed the error names the package to
// install. When the server does not start, the error carries the end of its
// error log. A server that does not answer within a minute is given up.
//
// The first use on a machine makes a template of an empty data directory in
// the user's cache directory; later ones copy it. PostgreSQL refuses to be run
// by root; when root runs the tests, its servers run as the user postgres or,
// without one, nobody, who must be able to reach the temporary directory.
//
// The package needs a Unix system. Beside Linux, Kill does not wait for the
// processes that a PostgreSQL server has for its connections.
package server
