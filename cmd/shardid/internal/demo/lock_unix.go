// SPDX-License-Identifier: Apache-2.0

//go:build unix

package demo

import (
	"errors"
	"os"
	"syscall"
)

// lock locks the file for this run, or returns errLocked. The lock ends when the file is
// closed, or with the process.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
