package serve

import (
	"context"
	"database/sql"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
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
	cfg := Config{DB: db, Layout: keygen.Twitter(), Namespace: "test", Tags: 10, Batch: 100, Wait: 5 * time.Second}
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

// LeafController.java, line 44: return String.valueOf(result.getId()).
func TestAnIDIsItsDigitsAsText(t *testing.T) {
	h := open(t, nil).Handler()
	for path, want := range map[string]string{"/api/segment/get/order": "1", "/api/segment/get/a%2Fb": "1", "/api/segment/get/item/": "1"} {
		w := ask(t, h, path)
		if w.Code != http.StatusOK || w.Body.String() != want || w.Header().Get("Content-Type") != "text/plain;charset=UTF-8" {
			t.Errorf("%s: %d %v %q", path, w.Code, w.Header(), w.Body)
		}
	}
	w := ask(t, h, "/api/snowflake/get/whatever")
	id, err := keygen.ParseID(w.Body.String())
	if err != nil {
		t.Fatalf("%v in %q", err, w.Body)
	}
	if parts, err := keygen.Twitter().Parse(int64(id)); err != nil || time.Since(parts.Time).Abs() > time.Minute {
		t.Errorf("%+v, %v", parts, err)
	}
}

// LeafController.java, line 42: throw new LeafServerException(result.toString());
// LeafServerException.java, line 9: @ResponseStatus(code=INTERNAL_SERVER_ERROR);
// SegmentIDGenImpl.java: EXCEPTION_ID_KEY_NOT_EXISTS = -2; the fields are those of
// DefaultErrorAttributes of Spring Boot 1.5.
func TestAnUnknownTagIsLeafsServerException(t *testing.T) {
	h := open(t, nil).Handler()
	for _, path := range []string{"/api/segment/get/nobody", "/api/segment/get/nobody%2F..", "/api/segment/get/%00%ff", "/api/segment/get/" + strings.Repeat("x", 129)} {
		w := ask(t, h, path)
		var body failure
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatalf("%s: %v in %q", path, err, w.Body)
		}
		if time.Since(time.UnixMilli(body.Timestamp)).Abs() > time.Minute || !strings.HasPrefix(body.Message, "Result{id=-2, status=EXCEPTION}: ") {
			t.Errorf("%s: %+v", path, body)
		}
		body.Timestamp, body.Message = 0, ""
		want := failure{0, 500, "Internal Server Error", "com.sankuai.inf.leaf.server.exception.LeafServerException", "", path}
		if w.Code != 500 || body != want {
			t.Errorf("%s: %d %+v", path, w.Code, body)
		}
	}
}

// LeafMonitorController.java, lines 72 to 78 (the example of its comment) and 101.
func TestDecodeAnswersAsLeafs(t *testing.T) {
	h := decode(time.FixedZone("CST", 8*60*60))
	for query, want := range map[string]string{
		"?snowflakeId=1169786042799259000": `{"workerId":"39","sequenceId":"3448","timestamp":"1567733700834(2019-09-06 09:35:00.834)"}`,
		"?snowflakeId=x":                   `{"errorMsg":"snowflake Id反解析发生异常!"}`,
	} {
		if w := ask(t, h, "/decodeSnowflakeId"+query); w.Code != http.StatusOK || w.Body.String() != want {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	if w := ask(t, h, "/decodeSnowflakeId"); w.Code != 400 || !strings.Contains(w.Body.String(), `"message":"Required String parameter 'snowflakeId' is not present"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
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

func TestADatabaseThatIsAwayIsLeafsServerException(t *testing.T) {
	s := open(t, nil)
	if err := s.cfg.DB.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/segment/get/order", "/api/snowflake/get/x", "/api/segment/batch/order?n=2"} {
		if w := ask(t, s.Handler(), path); w.Code != 500 || !strings.Contains(w.Body.String(), leafException) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := ask(t, s.Handler(), "/readyz"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestATokenIsAskedForAndReadAgainWhenItsFileChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	const first, second = "0123456789abcdef-1", "0123456789abcdef-22"
	put := func(token string) {
		if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(first)
	token, err := OpenToken(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, func(c *Config) { c.Token = token }).Handler()
	expect := func(want int, path string, header ...string) {
		t.Helper()
		if w := ask(t, h, path, header...); w.Code != want {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	const id = "/api/segment/get/order"
	expect(401, id)
	expect(401, "/metrics")
	expect(401, id, "Authorization", "Bearer "+second)
	expect(401, id, "Authorization", "Basic "+first)
	expect(200, id, "Authorization", "bearer "+first)
	expect(200, "/livez")
	expect(200, "/readyz")
	put(second)
	expect(401, id, "Authorization", "Bearer "+first)
	expect(200, id, "Authorization", "Bearer "+second)
	put("short")
	expect(401, id, "Authorization", "Bearer short")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect(401, id, "Authorization", "Bearer "+second)
}

func TestOtherMachinesAreNotServedWithoutAToken(t *testing.T) {
	for address, refused := range map[string]bool{"0.0.0.0:0": true, ":0": true, "nonsense": true, "127.0.0.1:0": false, "localhost:0": false} {
		l, err := Listen(t.Context(), address, nil, false)
		if (err != nil) != refused {
			t.Errorf("%s: %v", address, err)
		}
		if err == nil {
			_ = l.Close()
		}
	}
}

func TestARequestUnderWayIsAnsweredWhenTheServerStops(t *testing.T) {
	s := open(t, nil)
	begun, going := make(chan struct{}), make(chan struct{})
	actual := s.segments.open
	s.segments.open = func(ctx context.Context, name string) (generator, error) {
		close(begun)
		<-going
		return actual(ctx, name)
	}
	l, err := Listen(t.Context(), "127.0.0.1:0", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	stopping := make(chan struct{})
	log := slog.New(slog.NewTextHandler(notice(stopping), nil))
	go func() { ended <- s.Run(ctx, l, 10*time.Second, log) }()
	status := make(chan int, 1)
	go func() {
		r, err := http.Get("http://" + l.Addr().String() + "/api/segment/get/order")
		if err != nil {
			t.Error(err)
			status <- 0
			return
		}
		_ = r.Body.Close()
		status <- r.StatusCode
	}()
	<-begun
	stop()
	<-stopping
	close(going)
	if code := <-status; code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// notice is closed by the first message.
type notice chan struct{}

func (n notice) Write(text []byte) (int, error) {
	close(n)
	return len(text), nil
}
