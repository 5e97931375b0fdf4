// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	runDirPrefix = "shardid-server-"
	dataName     = "data"
)

// runDir is the temporary directory of one server. A lock in it shows that its
// owner runs. The kernel releases the lock of a killed process, and the
// next process then removes the directory.
type runDir struct {
	path  string
	owner *fileLock
}

// newRunDir makes the directory in the temporary directory under a hidden name and renames it after it
// is locked, so that no process regards it as abandoned.
func newRunDir(kind string) (*runDir, error) {
	base, err := filepath.EvalSymlinks(os.TempDir()) // as the server will report it
	if err != nil {
		return nil, fmt.Errorf("find the temporary directory: %w", err)
	}
	return newRunDirIn(base, kind)
}

func newRunDirIn(base, kind string) (*runDir, error) {
	removeAbandoned(base)
	hidden, err := os.MkdirTemp(base, "."+runDirPrefix+kind+"-")
	if err != nil {
		return nil, fmt.Errorf("make the server's directory: %w", err)
	}
	owner, err := tryLock(ownerFile(hidden))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the server's directory: %w", err), os.RemoveAll(hidden))
	}
	dir := &runDir{path: shown(hidden), owner: owner}
	if err := os.Rename(hidden, dir.path); err != nil {
		owner.release()
		return nil, errors.Join(fmt.Errorf("name the server's directory: %w", err), os.RemoveAll(hidden))
	}
	return dir, nil
}

// remove removes the directory. It may be called twice. It renames the directory to a hidden name
// first. Otherwise another process could lock a new file there after the lock file is
// removed.
func (d *runDir) remove() error {
	defer d.owner.release()
	hidden := filepath.Join(filepath.Dir(d.path), "."+filepath.Base(d.path))
	if err := os.Rename(d.path, hidden); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the server's directory: %w", err)
	}
	freeSharedMemory(filepath.Join(hidden, dataName))
	if err := os.RemoveAll(hidden); err != nil {
		return fmt.Errorf("remove the server's directory: %w", err)
	}
	return nil
}

// removeAbandoned removes the directories of killed processes. It cannot lock directories in use, nor
// those of other users, and does not remove them.
func removeAbandoned(base string) {
	paths, err := filepath.Glob(filepath.Join(base, runDirPrefix+"*"))
	if err != nil {
		panic("bug: " + err.Error()) // only a malformed pattern fails
	}
	for _, path := range paths {
		owner, err := tryLock(ownerFile(path))
		if err != nil {
			continue
		}
		dir := &runDir{path, owner}
		dir.end()
		_ = dir.remove() // an error of the cleanup must not fail the current test
	}
}

// end kills what runs in a directory whose owner was killed, since some of a server's processes may
// not have noticed yet, and removes the directories in it.
func (d *runDir) end() {
	killAllIn(d.data())
	removeAbandoned(d.data())
}

func (d *runDir) data() string { return filepath.Join(d.path, dataName) }

func ownerFile(dir string) string { return filepath.Join(dir, "owner.lock") }

func shown(hidden string) string {
	return filepath.Join(filepath.Dir(hidden), strings.TrimPrefix(filepath.Base(hidden), "."))
}

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
