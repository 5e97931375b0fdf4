// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
)

// asVar makes this test binary testrun itself.
const asVar = "SHARDID_TESTRUN_ARGS"

func TestMain(m *testing.M) {
	if args := os.Getenv(asVar); args != "" {
		_ = os.Unsetenv(asVar)
		become(strings.Split(args, "\n"))
	}
	if len(os.Args) > 1 && os.Args[1] == guardVerb {
		become(os.Args[1:])
	}
	if os.Getenv(hangVar) != "" {
		time.Sleep(100 * time.Hour)
	}
	os.Exit(m.Run())
}

// become is main with these arguments.
func become(args []string) {
	code, err := testrun(args)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	os.Exit(code)
}

// hangVar makes this test binary hang.
const hangVar = "SHARDID_TESTRUN_HANG"

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asVar+"="+strings.Join(args, "\n"))
	return cmd
}

func TestTheExitCodeIsThatOfTheCommand(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7} {
		for _, how := range [][]string{{"run"}, {"watch", "1h"}} {
			cmd := command(t, append(how, "sh", "-c", script)...)
			_ = cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != want {
				t.Errorf("%v %s: %d", how, script, got)
			}
		}
	}
	if err := command(t, "walk", "sh").Run(); err == nil {
		t.Error("an unknown verb")
	}
}

// family starts a script below testrun that starts a process in the background,
// says its id, and ends when it can read a line. The script is a child of a shell,
// which is killed.
func family(t *testing.T, how, rest string) (started *exec.Cmd, pids []int) {
	t.Helper()
	cmd := command(t, "run", "sh", "-c", "echo $$; sleep 100000 & echo $!; "+rest)
	if how == "parent" { // of testrun
		cmd = exec.CommandContext(t.Context(), "sh", "-c", os.Args[0]+" & echo $!; wait")
		cmd.Env = append(os.Environ(), asVar+"="+strings.Join([]string{"run", "sh", "-c", "echo $$; sleep 100000 & echo $!; " + rest}, "\n"))
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	want := 2
	if how == "parent" {
		want = 3
	}
	for len(pids) < want && lines.Scan() {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) != want {
		t.Fatalf("got %v", pids)
	}
	return cmd, pids
}

func TestARunKeepsItsTemporaryFilesInMemoryThatItGivesBack(t *testing.T) {
	for _, soak := range []string{"", "1"} {
		serving := command(t, "serve", "sh", "-c", `echo "$TMPDIR"; echo "$GOTMPDIR"; touch "$TMPDIR/left"`)
		disk := t.TempDir()
		if err := os.Chmod(filepath.Dir(disk), 0o755); err != nil { //nolint:gosec // the servers' users must get in
			t.Fatal(err)
		}
		serving.Env = append(serving.Env, "TMPDIR="+disk, "GOTMPDIR=", "SHARDID_SOAK="+soak)
		memory, err := server.MakeMemory()
		if err != nil {
			t.Fatal(err)
		}
		out, err := serving.Output()
		if err != nil {
			t.Fatal(err)
		}
		used, builds, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		if memory == nil || soak != "" {
			if used != disk || builds != "" {
				t.Errorf("files are in %q, what go builds in %q", used, builds)
			}
		} else if _, err := os.Stat(used); used == disk || builds != disk || err == nil {
			t.Errorf("files are in %q, what go builds in %q", used, builds)
		}
		if memory != nil {
			if err := memory.Remove(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestNothingOutlivesARun(t *testing.T) {
	for how, end := range map[string]func(*exec.Cmd) error{
		"command ends": func(*exec.Cmd) error { return nil },
		"killed":       func(c *exec.Cmd) error { return c.Process.Kill() },
		"signal":       func(c *exec.Cmd) error { return c.Process.Signal(syscall.SIGTERM) },
		"parent":       func(c *exec.Cmd) error { return c.Process.Kill() },
	} {
		rest := "wait"
		if how == "command ends" {
			rest = "exit 0"
		}
		cmd, pids := family(t, how, rest)
		if err := end(cmd); err != nil {
			t.Fatal(err)
		}
		for _, pid := range pids {
			testwait.Until(t, how+": process "+strconv.Itoa(pid)+" has gone", func() bool { return gone(pid) })
		}
		_ = cmd.Wait()
	}
}

// gone tells whether a process has ended, be it that nobody has waited for it.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestATestBinaryEndsWithTheRunThatItBelongsTo(t *testing.T) {
	other := exec.CommandContext(t.Context(), "sleep", "100000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	watching := command(t, "watch", "1h", "sleep", "100000")
	watching.Env = append(watching.Env, runVar+"="+strconv.Itoa(other.Process.Pid))
	var said strings.Builder
	watching.Stderr = &said
	if err := watching.Start(); err != nil {
		t.Fatal(err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	if err := watching.Wait(); err == nil || !strings.Contains(said.String(), "has gone") {
		t.Errorf("%v, and it said %s", err, said.String())
	}
}

func TestATestThatHangsShowsItsGoroutines(t *testing.T) {
	cmd := command(t, "watch", "300ms", os.Args[0])
	cmd.Env = append(cmd.Env, hangVar+"=1")
	said, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "SIGQUIT") || !strings.Contains(string(said), "goroutine 1") || !strings.Contains(string(said), "it hangs") {
		t.Errorf("%v: %s", err, said)
	}
}

func TestATestBinaryThatGoesOnIsLeftAlone(t *testing.T) {
	// It is silent for less than the limit each time, and for longer in all.
	out, err := command(t, "watch", "10s", "sh", "-c", "for i in 1 2 3 4 5 6; do echo line; sleep 0.1; done; echo end").CombinedOutput()
	if err != nil || strings.Count(string(out), "line") != 6 || !strings.HasSuffix(string(out), "end\n") {
		t.Errorf("%v: %s", err, out)
	}
}
