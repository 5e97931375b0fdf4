// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
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
// even if its parent has not waited for it. It reads the names in /proc only: a pattern such as
// /proc/*/cwd would read the directory of each process as well.
func allIn(dir string) []int {
	proc, err := os.Open("/proc")
	if err != nil {
		panic("bug: " + err.Error()) // Linux has it
	}
	defer func() { _ = proc.Close() }()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		panic("bug: " + err.Error()) // as above
	}
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue // no process
		}
		if at, err := os.Readlink("/proc/" + name + "/cwd"); err == nil && (at == dir || strings.HasPrefix(at, dir+"/")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// holdsARun reports whether the files of a run have room in a file system in memory, and its programs
// beside them.
func holdsARun(files string) bool {
	var fs unix.Statfs_t
	if unix.Statfs(files, &fs) != nil {
		return false
	}
	noexec := uint64(fs.Flags)&unix.MS_NOEXEC != 0
	return !noexec && fs.Bavail*uint64(fs.Bsize) >= filesTake && availableMemory() >= filesTake+programsTake
}

// availableMemory is what the kernel estimates that programs can still get, in bytes; 0 where it does not
// tell.
func availableMemory() uint64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "MemAvailable:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " kB")
	kB, err := strconv.ParseUint(number, 10, 54)
	if err != nil {
		return 0
	}
	return kB << 10
}
