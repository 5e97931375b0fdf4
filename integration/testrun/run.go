// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/effort"
)

// errAlone says that the parent of this process has ended.
var errAlone = errors.New("the process that started the run has gone; everything in it was killed")

// serve is run with servers that all packages share, and with temporary files in memory.
func serve(cmd *exec.Cmd) (code int, err error) {
	if !effort.Soak() { // the long run has more files, and shows that all works on a disk
		memory, err := server.MakeMemory()
		if err != nil {
			return 1, err
		}
		if memory != nil {
			defer func() { _ = memory.Remove() }() // the next run removes what is left
			if err := memory.Use(); err != nil {
				return 1, err
			}
		}
	}
	servers, err := server.StartShared(context.Background())
	if err != nil {
		return 1, err
	}
	defer servers.Stop()
	cmd.Env = append(os.Environ(), servers.Environment())
	return run(cmd)
}

// run runs a command in a process group of its own and then kills the group. A guard process
// leads the group and kills it if this process is killed.
func run(of *exec.Cmd) (code int, err error) {
	parent := os.Getppid()
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	cmd := exec.Command(self, append([]string{guardVerb}, of.Args...)...) //nolint:noctx // it is this program, and ended below
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(of.Environ(), runVar+"="+strconv.Itoa(os.Getpid()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	signals, stop := make(chan os.Signal, 1), make(chan error, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() { stop <- errors.New("ended by signal " + (<-signals).String()) }()
	ended, err := start(cmd)
	if err != nil {
		return 1, err
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }() // ESRCH: no process is left
	return wait(ended, func() bool { return os.Getppid() != parent }, stop)
}

// start starts a command and returns a channel that gets the error of its end.
func start(cmd *exec.Cmd) (ended <-chan error, err error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	return waited, nil
}

// wait waits for a command's end, for an error on stop, or until the parent of this process has
// ended: then the error is errAlone.
func wait(ended <-chan error, alone func() bool, stop <-chan error) (code int, err error) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return codeOf(err)
		case err := <-stop:
			return 1, err
		case <-look.C:
			if alone() {
				return 1, errAlone
			}
		}
	}
}

// guardVerb is the argument with which run starts the guard.
const guardVerb = "guard"

// guard runs the command of a run in the run's process group. When the run has ended, it kills the group,
// including itself.
func guard(cmd *exec.Cmd) (code int, err error) {
	run := os.Getppid()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	ended, err := start(cmd)
	if err != nil {
		return 1, err
	}
	code, err = wait(ended, func() bool { return os.Getppid() != run }, nil)
	if errors.Is(err, errAlone) {
		err = errors.Join(err, syscall.Kill(0, syscall.SIGKILL))
	}
	return code, err
}
