// Package serve runs shardid serve as a program, on real servers.
package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// instance is a running shardid serve.
type instance struct {
	cmd *exec.Cmd
	url string
}

// build compiles the program.
func build(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "shardid")
	compile := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/shardid")
	compile.Dir = "../.."
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

var listening = regexp.MustCompile(`address=(127\.0\.0\.1:\d+)`)

// start returns once the program listens. It is killed when ctx ends.
func start(ctx context.Context, program, dsn string, flags ...string) (*instance, error) {
	cmd := exec.CommandContext(ctx, program, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
	cmd.Env = []string{"SHARDID_SOURCE=" + dsn}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(stderr)
	line, err := lines.ReadString('\n')
	at := listening.FindStringSubmatch(line)
	if at == nil {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("it does not listen: %w in %q; %w", err, line, cmd.Wait())
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return &instance{cmd, "http://" + at[1]}, nil
}

// end sends a signal and waits for the program, which fails by SIGKILL alone.
func (i *instance) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := i.cmd.Process.Signal(signal); err != nil {
		t.Error(err)
	}
	if err := i.cmd.Wait(); (err != nil) != (signal == syscall.SIGKILL) {
		t.Errorf("%v after %v", err, signal)
	}
}

func get(ctx context.Context, url string) (body string, status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return string(text), answer.StatusCode, err
}
