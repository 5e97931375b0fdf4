// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/sharding/shardsql"
)

// scope is the name of the instrumentation scope of instruments and spans.
const scope = "github.com/shardid/shardid/observe/otel"

// Config says where spans and metrics go.
type Config struct {
	// TracerProvider creates the spans. Defaults to the global one.
	TracerProvider trace.TracerProvider
	// MeterProvider provides the histogram of durations. Defaults to the global one.
	MeterProvider metric.MeterProvider
	// System is the attribute db.system.name: "mysql", "mariadb", "postgresql" or "sqlite". It is required.
	System string
}

// Statements returns an observer for shardsql.Config.Observer, and for the same field in
// gormplugin. A span begins when its statement begins, and is a child of the span in the
// statement's context. A statement that failed or was refused has the status Error, and its
// error.type is its [observe.Outcome].
func Statements(cfg Config) (shardsql.Observer, error) {
	if cfg.System == "" {
		return shardsql.Observer{}, errors.New(`otel: Config.System is empty; say "mysql", "mariadb", "postgresql" or "sqlite"`)
	}
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	durations, err := cfg.MeterProvider.Meter(scope).Float64Histogram("db.client.operation.duration",
		metric.WithUnit("s"), metric.WithDescription("Duration of database client operations."),
		metric.WithExplicitBucketBoundaries(.001, .005, .01, .05, .1, .5, 1, 5, 10))
	if err != nil {
		return shardsql.Observer{}, fmt.Errorf("otel: %w", err)
	}
	s := &statements{tracer: cfg.TracerProvider.Tracer(scope), durations: durations, system: attribute.String("db.system.name", cfg.System)}
	return shardsql.Observer{Statement: s.observe}, nil
}

type statements struct {
	tracer    trace.Tracer
	durations metric.Float64Histogram
	system    attribute.KeyValue
}

func (s *statements) observe(ctx context.Context, of shardsql.Statement) {
	few := s.attributes(ctx, of)
	s.durations.Record(context.WithoutCancel(ctx), of.Took.Seconds(), metric.WithAttributes(few...))
	end := time.Now()
	_, span := s.tracer.Start(ctx, name(of), trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(end.Add(-of.Took)))
	if span.IsRecording() {
		span.SetAttributes(few...)
		span.SetAttributes(many(of)...)
		if of.Err != nil {
			span.SetStatus(codes.Error, observe.Outcome(ctx, of)) // not the error, which may name values
		}
	}
	span.End(trace.WithTimestamp(end))
}

// name returns the name of a span, for example "SELECT orders", by the semantic conventions.
func name(of shardsql.Statement) string {
	if of.Table == "" {
		return operation(of)
	}
	return operation(of) + " " + of.Table
}

// operation returns the statement's first word, in capitals.
func operation(of shardsql.Statement) string {
	text := strings.TrimLeft(of.Fingerprint, " \t\r\n(")
	if end := strings.IndexFunc(text, func(r rune) bool { return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') }); end >= 0 {
		text = text[:end]
	}
	if text == "" {
		return "statement"
	}
	return strings.ToUpper(text)
}

// attributes returns the attributes with few values, for the histogram and the span.
func (s *statements) attributes(ctx context.Context, of shardsql.Statement) []attribute.KeyValue {
	all := append(make([]attribute.KeyValue, 0, 5), s.system, attribute.String("db.operation.name", operation(of)), attribute.String("shardid.kind", string(of.Kind)))
	if of.Table != "" {
		all = append(all, attribute.String("db.collection.name", of.Table))
	}
	if of.Err != nil {
		all = append(all, attribute.String("error.type", observe.Outcome(ctx, of)))
	}
	return all
}

// many returns the attributes with many values, which only spans have.
func many(of shardsql.Statement) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.Int64("shardid.rows", of.Rows), attribute.Int("shardid.retries", of.Retries), attribute.Int("shardid.shards", len(of.Targets)),
	}
	if of.Fingerprint != "" {
		all = append(all, attribute.String("db.query.text", of.Fingerprint))
	}
	if len(of.Targets) > 0 {
		targets := make([]string, len(of.Targets))
		for i, t := range of.Targets {
			targets[i] = t.String()
		}
		all = append(all, attribute.StringSlice("shardid.targets", targets))
	}
	return all
}
