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

// Replace replaces the content of a file, or makes it. When it returns nil the
// new content is on disk; after an error the old one may be, or the new one.
func Replace(name string, content []byte) error {
	dir := filepath.Dir(name)
	temp, err := os.CreateTemp(dir, filepath.Base(name)+".*")
	if err != nil {
		return advised(err, name)
	}
	defer func() { _ = os.Remove(temp.Name()) }() // is gone when the rename succeeded
	_, err = temp.Write(content)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), name); err != nil {
		return err
	}
	// The new name is on disk once the directory is synced.
	d, err := os.Open(dir) //nolint:gosec // the operator says where the file lies
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// advised adds what to do about a file that cannot be made for want of its directory,
// which might be a mount that is missing: it is not made here.
func advised(err error, name string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; make the directory %s, on a local disk that outlives the process", err, filepath.Dir(name))
	}
	return err
}

// Sum returns the CRC-32 of a value's JSON. A record keeps the sum of itself
// with a sum of 0, so that a damaged file is noticed.
func Sum(v any) uint32 {
	text, err := json.Marshal(v)
	if err != nil {
		panic("bug: a record that cannot be written as JSON: " + err.Error())
	}
	return crc32.ChecksumIEEE(text)
}
