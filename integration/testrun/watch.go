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

// shown is what a test binary has to write down its goroutines.
const shown = time.Minute

// watch runs a test binary that writes a line whenever a test begins or ends.
func watch(cmd *exec.Cmd, silence time.Duration) (code int, err error) {
	alone := orphaned(os.Getppid(), os.Getenv(runVar))
	out := &heard{Writer: os.Stdout, something: make(chan struct{}, 1)}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, out, os.Stderr
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	hung := time.NewTimer(silence)
	defer hung.Stop()
	for {
		select {
		case err := <-ended:
			return codeOf(err)
		case <-out.something:
			hung.Reset(silence)
		case <-hung.C:
			_ = cmd.Process.Signal(syscall.SIGQUIT)
			time.AfterFunc(shown, func() { _ = cmd.Process.Kill() })
			return 2, errors.Join(fmt.Errorf("no test began or ended for %v: it hangs, and its goroutines are above", silence), ignore(<-ended))
		case <-look.C:
			if alone() {
				_ = cmd.Process.Kill()
				return 1, errors.Join(errAlone, ignore(<-ended))
			}
		}
	}
}

// ignore drops how a process ended that was told to end.
func ignore(error) error { return nil }

// orphaned tells whether the go command, or the run, has gone.
func orphaned(parent int, run string) func() bool {
	pid, err := strconv.Atoi(run)
	return func() bool {
		return os.Getppid() != parent || err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
}

// heard passes on what is written and tells of it.
type heard struct {
	io.Writer

	something chan struct{}
}

func (h *heard) Write(text []byte) (int, error) {
	select {
	case h.something <- struct{}{}:
	default:
	}
	return h.Writer.Write(text)
}
