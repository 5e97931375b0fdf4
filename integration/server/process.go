// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os/exec"
	"runtime"
)

// process is a running child process. Its goroutine ends with the process;
// kill waits for both.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone
	err  error         // how it ended; valid once done is closed
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	dieWithParent(cmd)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	return p, <-started
}

// run stays on one thread while the process runs, because Linux regards the end of
// the thread that started a child as the death of its parent.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	err := p.cmd.Start()
	started <- err
	if err == nil {
		p.err = p.cmd.Wait()
	}
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the process and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only when it has already ended
	<-p.done
}
