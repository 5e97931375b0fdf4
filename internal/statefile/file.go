// SPDX-License-Identifier: Apache-2.0

package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace replaces the content of a file, or creates it. If it returns nil, the new content is on
// disk; after an error the old or the new content may be.
func Replace(name string, content []byte) error {
	dir := filepath.Dir(name)
	temp, err := os.CreateTemp(dir, filepath.Base(name)+".*")
	if err != nil {
		return advised(err, name)
	}
	defer func() { _ = os.Remove(temp.Name()) }() // does not exist after a successful rename
	_, err = temp.Write(content)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), name); err != nil {
		return err
	}
	// The new name is on disk once the directory is synced.
	d, err := os.Open(dir) //nolint:gosec // the operator chooses the file
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Holds returns true while the name of a file that [Lock] returned leads to it. When somebody has
// deleted or replaced the file, another process can lock the new one.
func Holds(lock *os.File) bool {
	at, err := os.Stat(lock.Name())
	if err != nil {
		return false
	}
	is, err := lock.Stat()
	return err == nil && os.SameFile(at, is)
}

// advised adds what to do about a file that cannot be created because its directory is missing. The
// directory might be a missing mount, so it is not created here.
func advised(err error, name string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; create the directory %s, on a local disk that outlives the process", err, filepath.Dir(name))
	}
	return err
}

// Sum returns the CRC-32 of a value's JSON. A record stores its own sum, computed with a sum of 0,
// so that a damaged file is detected.
func Sum(v any) uint32 {
	text, err := json.Marshal(v)
	if err != nil {
		panic("bug: a record that cannot be written as JSON: " + err.Error())
	}
	return crc32.ChecksumIEEE(text)
}
