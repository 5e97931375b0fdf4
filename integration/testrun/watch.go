// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// shown is the time that a test binary has to print its goroutines.
const shown = time.Minute

// watch runs a test binary that writes a line whenever a test begins or ends.
func watch(cmd *exec.Cmd, silence time.Duration) (code int, err error) {
	alone := orphaned(os.Getppid(), os.Getenv(runVar))
	silent := make(chan error, 1)
	hung := time.AfterFunc(silence, func() {
		select {
		case silent <- fmt.Errorf("no test began or ended for %v: %w", silence, errHangs):
		default:
		}
	})
	defer hung.Stop()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, heard{os.Stdout, func() { hung.Reset(silence) }}, os.Stderr
	ended, err := start(cmd)
	if err != nil {
		return 1, err
	}
	code, err = wait(ended, alone, silent)
	switch {
	case errors.Is(err, errAlone):
		_ = cmd.Process.Kill()
		err = errors.Join(err, ignore(<-ended))
	case errors.Is(err, errHangs):
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		time.AfterFunc(shown, func() { _ = cmd.Process.Kill() })
		code, err = 2, errors.Join(err, ignore(<-ended))
	}
	return code, err
}

var errHangs = errors.New("it hangs, and its goroutines are above")

// ignore drops the error of a process that was told to end.
func ignore(error) error { return nil }

// orphaned reports whether the go command, or the run, has ended.
func orphaned(parent int, run string) func() bool {
	pid, err := strconv.Atoi(run)
	return func() bool {
		return os.Getppid() != parent || err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
}

// heard passes writes on and reports each of them.
type heard struct {
	io.Writer

	tell func()
}

func (h heard) Write(text []byte) (int, error) {
	h.tell()
	return h.Writer.Write(text)
}
