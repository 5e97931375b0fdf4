package server

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the process when this one is killed, before
// which it had no chance to stop its servers.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
