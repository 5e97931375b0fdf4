// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// fileLock is an exclusive lock between processes. The kernel releases it when
// the process that holds it ends, however it ends.
type fileLock struct{ file *os.File }

// tryLock locks the file at path, making it when it does not exist. It fails
// with EWOULDBLOCK when the lock is held.
func tryLock(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, err
	}
	return &fileLock{file}, nil
}

// waitForLock waits until the lock at path is free or ctx ends.
func waitForLock(ctx context.Context, path string) (*fileLock, error) {
	tick := time.NewTicker(tryEvery)
	defer tick.Stop()
	for {
		lock, err := tryLock(path)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

// release may be called twice.
func (l *fileLock) release() { _ = l.file.Close() }
