// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// reported is a generator with the Stats that a test sets.
type reported struct{ stats keygen.Stats }

func (r *reported) Next(context.Context) (int64, error) { return 1, nil }
func (r *reported) Stats() keygen.Stats                 { return r.stats }

// worded reports, and makes texts.
type worded struct{ reported }

func (w *worded) Next(context.Context) (string, error) { return "a", nil }

func service(t *testing.T, cfg observe.Config) *observe.Service {
	t.Helper()
	s, err := observe.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func one(r *reported) keygen.Set { return keygen.Set{Default: r} }

func text(t *testing.T, s *observe.Service) string {
	t.Helper()
	var b strings.Builder
	if err := observe.WriteText(&b, s.Gather()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func contains(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
}

func TestAGeneratorReportsItsStats(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	leased := &reported{keygen.Stats{Issued: 7, Waits: 2, Failures: 1, Reservations: 3, FailedReserves: 4, LastReservation: 250 * time.Millisecond, Worker: 9, LeasedUntil: at, Expires: at.Add(time.Hour)}}
	counting := &reported{keygen.Stats{Issued: 100, Rate: 4, Remaining: 20, LastError: errors.New("away")}}
	got := text(t, service(t, observe.Config{Generators: keygen.Set{
		Default: counting,
		Named:   map[string]keygen.Generator[int64]{`a"b`: leased},
	}}))
	contains(t, got,
		`# TYPE shardid_ids_issued_total counter`,
		`shardid_ids_issued_total{generator="default"} 100`,
		`shardid_ids_issued_total{generator="a\"b"} 7`,
		`shardid_id_waits_total{generator="a\"b"} 2`,
		`shardid_id_failures_total{generator="a\"b"} 1`,
		`shardid_reservations_total{generator="a\"b"} 3`,
		`shardid_reservation_failures_total{generator="a\"b"} 4`,
		`shardid_reservation_last_duration_seconds{generator="a\"b"} 0.25`,
		`shardid_source_up{generator="default"} 0`,
		`shardid_source_up{generator="a\"b"} 1`,
		`shardid_ids_remaining{generator="default"} 20`,
		`shardid_outage_budget_seconds{generator="default"} 5`,
		`shardid_worker_id{generator="a\"b"} 9`,
		`shardid_worker_lease_expiry_timestamp_seconds{generator="a\"b"} 1.893553445e+09`,
		`shardid_layout_exhaustion_timestamp_seconds{generator="a\"b"} 1.893557045e+09`,
	)
	if strings.Contains(got, `shardid_worker_id{generator="default"}`) {
		t.Error("a generator without a layout has a worker id")
	}
}

func TestAnUnusedGeneratorOutlastsAnyOutage(t *testing.T) {
	got := text(t, service(t, observe.Config{Generators: one(&reported{keygen.Stats{Remaining: 1}})}))
	contains(t, got, `shardid_outage_budget_seconds{generator="default"} +Inf`)
}

func TestAGeneratorWithTwoNamesIsCountedOnce(t *testing.T) {
	g := &reported{}
	s := service(t, observe.Config{Generators: keygen.Set{Default: g, Named: map[string]keygen.Generator[int64]{"order": g, "item": &reported{}}}})
	if n := len(s.Gather()[0].Samples); n != 2 {
		t.Errorf("%d generators, of 2", n)
	}
}

func TestASetWithAmbiguousNamesIsRefused(t *testing.T) {
	var none *reported
	for name, cfg := range map[string]observe.Config{
		"nil":              {Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"a": none}}},
		"one name twice":   {Generators: keygen.Set{Default: &reported{}, Named: map[string]keygen.Generator[int64]{"default": &reported{}}}},
		"two defaults":     {Generators: keygen.Set{Text: map[string]keygen.Generator[string]{"": new(worded), "default": new(worded)}}},
		"a kind as name":   {Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"text/order": &reported{}}, Text: map[string]keygen.Generator[string]{"order": new(worded)}}},
		"negative horizon": {Horizon: -1},
	} {
		if _, err := observe.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestGatherReturnsTheDescribedMetrics(t *testing.T) {
	s := service(t, observe.Config{Generators: one(&reported{}), Statements: new(observe.Statements)})
	described, gathered := observe.Describe(), s.Gather()
	if len(described) != len(gathered) {
		t.Fatalf("%d described, %d gathered", len(described), len(gathered))
	}
	for i, d := range described {
		if g := gathered[i]; d.Name != g.Name || d.Type != g.Type || len(d.Samples) > 0 {
			t.Errorf("%+v is gathered as %+v", d, g)
		}
		if counts := strings.HasSuffix(d.Name, "_total"); counts != (d.Type == observe.Counter) {
			t.Errorf("%s is a %s", d.Name, d.Type)
		}
	}
}

// source is a source of segments that fails with err if that is set.
type source struct{ err error }

func (s *source) Reserve(context.Context, int64) (keygen.Span, error) {
	if s.err != nil {
		return keygen.Span{}, s.err
	}
	return keygen.Span{First: 1, Count: 1000, Step: 1}, nil
}

func TestASegmentsGeneratorIsDownIfItsKeysWillNotLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &source{}
		g, err := segment.New(t.Context(), segment.Config{Source: src})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}()
		s := service(t, observe.Config{Generators: keygen.Set{Default: g}})
		want := func(status observe.Status, message string) {
			t.Helper()
			h := s.Health(t.Context())
			if h.Status != status || !strings.Contains(h.Checks[0].Message, message) {
				t.Errorf("%+v", h)
			}
		}
		want(observe.OK, "")
		src.err = errors.New("the database is away")
		if err := keygen.Fill(t.Context(), g, make([]int64, 900)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Second) // 9 ids a second, and 100 are left
		want(observe.Degraded, "11.1s are left: the database is away")
		if err := keygen.Fill(t.Context(), g, make([]int64, 50)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // 10 ids a second, and 50 are left
		want(observe.Down, "5s are left: the database is away")
	})
}

