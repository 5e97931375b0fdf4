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
)

// errAlone: the process that started this one has gone.
var errAlone = errors.New("the process that started the run has gone; everything in it was killed")

// serve is run with servers that all packages share.
func serve(cmd *exec.Cmd) (code int, err error) {
	servers, err := server.StartShared(context.Background())
	if err != nil {
		return 1, err
	}
	defer servers.Stop()
	cmd.Env = append(os.Environ(), servers.Environment())
	return run(cmd)
}

// run runs a command in a process group of its own and leaves none of it. A guard
// leads the group, for when this process is killed itself.
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
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }() // ESRCH: nobody is left
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return codeOf(err)
		case s := <-stop:
			return 1, errors.New("ended by signal " + s.String())
		case <-look.C:
			if os.Getppid() != parent {
				return 1, errAlone
			}
		}
	}
}

// guardVerb is what run calls this program with.
const guardVerb = "guard"

// guard runs the command of a run in the run's process group, of which it leaves
// nothing when the run has gone, itself included.
func guard(cmd *exec.Cmd) (code int, err error) {
	run := os.Getppid()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return codeOf(err)
		case <-look.C:
			if os.Getppid() != run {
				return 1, errors.Join(errAlone, syscall.Kill(0, syscall.SIGKILL))
			}
		}
	}
}
