// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema"
)

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
// closes half when half of the rounds are over, or it ends earlier.
func (l *ledger) load(t *testing.T, url string, half chan<- struct{}) (done int) {
	reach := sync.OnceFunc(func() { close(half) })
	defer reach()
	for i := range rounds {
		if i == rounds/2 {
			reach()
		}
		for _, kind := range []string{"segment", "snowflake"} {
			id, status, err := get(t.Context(), url+"/api/"+kind+"/get/order", "")
			if err != nil {
				return i
			}
			if status != http.StatusOK {
				t.Errorf("%d %s", status, id)
				return i
			}
			l.note(kind, id)
			text, _, err := get(t.Context(), url+"/api/"+kind+"/batch/order?n=20", "")
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
	t.Run("MariaDB", func(t *testing.T) { killUnderLoad(t, server.ShareMariaDB(t), "") })
	t.Run("PostgreSQL", func(t *testing.T) { killUnderLoad(t, server.SharePostgres(t), "?sslmode=disable") })
}

// databases is a server that makes databases.
type databases interface {
	Open(tb testing.TB, database string) *sql.DB
	DSN(database string) string
}

func killUnderLoad(t *testing.T, on databases, settings string) {
	t.Helper()
	prepare(t, on.Open(t, "serve"))
	ids := ledger{seen: map[string]bool{}}
	var work sync.WaitGroup
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, 0, 0} {
		work.Go(func() { ids.life(t, on.DSN("serve")+settings, end) })
	}
	work.Wait()
	if len(ids.twice) > 0 {
		t.Errorf("%d ids came twice: %v", len(ids.twice), ids.twice[:min(10, len(ids.twice))])
	}
	if len(ids.seen) < 4*rounds*42 {
		t.Errorf("%d ids only", len(ids.seen))
	}
}

// rounds are how often a server is asked for 42 ids.
const rounds = 200

// prepare makes the tables, and the tag order.
func prepare(t *testing.T, db *sql.DB) {
	t.Helper()
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Seed(t.Context(), db, "order", 1, 100); err != nil {
		t.Fatal(err)
	}
}

// life loads a server, ends it by a signal while it works, and loads the next one. A busy
// machine may take as long as it needs for an answer.
func (l *ledger) life(t *testing.T, dsn string, end syscall.Signal) {
	for _, signal := range []syscall.Signal{end, 0} {
		one, err := start(t.Context(), server.Command(t), dsn, "--wait", "10m", "--grace", "10m")
		if err != nil {
			t.Error(err)
			return
		}
		half, done := make(chan struct{}), make(chan int, 1)
		go func() { done <- l.load(t, one.url, half) }()
		<-half
		if signal != 0 {
			one.end(t, signal)
			<-done
			continue
		}
		if n := <-done; n != rounds {
			t.Errorf("a server that nobody ended gave ids for %d rounds of %d", n, rounds)
		}
		scrape(t, one.url)
		look(t, one.url)
		one.end(t, syscall.SIGTERM)
	}
}

var sample = regexp.MustCompile(`^(shardid_[a-z_]+)\{[^}]*\} (\S+)$`)

// look reads the status page: the tag, and the lease of the server's worker id, come from
// the database.
func look(t *testing.T, url string) {
	t.Helper()
	text, status, err := get(t.Context(), url+"/status/status.json", "")
	if err != nil || status != http.StatusOK || !strings.Contains(text, `"order"`) || !strings.Contains(text, `"shardid"`) {
		t.Errorf("%d %v %s", status, err, text)
	}
	if page, status, err := get(t.Context(), url+"/status/", ""); err != nil || status != http.StatusOK || !strings.Contains(page, "order") {
		t.Errorf("%d %v %s", status, err, page)
	}
}

// scrape reads the metrics as Prometheus' text format.
func scrape(t *testing.T, url string) {
	text, status, err := get(t.Context(), url+"/metrics", "")
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
