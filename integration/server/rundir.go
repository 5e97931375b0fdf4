// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const runDirPrefix = "shardid-server-"

// runDir is the temporary directory of one server. A lock in it says that its
// owner lives: the kernel drops the lock of a process that was killed, and the
// next process removes the directory.
type runDir struct {
	path  string
	owner *fileLock
}

// newRunDir makes the directory under a hidden name and shows it only once it
// is locked, so that nobody takes it for an abandoned one.
func newRunDir(kind string) (*runDir, error) {
	base, err := filepath.EvalSymlinks(os.TempDir()) // as the server will report it
	if err != nil {
		return nil, fmt.Errorf("find the temporary directory: %w", err)
	}
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

// remove removes the directory. It may be called twice. The directory is hidden
// first: removing the lock file from a visible one would let another process
// lock a new file there in the middle of it.
func (d *runDir) remove() error {
	defer d.owner.release()
	hidden := filepath.Join(filepath.Dir(d.path), "."+filepath.Base(d.path))
	if err := os.Rename(d.path, hidden); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the server's directory: %w", err)
	}
	if err := os.RemoveAll(hidden); err != nil {
		return fmt.Errorf("remove the server's directory: %w", err)
	}
	return nil
}

// removeAbandoned removes what killed processes left. Directories in use, and
// those of other users, cannot be locked and are left alone.
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
		killAllIn(dir.data()) // some of the server's processes may not have noticed yet
		_ = dir.remove()      // tidying up must not fail the test at hand
	}
}

func (d *runDir) data() string { return filepath.Join(d.path, "data") }

func ownerFile(dir string) string { return filepath.Join(dir, "owner.lock") }

func shown(hidden string) string {
	return filepath.Join(filepath.Dir(hidden), strings.TrimPrefix(filepath.Base(hidden), "."))
}
