// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// dieWithParent has the kernel kill the process when this one is killed, before
// which it had no chance to stop its servers.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// killAllIn kills the processes that work in a directory or below it and returns
// when they are gone. PostgreSQL's are one for each connection, each in a session of its
// own; they end when they notice that their parent has, some a query later.
func killAllIn(dir string) {
	for {
		pids := allIn(dir)
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
		}
		time.Sleep(time.Millisecond)
	}
}

// allIn lists the processes that work in a directory; one that has ended works
// nowhere, even when nobody has waited for it.
func allIn(dir string) []int {
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		panic("bug: " + err.Error()) // only a malformed pattern fails
	}
	var pids []int
	for _, link := range links {
		if at, err := os.Readlink(link); err != nil || at != dir && !strings.HasPrefix(at, dir+"/") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			panic("bug: " + err.Error()) // the pattern asks for digits
		}
		pids = append(pids, pid)
	}
	return pids
}
