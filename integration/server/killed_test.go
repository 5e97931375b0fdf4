// SPDX-License-Identifier: Apache-2.0

//go:build linux

package server

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/shardid/shardid/internal/testwait"
)

// childVar makes this test binary start a server of that kind and wait to be
// killed.
const childVar = "SHARDID_SERVER_TEST_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(childVar); name != "" {
		serveUntilKilled(name)
	}
	os.Exit(m.Run())
}

func serveUntilKilled(name string) {
	all, err := kinds()
	for _, k := range all {
		if k.name != name {
			continue
		}
		var i *instance
		if i, err = k.start(context.Background(), nil); err == nil {
			_, _ = fmt.Fprintln(os.Stdout, i.dir.path)
			select {}
		}
	}
	_, _ = fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func TestKilledTestProcessLeavesNoServer(t *testing.T) {
	onEachKind(t, killedProcessLeavesNoServer)
}

func killedProcessLeavesNoServer(t *testing.T, k kind) {
	t.Helper()
	child, dir := startChild(t, k)
	if len(allIn(dir)) == 0 && len(allIn(filepath.Join(dir, "data"))) == 0 {
		t.Errorf("the server does not work in %s", dir)
	}
	killChild(child)
	testwait.Until(t, "the server of the killed process has gone", func() bool {
		return len(allIn(dir)) == 0 && len(allIn(filepath.Join(dir, "data"))) == 0
	})
	RunMariaDB(t)
	assertNoFile(t, dir)
}

func TestDirectoryOfLivingProcessIsLeftAlone(t *testing.T) {
	_, dir := startChild(t, mariadb)
	RunMariaDB(t)
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("another process's server lost its directory: %v", err)
	}
}

// A process of the server that works on a statement does not notice at once
// that the others were killed, and could commit even then.
func TestKillEndsPostgresInTheMiddleOfAStatement(t *testing.T) {
	p := RunPostgres(t)
	db := p.Open(t, "shop")
	mustExec(t, db, "CREATE TABLE orders (id BIGINT PRIMARY KEY)")
	ended := make(chan error)
	go func() {
		_, err := db.ExecContext(t.Context(), "INSERT INTO orders SELECT 1 FROM generate_series(1, 9223372036854775807) s WHERE s < 0")
		ended <- err
	}()
	watcher := p.Open(t, "postgres")
	for queryInt(t, watcher, "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE 'INSERT%' AND state = 'active'") == 0 {
		select {
		case err := <-ended:
			t.Fatalf("the statement ended before anything was killed: %v", err)
		default:
		}
	}
	p.Kill()
	if left := allIn(p.dataDir()); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if err := <-ended; err == nil {
		t.Error("the statement ended well")
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestPostgresLeavesNoSharedMemory(t *testing.T) {
	for name, stop := range map[string]func(t *testing.T) (segment int){
		"when its test stops it": func(t *testing.T) int {
			t.Helper()
			p, err := StartPostgres(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			segment := segmentOf(t, p.dataDir())
			if err := p.Stop(); err != nil {
				t.Error(err)
			}
			return segment
		},
		"when its test process was killed": func(t *testing.T) int {
			t.Helper()
			child, dir := startChild(t, postgres)
			segment := segmentOf(t, filepath.Join(dir, dataName))
			killChild(child)
			RunMariaDB(t)
			return segment
		},
	} {
		t.Run(name, func(t *testing.T) {
			segment := stop(t)
			if _, err := unix.SysvShmCtl(segment, unix.IPC_STAT, new(unix.SysvShmDesc)); err == nil {
				t.Errorf("segment %d is left", segment)
			}
		})
	}
}

// segmentOf returns the segment of shared memory of the server that runs in a data directory.
func segmentOf(t *testing.T, dataDir string) int {
	t.Helper()
	id, ok := sharedMemory(dataDir)
	if !ok {
		t.Fatalf("%s names no shared memory", dataDir)
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, new(unix.SysvShmDesc)); err != nil {
		t.Fatalf("segment %d of a running server: %v", id, err)
	}
	return id
}

// startChild starts a test process with one server and returns the server's
// directory.
func startChild(t *testing.T, k kind) (child *exec.Cmd, dir string) {
	t.Helper()
	child = exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVar+"="+k.name)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killChild(child) })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the child started no server: %v", err)
	}
	return child, strings.TrimSpace(line)
}

func killChild(child *exec.Cmd) {
	_ = child.Process.Kill() // fails when it has ended already
	_ = child.Wait()         // says "signal: killed"
}
