// SPDX-License-Identifier: Apache-2.0

// Command testrun supervises a run of the tests. It kills all processes of the run when the run ends,
// and prints the goroutines of a test that hangs.
//
//	testrun run COMMAND ARG...
//
// runs the command. It kills the command and all processes that it started when the command ends,
// when testrun gets a signal, and when the parent of testrun has ended.
//
//	testrun serve COMMAND ARG...
//
// does the same, and starts one server each of MariaDB, MySQL and PostgreSQL, which the packages
// share; see server.ShareMariaDB.
//
//	go test -json -exec "testrun watch 1h" ./...
//
// runs one test binary of such a run. If no test begins or ends for an hour, it sends the binary SIGQUIT,
// with which the binary prints its goroutines and ends.
// It kills the binary when the go command or the run has ended.
//
// The exit code is that of the command. The package needs a Unix system.
package main
