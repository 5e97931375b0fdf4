// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/shardid/shardid/internal/testwait"
)

func TestWhatAHomeHasStartedEndsWithItsTestAlsoInTheBackground(t *testing.T) {
	var dir string
	t.Run("test", func(t *testing.T) {
		h := NewHome(t)
		dir = h.Dir
		if err := os.Mkdir(filepath.Join(dir, "below"), 0o700); err != nil {
			t.Fatal(err)
		}
		h.Give(t)
		h.Start(t, nil, "sleep", "1000")
		if out, err := h.Run(t.Context(), []string{"LONG=1000"}, "sh", "-c", "cd below; sleep $LONG >out 2>&1 & echo $!"); err != nil || !isRunning(t, out) {
			t.Fatalf("%v: %q", err, out)
		}
		testwait.Until(t, "both run", func() bool { return len(allIn(dir)) == 2 })
	})
	if pids := allIn(dir); len(pids) != 0 {
		t.Errorf("%v still work in %s", pids, dir)
	}
	assertNoFile(t, filepath.Dir(dir))
}

func isRunning(t *testing.T, pid string) bool {
	t.Helper()
	number, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat("/proc/" + strconv.Itoa(number))
	return err == nil
}

func TestProgramsOfAHomeRunAsItsUserAndStayWhoseTheyAre(t *testing.T) {
	h := NewHome(t)
	program := filepath.Join(t.TempDir(), "who")                                            // of a directory that others may not enter
	if err := os.WriteFile(program, []byte("#!/bin/sh\nid -u\npwd\n"), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	before, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(program, 0o755); err != nil { //nolint:gosec // as above
		t.Fatal(err)
	}
	bin := h.Install(t, program)
	h.Give(t)
	want := strconv.Itoa(os.Geteuid())
	if os.Geteuid() == 0 {
		want = strconv.FormatUint(uint64(h.user.uid), 10)
	}
	if out, err := h.Run(t.Context(), nil, filepath.Join(bin, "who")); err != nil || out != want+"\n"+h.Dir+"\n" {
		t.Errorf("%q, %v; want user %s in %s", out, err, want, h.Dir)
	}
	if after, err := os.Stat(program); err != nil || after.Sys() == nil || owner(after) != owner(before) {
		t.Errorf("the program has another owner: %v", err)
	}
}

func owner(info os.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }
