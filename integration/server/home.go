// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"testing"
)

// Home runs programs that are not servers of this package, that refuse to
// run as root, or that start other programs in the background. They run in a directory of
// their own, as the user nobody if root runs the tests. When the test ends, Home kills
// every process whose working directory is in it.
type Home struct {
	// Dir is the directory. Only root and the user of the home may enter it.
	Dir string

	user *account
}

// NewHome makes a home for a test.
func NewHome(tb testing.TB) *Home {
	tb.Helper()
	dir, err := newRunDir("home")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		killAllIn(dir.data())
		if err := dir.remove(); err != nil {
			tb.Error(err)
		}
	})
	h := &Home{Dir: dir.data()}
	if os.Geteuid() == 0 {
		if h.user, err = nobody(); err != nil {
			tb.Fatal(err)
		}
	}
	if err := os.Mkdir(h.Dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := h.user.takeOver(dir.path); err != nil {
		tb.Fatal(err)
	}
	return h
}

func nobody() (*account, error) {
	found, err := user.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("these programs do not run as root, and there is no user nobody to run them as; add one: %w", err)
	}
	return newAccount(found)
}

// Install copies programs into a directory from which the user of the home may run them,
// and returns the directory. Their owner does not change.
func (h *Home) Install(tb testing.TB, programs ...string) (bin string) {
	tb.Helper()
	bin = filepath.Join(filepath.Dir(h.Dir), "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil { //nolint:gosec // only the user of the home comes here
		tb.Fatal(err)
	}
	for _, from := range programs {
		to := filepath.Join(bin, filepath.Base(from))
		if os.Link(from, to) == nil {
			continue // a hard link, if both are on one file system
		}
		if err := copyProgram(to, from); err != nil {
			tb.Fatal(err)
		}
	}
	return bin
}

func copyProgram(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755) //nolint:gosec // only the user of the home comes here
	if err != nil {
		return err
	}
	if _, err = io.Copy(out, in); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}

// Give makes the user of the home the owner of all files that a test has written there.
func (h *Home) Give(tb testing.TB) {
	tb.Helper()
	if err := h.user.takeOver(h.Dir); err != nil {
		tb.Fatal(err)
	}
}

// Run runs a command in the home until it ends, and returns its output. Programs that it has
// started in the background continue.
func (h *Home) Run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = h.Dir, append(plainEnviron(), env...)
	h.user.run(cmd)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Start starts a program in the home, and kills it when the test ends. Its
// output goes to the file name.log; if the test fails, its log shows the end of the file.
// The channel is closed when the program has ended.
func (h *Home) Start(tb testing.TB, env []string, name string, args ...string) (ended <-chan struct{}) {
	tb.Helper()
	path := filepath.Join(h.Dir, filepath.Base(name)+".log")
	log, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	cmd := exec.Command(name, args...) //nolint:noctx // it ends with the test
	cmd.Dir, cmd.Env = h.Dir, append(plainEnviron(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	h.user.run(cmd)
	proc, err := startProcess(cmd)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		proc.kill()
		if tb.Failed() {
			tb.Logf("%s ends with:\n%s", path, tail(path))
		}
	})
	return proc.done
}
