// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"database/sql"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema"
)

func open(t *testing.T, change func(*Config)) *Service {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "ids.db")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"order", "a/b", "item"} {
		if _, err := schema.Seed(t.Context(), db, tag, 1, 1000); err != nil {
			t.Fatal(err)
		}
	}
	cfg := Config{DB: db, Layout: keygen.Twitter(), Namespace: "test", Tags: 10, Batch: 100, Wait: 10 * time.Minute}
	if change != nil {
		change(&cfg)
	}
	s, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func ask(t *testing.T, h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestABatchHasAsManyIDsAsWereAskedFor(t *testing.T) {
	h := open(t, nil).Handler()
	if w := ask(t, h, "/api/segment/batch/order?n=3"); w.Body.String() != `["1","2","3"]` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, n := range []string{"", "0", "-1", "101", "x"} {
		if w := ask(t, h, "/api/snowflake/batch/any?n="+n); w.Code != http.StatusBadRequest {
			t.Errorf("n=%q: %d %s", n, w.Code, w.Body)
		}
	}
}

// The first use of a guarded tag is on another server than the stored one, which is none.
func TestAGuardedServerSkipsTenStepsOnAnotherServer(t *testing.T) {
	s := open(t, func(c *Config) { c.Guarded = true })
	if w := ask(t, s.Handler(), "/api/segment/get/order"); w.Body.String() != "10001" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if _, err := s.cfg.DB.Exec("UPDATE worker_namespace SET identity = 'another' WHERE namespace = 'leaf_alloc'"); err != nil {
		t.Fatal(err)
	}
	next, err := New(t.Context(), s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if w := ask(t, next.Handler(), "/api/segment/get/order"); w.Body.String() != "21001" { // a segment has 1000 ids
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

func TestTagsAreBounded(t *testing.T) {
	h := open(t, func(c *Config) { c.Tags = 1 }).Handler()
	for range 3 { // those that are unknown take no room
		ask(t, h, "/api/segment/get/nobody")
	}
	if w := ask(t, h, "/api/segment/get/order"); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(t, h, "/api/segment/get/item"); w.Code != 500 || !strings.Contains(w.Body.String(), "raise --tags") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestMetricsAndThePageShowTagsOnceTheyAreOpen(t *testing.T) {
	h := open(t, nil).Handler()
	if w := ask(t, h, "/readyz"); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	ask(t, h, "/api/segment/get/order")
	ask(t, h, "/api/snowflake/get/x")
	w := ask(t, h, "/metrics")
	for _, line := range []string{`shardid_ids_issued_total{generator="order"} 1`, `shardid_ids_issued_total{generator="default"} 1`} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("no %s in %s", line, w.Body)
		}
	}
	for _, path := range []string{"/status/", "/status/status.json", "/livez", "/readyz"} {
		if w := ask(t, h, path); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestATagWithTheNameOfTheSnowflakeGeneratorHidesNoMetrics(t *testing.T) {
	s := open(t, nil)
	for _, tag := range []string{"default", "tag default"} {
		if _, err := schema.Seed(t.Context(), s.cfg.DB, tag, 1, 1000); err != nil {
			t.Fatal(err)
		}
	}
	h := s.Handler()
	for _, path := range []string{"/api/segment/get/default", "/api/segment/get/tag%20default", "/api/snowflake/get/x", "/status/", "/readyz"} {
		if w := ask(t, h, path); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, name := range []string{"default", "tag default", "tag " + "tag default"} {
		if w := ask(t, h, "/metrics"); !strings.Contains(w.Body.String(), `shardid_ids_issued_total{generator="`+name+`"} 1`) {
			t.Errorf("no %s in %d %s", name, w.Code, w.Body)
		}
	}
}

func TestAServerWithoutTheTablesIsNotReadyAndSaysHowToCreateThem(t *testing.T) {
	s := open(t, nil)
	drop := func(tables ...string) {
		t.Helper()
		for _, table := range tables {
			if _, err := s.cfg.DB.Exec("DROP TABLE " + table); err != nil {
				t.Fatal(err)
			}
		}
	}
	drop("worker_lease", "worker_namespace") // Leaf's database has only leaf_alloc
	if w := ask(t, s.Handler(), "/readyz"); w.Code != http.StatusOK || s.Check(t.Context()) != nil {
		t.Errorf("%d %s, %v", w.Code, w.Body, s.Check(t.Context()))
	}
	drop("leaf_alloc")
	if w := ask(t, s.Handler(), "/readyz"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "shardid schema") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "shardid schema") {
		t.Error(err)
	}
}

func TestAServerWithTablesOfLeasesAloneIsReady(t *testing.T) {
	s := open(t, nil)
	if _, err := s.cfg.DB.Exec("DROP TABLE leaf_alloc"); err != nil {
		t.Fatal(err)
	}
	if w := ask(t, s.Handler(), "/readyz"); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