func TestALeaseThatIsNotRenewedEndsReadiness(t *testing.T) {
	away := errors.New("the ledger is away")
	for _, c := range []struct {
		left time.Duration
		err  error
		want observe.Status
	}{
		{time.Second, nil, observe.OK}, // it is renewed in time
		{time.Minute, away, observe.Degraded},
		{9 * time.Second, away, observe.Down},
		{-time.Second, away, observe.Down},
	} {
		g := &reported{keygen.Stats{LeasedUntil: time.Now().Add(c.left), Expires: time.Now().AddDate(10, 0, 0), LastError: c.err}}
		if h := service(t, observe.Config{Generators: one(g)}).Health(t.Context()); h.Status != c.want {
			t.Errorf("%v left and %v: %+v", c.left, c.err, h)
		}
	}
}

func TestALayoutThatEndsSoonIsReported(t *testing.T) {
	for left, want := range map[time.Duration]observe.Status{
		31 * 24 * time.Hour: observe.OK, 29 * 24 * time.Hour: observe.Degraded, time.Second: observe.Down,
	} {
		g := &reported{keygen.Stats{Expires: time.Now().Add(left)}}
		if h := service(t, observe.Config{Generators: one(g)}).Health(t.Context()); h.Status != want {
			t.Errorf("%v before the end: %+v", left, h)
		}
	}
}

func TestAGeneratorThatWasNotCreatedIsDown(t *testing.T) {
	h := service(t, observe.Config{Generators: keygen.Set{Default: &segment.Generator{}}}).Health(t.Context())
	if h.Status != observe.Down || !strings.Contains(h.Checks[0].Message, "New") {
		t.Errorf("%+v", h)
	}
}

// router has two databases, each of one shard.
func router(t *testing.T) (r *sharding.Router, east, west *sql.DB) {
	t.Helper()
	dbs := sharding.DBs{}
	for _, name := range []string{"east", "west"} {
		db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), name+".db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		dbs[name] = db
	}
	tables, err := sharding.Spread([]string{"east", "west"}, 2, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range tables.Targets() {
		if _, err := dbs[at.DB].ExecContext(t.Context(), "CREATE TABLE "+at.Table+" (id INTEGER PRIMARY KEY, user_id INTEGER)"); err != nil {
			t.Fatal(err)
		}
	}
	r, err = sharding.New(dbs, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: tables})
	if err != nil {
		t.Fatal(err)
	}
	return r, dbs["east"], dbs["west"]
}

func TestOneUnreachableShardTakesNoProcessOutOfService(t *testing.T) {
	r, east, west := router(t)
	s := service(t, observe.Config{Router: r})
	ready := func(want int, status observe.Status, down ...string) {
		t.Helper()
		answer := httptest.NewRecorder()
		s.Ready().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
		var h observe.Health
		if err := json.Unmarshal(answer.Body.Bytes(), &h); err != nil {
			t.Fatal(err)
		}
		if answer.Code != want || h.Status != status {
			t.Errorf("%d %+v", answer.Code, h)
		}
		for _, c := range h.Checks {
			if is := c.Status == observe.Down; is != slices.Contains(down, c.Name) {
				t.Errorf("%+v", c)
			}
		}
	}
	ready(200, observe.OK)
	if err := west.Close(); err != nil {
		t.Fatal(err)
	}
	ready(200, observe.Degraded, "database west")
	if err := east.Close(); err != nil {
		t.Fatal(err)
	}
	ready(503, observe.Down, "database west", "database east")
}

func TestAProcessThatIsNotReadyLives(t *testing.T) {
	s := service(t, observe.Config{Generators: keygen.Set{Default: &segment.Generator{}}})
	answer := httptest.NewRecorder()
	s.Live().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	if answer.Code != 200 {
		t.Error(answer.Code)
	}
}

