// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	// memoryFiles is the file system in memory that Linux has.
	memoryFiles = "/dev/shm"
	// filesTake is the space that the files of a run of all tests may take, about three
	// times what was measured.
	filesTake = 6 << 30
	// programsTake is the memory that the programs of such a run take beside them.
	programsTake = 4 << 30
)

// Memory is a directory for the temporary files of a run of the tests. It lies in memory, because servers and
// SQLite sync files with each definition of a table and at each commit: on a disk most tests wait for
// that.
type Memory struct{ dir *runDir }

// MakeMemory makes the directory. It returns nil where the machine has not enough memory for it, or no program
// may be started from there. The caller must Remove it.
func MakeMemory() (*Memory, error) {
	if !holdsARun(memoryFiles) {
		return nil, nil
	}
	return makeMemory(memoryFiles)
}

func makeMemory(files string) (*Memory, error) {
	base, err := filepath.EvalSymlinks(files) // as servers will report it
	if err != nil {
		return nil, err
	}
	dir, err := newRunDirIn(base, "files")
	if err != nil {
		return nil, err
	}
	m := &Memory{dir}
	if err := m.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("make a directory in memory: %w", err), m.Remove())
	}
	return m, nil
}

// open lets servers that run as other users in, as the temporary directory does.
func (m *Memory) open() error {
	if err := os.Mkdir(m.Dir(), 0o700); err != nil {
		return err
	}
	return errors.Join(os.Chmod(m.Dir(), 0o777|os.ModeSticky), os.Chmod(m.dir.path, 0o755)) //nolint:gosec // as above
}

// Dir is the directory.
func (m *Memory) Dir() string { return m.dir.data() }

// buildsVar is the variable of the directory in which the go command builds.
const buildsVar = "GOTMPDIR"

// Use makes the directory that of the temporary files of this process and those that it starts. What the go
// command builds stays where it would be: test binaries are large.
func (m *Memory) Use() error {
	if os.Getenv(buildsVar) == "" {
		if err := os.Setenv(buildsVar, os.TempDir()); err != nil {
			return err
		}
	}
	return os.Setenv("TMPDIR", m.Dir())
}

// OnDisk keeps the files of the servers that a test starts on the disk, although those of the run may lie in
// memory. A MariaDB maps its log there, so that no kill loses what was not flushed.
func OnDisk(tb testing.TB) {
	tb.Helper()
	if disk := os.Getenv(buildsVar); disk != "" {
		tb.Setenv("TMPDIR", disk)
	}
}

// Remove removes the directory with all files, and ends the servers that killed processes left in it.
func (m *Memory) Remove() error {
	m.dir.end()
	return m.dir.remove()
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
