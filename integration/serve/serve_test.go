// Package serve runs shardid serve as a program, on a MariaDB server.
package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema"
)

// instance is a running shardid serve.
type instance struct {
	cmd *exec.Cmd
	url string
}

var listening = regexp.MustCompile(`address=(127\.0\.0\.1:\d+)`)

func start(t *testing.T, program, dsn string) *instance {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "serve", "--listen", "127.0.0.1:0")
	cmd.Env = []string{"SHARDID_SOURCE=" + dsn}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	line, err := lines.ReadString('\n')
	at := listening.FindStringSubmatch(line)
	if at == nil {
		t.Fatalf("%v in %q", err, line)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return &instance{cmd, "http://" + at[1]}
}

func get(ctx context.Context, url string) (string, int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return string(body), answer.StatusCode, err
}

// ledger notes each id that a client was given.
type ledger struct {
	mu    sync.Mutex
	seen  map[string]bool
	twice []string
}

func (l *ledger) note(kind string, ids ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if l.seen[kind+id] {
			l.twice = append(l.twice, kind+id)
		}
		l.seen[kind+id] = true
	}
}

// load asks an instance, singly and in batches, until rounds are over or it is gone. It
// sends on half when half of the rounds are.
func (l *ledger) load(t *testing.T, url string, rounds int, half chan<- struct{}) (done int) {
	for i := range rounds {
		if i == rounds/2 {
			half <- struct{}{}
		}
		for _, kind := range []string{"segment", "snowflake"} {
			id, status, err := get(t.Context(), url+"/api/"+kind+"/get/order")
			if err != nil {
				return i
			}
			if status != http.StatusOK {
				t.Errorf("%d %s", status, id)
				return i
			}
			l.note(kind, id)
			text, _, err := get(t.Context(), url+"/api/"+kind+"/batch/order?n=20")
			if err != nil {
				return i
			}
			var ids []string
			if err := json.Unmarshal([]byte(text), &ids); err != nil {
				t.Errorf("%v: %s", err, text)
				return i
			}
			l.note(kind, ids...)
		}
	}
	return rounds
}

// TestNoIDComesTwiceWhenServersAreKilledUnderLoad has four servers on one database, of
// which one is killed, one is stopped, and each is followed by another.
func TestNoIDComesTwiceWhenServersAreKilledUnderLoad(t *testing.T) {
	program := filepath.Join(t.TempDir(), "shardid")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/shardid")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	maria := server.ShareMariaDB(t)
	db := maria.Open(t, "serve")
	var name string
	if err := db.QueryRowContext(t.Context(), "SELECT DATABASE()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Seed(t.Context(), db, "order", 1, 100); err != nil {
		t.Fatal(err)
	}
	ids := ledger{seen: map[string]bool{}}
	var work sync.WaitGroup
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, 0, 0} {
		work.Go(func() { ids.life(t, program, maria.DSN(name), end) })
	}
	work.Wait()
	if len(ids.twice) > 0 {
		t.Errorf("%d ids came twice: %v", len(ids.twice), ids.twice[:min(10, len(ids.twice))])
	}
	if len(ids.seen) < 2*300*42 {
		t.Errorf("%d ids only", len(ids.seen))
	}
}

// life loads a server, ends it by a signal while it works, and loads the next one.
func (l *ledger) life(t *testing.T, program, dsn string, end syscall.Signal) {
	const rounds = 300
	for _, signal := range []syscall.Signal{end, 0} {
		one := start(t, program, dsn)
		half, done := make(chan struct{}, 1), make(chan int, 1)
		go func() { done <- l.load(t, one.url, rounds, half) }()
		<-half
		if signal == 0 {
			<-done
			scrape(t, one.url)
			signal = syscall.SIGTERM
		}
		if err := one.cmd.Process.Signal(signal); err != nil {
			t.Error(err)
		}
		if err := one.cmd.Wait(); (err != nil) != (signal == syscall.SIGKILL) {
			t.Errorf("%v after %v", err, signal)
		}
	}
}

var sample = regexp.MustCompile(`^(shardid_[a-z_]+)\{[^}]*\} (\S+)$`)

// scrape reads the metrics as Prometheus' text format.
func scrape(t *testing.T, url string) {
	text, status, err := get(t.Context(), url+"/metrics")
	if err != nil || status != http.StatusOK {
		t.Errorf("%d %v", status, err)
	}
	found := map[string]int{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		m := sample.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			t.Errorf("not a sample: %s", line)
			continue
		}
		found[m[1]]++
	}
	if found["shardid_ids_issued_total"] != 2 || found["shardid_worker_id"] != 1 {
		t.Errorf("%v in %s", found, text)
	}
}
