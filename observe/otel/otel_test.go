// SPDX-License-Identifier: Apache-2.0

package otel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/observe/otel"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// backend is where a test's spans and metrics go.
type backend struct {
	spans   *tracetest.SpanRecorder
	tracers *sdktrace.TracerProvider
	reader  *sdkmetric.ManualReader
	meters  *sdkmetric.MeterProvider
}

func newBackend(t *testing.T) backend {
	t.Helper()
	b := backend{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	b.tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b.spans))
	b.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(b.reader))
	t.Cleanup(func() { _, _ = b.tracers.Shutdown(context.Background()), b.meters.Shutdown(context.Background()) })
	return b
}

func (b backend) collected(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := b.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	byName := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			byName[m.Name] = m
		}
	}
	return byName
}

func attributes(all []attribute.KeyValue) map[string]string {
	texts := map[string]string{}
	for _, a := range all {
		texts[string(a.Key)] = a.Value.Emit()
	}
	return texts
}

func TestAStatementIsASpan(t *testing.T) {
	b := newBackend(t)
	observer, err := otel.Statements(otel.Config{TracerProvider: b.tracers, MeterProvider: b.meters, System: "mysql"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, request := b.tracers.Tracer("test").Start(t.Context(), "GET /orders")
	observer.Statement(ctx, shardsql.Statement{
		Text: "select * from orders where user_id = 7", Fingerprint: "select * from orders where user_id = ?", Kind: shardsql.One, Table: "orders",
		Targets: []sharding.Target{{DB: "east", Table: "orders_1"}}, Rows: 3, Took: 50 * time.Millisecond,
	})
	request.End()
	span := b.spans.Ended()[0]
	if span.Name() != "SELECT orders" || span.Parent().SpanID() != request.SpanContext().SpanID() || span.EndTime().Sub(span.StartTime()) != 50*time.Millisecond {
		t.Errorf("%s of %v in %v", span.Name(), span.Parent(), span.EndTime().Sub(span.StartTime()))
	}
	got := attributes(span.Attributes())
	for key, want := range map[string]string{
		"db.system.name": "mysql", "db.operation.name": "SELECT", "db.collection.name": "orders", "db.query.text": "select * from orders where user_id = ?",
		"shardid.kind": "one", "shardid.rows": "3", "shardid.shards": "1", "shardid.targets": `["east/orders_1"]`, "shardid.retries": "0",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, not %q", key, got[key], want)
		}
	}
	h, is := b.collected(t)["db.client.operation.duration"].Data.(metricdata.Histogram[float64])
	if !is || len(h.DataPoints) != 1 || h.DataPoints[0].Count != 1 || h.DataPoints[0].Sum != .05 {
		t.Errorf("%+v", h)
	}
}

func TestNoValueOfAStatementLeavesTheProcess(t *testing.T) {
	b := newBackend(t)
	observer, err := otel.Statements(otel.Config{TracerProvider: b.tracers, MeterProvider: b.meters, System: "mysql"})
	if err != nil {
		t.Fatal(err)
	}
	const secret = "4111111111111111"
	for _, of := range []shardsql.Statement{
		{Text: "INSERT INTO cards VALUES (" + secret + ")", Fingerprint: "INSERT INTO cards VALUES (?)", Kind: shardsql.One, Table: "cards", Err: errors.New("Duplicate entry '" + secret + "'")},
		{Text: "DELETE FROM cards WHERE n = " + secret, Fingerprint: "DELETE FROM cards WHERE n = ?", Kind: shardsql.Refused, Table: "cards", Err: &sharding.RouteError{Err: fmt.Errorf("%w of %s", sharding.ErrMissingKey, secret)}},
		{Text: secret},
	} {
		observer.Statement(t.Context(), of)
	}
	var reasons []string
	for _, span := range b.spans.Ended() {
		if text := fmt.Sprint(span.Name(), span.Attributes(), span.Status(), span.Events()); strings.Contains(text, secret) {
			t.Error(text)
		}
		if span.Status().Code == codes.Error {
			reasons = append(reasons, attributes(span.Attributes())["error.type"])
		}
	}
	if !slices.Equal(reasons, []string{"error", "missing_key"}) {
		t.Error(reasons)
	}
	if text := fmt.Sprint(b.collected(t)); strings.Contains(text, secret) {
		t.Error(text)
	}
}

// endless is a source of one segment that nobody uses up.
type endless struct{}

func (endless) Reserve(context.Context, int64) (keygen.Span, error) {
	return keygen.Span{First: 1, Count: 1 << 60, Step: 1}, nil
}

func TestAMeterCollectsTheServicesMetrics(t *testing.T) {
	b := newBackend(t)
	orders, err := segment.New(t.Context(), segment.Config{Source: endless{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = orders.Close() }()
	if err := keygen.Fill(t.Context(), orders, make([]int64, 7)); err != nil {
		t.Fatal(err)
	}
	s, err := observe.New(observe.Config{Generators: keygen.Set{Default: orders}})
	if err != nil {
		t.Fatal(err)
	}
	registration, err := otel.Register(s, b.meters)
	if err != nil {
		t.Fatal(err)
	}
	issued := b.collected(t)["shardid.ids_issued"]
	sum, is := issued.Data.(metricdata.Sum[float64])
	if !is || !sum.IsMonotonic || len(sum.DataPoints) != 1 || sum.DataPoints[0].Value != 7 {
		t.Fatalf("%+v", issued)
	}
	if name, _ := sum.DataPoints[0].Attributes.Value("generator"); name.AsString() != "default" {
		t.Error(name)
	}
	if last := b.collected(t)["shardid.reservation_last_duration"]; last.Unit != "s" {
		t.Errorf("%+v", last)
	}
	if err := registration.Unregister(); err != nil {
		t.Fatal(err)
	}
	if _, there := b.collected(t)["shardid.ids_issued"]; there {
		t.Error("it is collected still")
	}
}

func TestTheSystemIsRequired(t *testing.T) {
	if _, err := otel.Statements(otel.Config{}); err == nil {
		t.Error("no error")
	}
}

func ExampleStatements() {
	spans := tracetest.NewSpanRecorder()
	observer, err := otel.Statements(otel.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), System: "mariadb"})
	if err != nil {
		panic(err)
	}
	// shardsql.OpenDB(shardsql.Config{Observer: observer, …}) calls it for each statement:
	observer.Statement(context.Background(), shardsql.Statement{Fingerprint: "UPDATE orders SET paid = ? WHERE id = ?", Kind: shardsql.One, Table: "orders"})
	fmt.Println(spans.Ended()[0].Name())
	// Output: UPDATE orders
}

func ExampleRegister() {
	ctx := context.Background()
	var statements observe.Statements
	service, err := observe.New(observe.Config{Statements: &statements})
	if err != nil {
		panic(err)
	}
	reader := sdkmetric.NewManualReader() // a program has an exporter here
	registration, err := otel.Register(service, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	if err != nil {
		panic(err)
	}
	statements.Observe(ctx, shardsql.Statement{Table: "orders", Kind: shardsql.One, Rows: 2})
	var all metricdata.ResourceMetrics
	if err := errors.Join(reader.Collect(ctx, &all), registration.Unregister()); err != nil {
		panic(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if strings.HasPrefix(m.Name, "shardid.statement") {
			fmt.Println(m.Name)
		}
	}
	// Unordered output:
	// shardid.statement_rows
	// shardid.statement_shards
	// shardid.statement_retries
}
