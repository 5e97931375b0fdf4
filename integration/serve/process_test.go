// SPDX-License-Identifier: Apache-2.0

// Package serve runs shardid serve as a program, on real servers.
package serve

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/shardid/shardid/integration/server"
)

// instance is a running shardid serve.
type instance struct {
	url string
	log *journal

	process *os.Process
	ended   chan error
}

// start returns once the program listens. It is killed when ctx ends.
func start(ctx context.Context, program, dsn string, flags ...string) (*instance, error) {
	cmd := exec.CommandContext(ctx, program, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
	cmd.Env = []string{"SHARDID_SOURCE=" + dsn, "TZ=UTC"}
	i := &instance{log: newJournal(), ended: make(chan error, 1)}
	cmd.Stderr = i.log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	i.process = cmd.Process
	go func() { i.ended <- cmd.Wait() }()
	listening := regexp.MustCompile(`address=\S+:(\d+)`)
	for {
		if at := listening.FindStringSubmatch(i.log.String()); at != nil {
			i.url = "http://127.0.0.1:" + at[1]
			return i, nil
		}
		select {
		case <-i.log.more:
		case err := <-i.ended:
			return nil, errors.Join(errors.New(i.log.String()), err)
		}
	}
}

// serve starts an instance that is stopped when the test ends.
func serve(t *testing.T, dsn string, flags ...string) *instance {
	t.Helper()
	i, err := start(context.WithoutCancel(t.Context()), server.Command(t), dsn, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		i.end(t, syscall.SIGTERM)
		if t.Failed() {
			t.Log(i.log)
		}
	})
	return i
}

// end sends a signal and waits for the program, which must succeed except after SIGKILL.
func (i *instance) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := i.process.Signal(signal); err != nil {
		t.Error(err)
	}
	if err := <-i.ended; (err != nil) != (signal == syscall.SIGKILL) {
		t.Errorf("%v after %v", err, signal)
	}
}

// ask asks for a path, with the bearer token if there is one.
func (i *instance) ask(t *testing.T, path, token string) (body string, status int) {
	t.Helper()
	body, status, err := get(t.Context(), i.url+path, token)
	if err != nil {
		t.Fatal(err)
	}
	return body, status
}

func get(ctx context.Context, url, token string) (body string, status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", 0, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return string(text), answer.StatusCode, err
}

// journal stores the output of a program.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{} // has something when there is more
}

func newJournal() *journal { return &journal{more: make(chan struct{}, 1)} }

func (j *journal) Write(text []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case j.more <- struct{}{}:
	default:
	}
	return j.text.Write(text)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}
