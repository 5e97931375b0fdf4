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

// dieWithParent makes the kernel kill the process when this one is killed and so cannot
// stop its servers.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// killAllIn kills the processes whose working directory is in a directory, and returns
// when they have ended. PostgreSQL has a process for each connection, each in its own session.
// They end after they notice that their parent has ended, some only after a query.
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

// allIn lists the processes whose working directory is in a directory. A process that has ended has none,
// even if its parent has not waited for it.
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
