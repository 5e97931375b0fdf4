// SPDX-License-Identifier: Apache-2.0

//go:build unix

package statefile

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Lock opens a file that is not locked, neither by another process nor by another caller in this
// one, and locks it. The lock ends when the file is closed, or with the process; the file remains.
func Lock(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the operator chooses the file
	if err != nil {
		return nil, advised(err, name)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errors.New("this process or another process has locked it; use a separate file for each user")
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
	}
	return f, nil
}
