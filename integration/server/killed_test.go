//go:build linux

package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// childVar makes this test binary start a server and wait to be killed.
const childVar = "SHARDID_SERVER_TEST_CHILD"

// testLimit bounds the wait for what happens at once.
const testLimit = 5 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		serveUntilKilled()
	}
	os.Exit(m.Run())
}

func serveUntilKilled() {
	m, err := StartMariaDB(context.Background())
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = fmt.Fprintln(os.Stdout, m.config("").Addr, m.dir.path)
	select {}
}

func TestKilledTestProcessLeavesNoServer(t *testing.T) {
	child, addr, dir := startChild(t)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()

	killChild(child)

	// The connection ends with the server. The server would close an idle one
	// as well, but only after 10 s.
	if err := conn.SetReadDeadline(time.Now().Add(testLimit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
		t.Errorf("%v after its test process was killed the server still runs", testLimit)
	}
	RunMariaDB(t)
	assertNoFile(t, dir)
}

func TestDirectoryOfLivingProcessIsLeftAlone(t *testing.T) {
	_, _, dir := startChild(t)
	RunMariaDB(t)
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("another process's server lost its directory: %v", err)
	}
}

// startChild starts a test process with one server and returns the server's
// address and directory.
func startChild(t *testing.T) (child *exec.Cmd, addr, dir string) {
	t.Helper()
	child = exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVar+"=1")
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
	addr, dir, _ = strings.Cut(strings.TrimSpace(line), " ")
	return child, addr, dir
}

func killChild(child *exec.Cmd) {
	_ = child.Process.Kill() // fails when it has ended already
	_ = child.Wait()         // says "signal: killed"
}
