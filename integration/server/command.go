// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

const commandPackage = "cmd/shardid"

// Command builds the command shardid, as it is released, and returns its path. All tests of a run share
// the file: each test binary asks the go command once, which builds it again only if its sources have changed.
func Command(tb testing.TB) (path string) {
	tb.Helper()
	path, err := buildOnce()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// CommandIn is [Command], with the name shardid in a directory of the test.
func CommandIn(tb testing.TB, dir string) (path string) {
	tb.Helper()
	path = filepath.Join(dir, filepath.Base(commandPackage))
	if err := os.Symlink(Command(tb), path); err != nil {
		tb.Fatal(err)
	}
	return path
}

// buildOnce does not end with the test that calls it first.
var buildOnce = sync.OnceValues(func() (path string, err error) { return buildCommand(context.Background()) })

func buildCommand(ctx context.Context) (path string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	key := sha256.Sum256([]byte(root))
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("shardid-test-command-%d-%x", os.Getuid(), key[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the directory of the command: %w", err)
	}
	lock, err := waitForLock(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return "", fmt.Errorf("wait for the command to be built: %w", err)
	}
	defer lock.release()
	path = filepath.Join(dir, filepath.Base(commandPackage))
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./"+commandPackage)
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0") // and so the same for all
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the command: %w: %s", err, out)
	}
	return path, nil
}

// moduleRoot is the directory above the working directory that has the command's sources.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, commandPackage)); err == nil {
			return at, nil
		}
	}
	return "", fmt.Errorf("no directory above %s has %s: run the tests in a clone of the project", dir, commandPackage)
}
