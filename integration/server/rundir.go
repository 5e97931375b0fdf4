// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
