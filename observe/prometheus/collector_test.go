// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/observe/prometheus"
	"github.com/shardid/shardid/sharding/shardsql"
)

// counter is a source of segments of a thousand ids.
type counter struct{ next int64 }

func (c *counter) Reserve(context.Context, int64) (keygen.Span, error) {
	c.next += 1000
	return keygen.Span{First: c.next, Count: 1000, Step: 1}, nil
}

func service(t testing.TB) *observe.Service {
	t.Helper()
	orders, err := segment.New(t.Context(), segment.Config{Source: new(counter)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := orders.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := keygen.Fill(t.Context(), orders, make([]int64, 7)); err != nil {
		t.Fatal(err)
	}
	var statements observe.Statements
	for _, took := range []time.Duration{time.Microsecond, 3 * time.Millisecond, time.Minute} {
		statements.Observe(t.Context(), shardsql.Statement{Table: "orders", Kind: shardsql.One, Rows: 2, Took: took})
	}
	s, err := observe.New(observe.Config{
		Generators: keygen.Set{Named: map[string]keygen.Generator[int64]{"orders\n\"\\": orders}},
		Statements: &statements,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// scraped returns the result of a scrape.
func scraped(t *testing.T, s *observe.Service) string {
	t.Helper()
	registry := client.NewPedanticRegistry()
	if err := registry.Register(prometheus.NewCollector(s)); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	defer server.Close()
	answer, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var text bytes.Buffer
	if _, err := text.ReadFrom(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status, err, text.String())
	}
	return text.String()
}

func TestAScrapeReturnsTheServicesMetrics(t *testing.T) {
	got := scraped(t, service(t))
	for _, line := range []string{
		"# TYPE shardid_ids_issued_total counter",
		`shardid_ids_issued_total{generator="orders\n\"\\"} 7`,
		`shardid_statement_duration_seconds_bucket{kind="one",outcome="ok",table="orders",le="0.005"} 2`,
		`shardid_statement_duration_seconds_bucket{kind="one",outcome="ok",table="orders",le="+Inf"} 3`,
		`shardid_statement_duration_seconds_count{kind="one",outcome="ok",table="orders"} 3`,
		`shardid_statement_rows_total{kind="one",outcome="ok",table="orders"} 6`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no line %s in\n%s", line, got)
		}
	}
}

// The root module's own text equals the library's.
func TestTheTextOfTheServiceEqualsTheLibrarys(t *testing.T) {
	s := service(t)
	var own bytes.Buffer
	if err := observe.WriteText(&own, s.Gather()); err != nil {
		t.Fatal(err)
	}
	var parser expfmt.TextParser
	mine, err := parser.TextToMetricFamilies(&own)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := parser.TextToMetricFamilies(strings.NewReader(scraped(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	if len(mine) != len(theirs) || len(mine) == 0 {
		t.Errorf("%d families, and %d by the library", len(mine), len(theirs))
	}
	for name, family := range theirs {
		if is, want := fmt.Sprint(mine[name]), fmt.Sprint(family); is != want && name != "shardid_outage_budget_seconds" { // which passes
			t.Errorf("%s\n%s", is, want)
		}
	}
}

func TestTheNamesFollowTheConventions(t *testing.T) {
	problems, err := testutil.CollectAndLint(prometheus.NewCollector(service(t)))
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

func ExampleNewCollector() {
	var statements observe.Statements // also Config.Observer of package shardsql: statements.Observer()
	service, err := observe.New(observe.Config{Statements: &statements})
	if err != nil {
		panic(err)
	}
	registry := client.NewRegistry()
	registry.MustRegister(prometheus.NewCollector(service))
	statements.Observe(context.Background(), shardsql.Statement{Table: "orders", Kind: shardsql.One, Rows: 3})

	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		fmt.Println(f.GetName(), f.GetType())
	}
	// Output:
	// shardid_statement_duration_seconds HISTOGRAM
	// shardid_statement_retries_total COUNTER
	// shardid_statement_rows_total COUNTER
	// shardid_statement_shards_total COUNTER
}
