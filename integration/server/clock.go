// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// clockSource is a C library that is loaded before libc. It adds to the wall clock the number of
// microseconds in a file. libfaketime does not work with redis-server, whose allocator
// reads the time before libfaketime is initialised.
const clockSource = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void load(void) {
	const char *path = getenv("SHARDID_CLOCK");
	int fd = path ? open(path, O_RDONLY) : -1;
	void *p = fd < 0 ? MAP_FAILED : mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED) offset = p;
}

int clock_gettime(clockid_t id, struct timespec *t) {
	int failed = syscall(SYS_clock_gettime, id, t);
	if (failed || id != CLOCK_REALTIME || !offset) return failed;
	int64_t micros = t->tv_sec * INT64_C(1000000) + t->tv_nsec / 1000 + *offset;
	t->tv_sec = micros / 1000000;
	t->tv_nsec = micros % 1000000 * 1000;
	return 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
	struct timespec now;
	int failed = clock_gettime(CLOCK_REALTIME, &now);
	t->tv_sec = now.tv_sec;
	t->tv_usec = now.tv_nsec / 1000;
	return failed;
}

time_t time(time_t *t) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (t) *t = now.tv_sec;
	return now.tv_sec;
}
`

// Clock is the wall clock of one server.
type Clock struct {
	file *os.File
	off  time.Duration
}

// RunRedisOnClock is [RunRedis] with a wall clock that the test steps.
func RunRedisOnClock(tb testing.TB, settings ...string) (*Redis, *Clock) {
	tb.Helper()
	r := RunRedis(tb, settings...)
	r.Kill()
	library, err := buildClock(tb.Context(), r.dir.path)
	if err != nil {
		tb.Fatal(err)
	}
	file, err := os.Create(filepath.Join(r.dir.path, "clock"))
	if err == nil {
		err = file.Chmod(0o644) // the server may run as another user
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = file.Close() })
	c := &Clock{file: file}
	c.Step(tb, 0)
	r.environ = []string{"LD_PRELOAD=" + library, "SHARDID_CLOCK=" + file.Name()}
	if err := r.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return r, c
}

// buildClock compiles the library into a directory.
func buildClock(ctx context.Context, dir string) (library string, err error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("a server's clock is set by a library for Linux, and this is %s", runtime.GOOS)
	}
	library = filepath.Join(dir, "clock.so")
	cmd := exec.CommandContext(ctx, "gcc", "-shared", "-fPIC", "-O1", "-o", library, "-x", "c", "-")
	cmd.Stdin = strings.NewReader(clockSource)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile the library that sets a server's clock (`make test` installs gcc): %w\n%s", err, out)
	}
	return library, nil
}

// Step moves the clock by d.
func (c *Clock) Step(tb testing.TB, d time.Duration) {
	tb.Helper()
	c.off += d
	if _, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(c.off.Microseconds())), 0); err != nil {
		tb.Fatal(err)
	}
}
