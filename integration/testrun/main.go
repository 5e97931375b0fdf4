// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// runVar is the process id of the run, for the test binaries in it.
const runVar = "SHARDID_TEST_RUN"

// lookEvery is the time between two checks whether a process still runs.
const lookEvery = 500 * time.Millisecond

func main() {
	code, err := testrun(os.Args[1:])
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	os.Exit(code)
}

func testrun(args []string) (code int, err error) {
	switch {
	case len(args) >= 2 && args[0] == "run":
		return run(exec.Command(args[1], args[2:]...)) //nolint:noctx // it is what the caller asked for, and is ended by run
	case len(args) >= 2 && args[0] == guardVerb:
		return guard(exec.Command(args[1], args[2:]...)) //nolint:noctx // as above
	case len(args) >= 2 && args[0] == "serve":
		return serve(exec.Command(args[1], args[2:]...)) //nolint:noctx // as above
	case len(args) >= 3 && args[0] == "watch":
		silence, err := time.ParseDuration(args[1])
		if err != nil {
			return 2, err
		}
		return watch(exec.Command(args[2], args[3:]...), silence) //nolint:noctx // as above
	default:
		return 2, errors.New("usage: testrun run|serve COMMAND ARG... | testrun watch DURATION BINARY ARG")
	}
}

// codeOf returns the exit code for the error of a command.
func codeOf(ended error) (code int, err error) {
	var exit *exec.ExitError
	switch {
	case ended == nil:
		return 0, nil
	case errors.As(ended, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode(), nil
	default:
		return 1, ended
	}
}
