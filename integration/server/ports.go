// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// portRange is a range of consecutive ports.
type portRange struct{ first, count int }

// Ports are picked below the range from which Linux (from 32768) and macOS
// (from 49152) take those of outgoing connections; otherwise a client's connection could
// occupy a killed server's port before the server starts again.
var (
	serverPorts = portRange{20000, 10000}
	memberPorts = portRange{30000, 2000} // on which the members of a cluster listen for each other
)

// portClaims are the ports that belong to the servers of this process. A port is claimed
// for as long as its server may start again, so that no other server listens on it while
// its own is killed.
//
// A claim is a lock of the byte at the port's offset in a file that all processes
// share; the kernel releases the locks of a process that ends.
type portClaims struct {
	mu   sync.Mutex
	file *os.File // is never closed, because that would release all locks of this process
	held map[int]bool
}

var claims = portClaims{held: map[int]bool{}}

// claim returns a port of the range that no process has claimed. Another program may
// listen on it.
func (c *portClaims) claim(in portRange) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		cache, err := cacheDir() // one for all runs, whatever their temporary directories are
		if err != nil {
			return 0, err
		}
		file, err := os.OpenFile(filepath.Join(cache, "ports.lock"), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return 0, fmt.Errorf("open the file of the ports that are in use: %w", err)
		}
		c.file = file
	}
	offset := rand.IntN(in.count)
	for n := range in.count {
		port := in.first + (offset+n)%in.count
		if !c.held[port] && c.lock(port, syscall.F_WRLCK) == nil {
			c.held[port] = true
			return port, nil
		}
	}
	return 0, fmt.Errorf("all ports from %d to %d are claimed by running tests", in.first, in.first+in.count-1)
}

// release gives the port up. A port that is not claimed is left as it is.
func (c *portClaims) release(port int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[port] {
		delete(c.held, port)
		_ = c.lock(port, syscall.F_UNLCK) // the lock ends with the process at the latest
	}
}

func (c *portClaims) lock(port int, kind int16) error {
	one := &syscall.Flock_t{Type: kind, Whence: io.SeekStart, Start: int64(port), Len: 1}
	return syscall.FcntlFlock(c.file.Fd(), syscall.F_SETLK, one)
}