func TestStatementsAreCountedByTableKindAndOutcome(t *testing.T) {
	r, east, _ := router(t)
	var statements observe.Statements
	db := shardsql.OpenDB(shardsql.Config{Router: r, Home: east, Observer: statements.Observer()})
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	for user := range 3 {
		if _, err := db.ExecContext(t.Context(), "INSERT INTO orders (id, user_id) VALUES (?, ?)", user+1, user); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders").Scan(&n); err != nil || n != 3 {
		t.Fatal(n, err)
	}
	if _, err := db.ExecContext(t.Context(), "DELETE FROM orders WHERE id < 2"); err == nil {
		t.Fatal("a DELETE without a key")
	}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO orders (id, user_id) VALUES (1, 0)"); err == nil {
		t.Fatal("a second row 1")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	statements.Observe(ended, shardsql.Statement{Kind: shardsql.Home, Err: ended.Err()})
	got := text(t, service(t, observe.Config{Statements: &statements}))
	contains(t, got,
		`# TYPE shardid_statement_duration_seconds histogram`,
		`shardid_statement_duration_seconds_count{kind="one",outcome="ok",table="orders"} 3`,
		`shardid_statement_duration_seconds_bucket{kind="one",outcome="ok",table="orders",le="+Inf"} 3`,
		`shardid_statement_duration_seconds_count{kind="one",outcome="error",table="orders"} 1`,
		`shardid_statement_duration_seconds_count{kind="scatter",outcome="ok",table="orders"} 1`,
		`shardid_statement_duration_seconds_count{kind="refused",outcome="missing_key",table="orders"} 1`,
		`shardid_statement_duration_seconds_count{kind="home",outcome="cancelled",table=""} 1`,
		`shardid_statement_rows_total{kind="one",outcome="ok",table="orders"} 3`,
		`shardid_statement_shards_total{kind="scatter",outcome="ok",table="orders"} 2`,
		`shardid_statement_retries_total{kind="one",outcome="ok",table="orders"} 0`,
	)
}

func TestABucketIncludesTheBucketsBeforeIt(t *testing.T) {
	var statements observe.Statements
	for _, took := range []time.Duration{50 * time.Microsecond, 100 * time.Microsecond, time.Millisecond, 3 * time.Second, time.Hour} {
		statements.Observe(t.Context(), shardsql.Statement{Table: "t", Kind: shardsql.One, Took: took})
	}
	s := service(t, observe.Config{Statements: &statements})
	for _, f := range s.Gather() {
		if f.Type != observe.Histogram {
			continue
		}
		h := f.Samples[0]
		want := map[float64]uint64{.0001: 2, .0005: 2, .001: 3, 2.5: 3, 5: 4, 10: 4, math.Inf(1): 5}
		for _, b := range h.Buckets {
			if n, named := want[b.Bound]; named && n != b.Count {
				t.Errorf("%d took at most %v s, of %d", b.Count, b.Bound, n)
			}
		}
		if h.Count != 5 || math.Abs(h.Value-3603.00115) > 1e-9 {
			t.Errorf("%d in %v s", h.Count, h.Value)
		}
	}
}

func TestMetricsAreServedAsText(t *testing.T) {
	s := service(t, observe.Config{Generators: one(&reported{})})
	answer := httptest.NewRecorder()
	s.Metrics().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if is := answer.Header().Get("Content-Type"); is != "text/plain; version=0.0.4; charset=utf-8" {
		t.Error(is)
	}
	contains(t, answer.Body.String(), `shardid_ids_issued_total{generator="default"} 0`)
}

// The driver's own limit ended the connecting. It is an outage, and not the program's wish.
func TestAServerThatIsNotReachedInTimeIsNoCancellation(t *testing.T) {
	_, err := (&net.Dialer{Timeout: time.Nanosecond}).DialContext(t.Context(), "tcp", "127.0.0.1:1")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	var statements observe.Statements
	var log strings.Builder
	of := shardsql.Statement{Table: "orders", Kind: shardsql.One, Err: err}
	statements.Observe(t.Context(), of)
	observe.NewLog(slog.New(slog.NewTextHandler(&log, nil))).Statement(t.Context(), of)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	statements.Observe(ended, of)
	contains(t, text(t, service(t, observe.Config{Statements: &statements})),
		`shardid_statement_duration_seconds_count{kind="one",outcome="error",table="orders"} 1`,
		`shardid_statement_duration_seconds_count{kind="one",outcome="cancelled",table="orders"} 1`)
	if !strings.Contains(log.String(), "outcome=error") {
		t.Errorf("the log has %q", log.String())
	}
}

// The status page divides by the number.
func TestNoSeriesIsGatheredBeforeItsFirstStatementIsCounted(t *testing.T) {
	for range 1000 {
		var statements observe.Statements
		s := service(t, observe.Config{Statements: &statements})
		go statements.Observe(t.Context(), shardsql.Statement{Table: "orders", Kind: shardsql.One})
		for {
			families := s.Gather()
			at := slices.IndexFunc(families, func(f observe.Family) bool { return f.Name == observe.StatementDuration })
			if len(families[at].Samples) == 0 {
				continue
			}
			if families[at].Samples[0].Count == 0 {
				t.Fatal("a series of no statement")
			}
			break
		}
	}
}
