// SPDX-License-Identifier: Apache-2.0

// Command testrun keeps a run of the tests in hand: nothing of it outlives the run,
// and a test that hangs is found and shown.
//
//	testrun run COMMAND ARG...
//
// runs the whole: the command and what it starts are killed when the command ends,
// when testrun gets a signal, and when the process that started testrun has gone.
//
//	testrun serve COMMAND ARG...
//
// is run with a server each of MariaDB, MySQL and PostgreSQL, which the packages
// share; see server.ShareMariaDB.
//
//	go test -json -exec "testrun watch 1h" ./...
//
// runs one test binary in it. A binary that has written nothing for that long, as
// no test began or ended, is asked for its goroutines with SIGQUIT, which ends it.
// It is killed when the go command or the run that it belongs to has gone.
//
// The exit code is that of the command. The package needs a Unix system.
package main
