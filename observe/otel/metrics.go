// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/shardid/shardid/observe"
)

// Register lets a meter provider collect the metrics of a service, which are computed when it
// collects them. The histogram of statements is not among them: see [Statements]. Unregister the
// registration to end the collection.
func Register(s *observe.Service, provider metric.MeterProvider) (metric.Registration, error) {
	meter := provider.Meter(scope)
	instruments := map[string]metric.Float64Observable{}
	var all []metric.Observable
	for _, f := range observe.Describe() {
		i, err := instrument(meter, f)
		if err != nil {
			return nil, fmt.Errorf("otel: %w", err)
		}
		if i != nil {
			instruments[f.Name] = i
			all = append(all, i)
		}
	}
	r, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, f := range s.Gather() {
			if i, has := instruments[f.Name]; has {
				observeAll(o, i, f)
			}
		}
		return nil
	}, all...)
	if err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	return r, nil
}

// instrument returns nil for a histogram, which no callback can observe.
func instrument(meter metric.Meter, f observe.Family) (metric.Float64Observable, error) {
	name, unit := strings.TrimSuffix(strings.Replace(f.Name, "_", ".", 1), "_total"), "1"
	if seconds, is := strings.CutSuffix(name, "_seconds"); is {
		name, unit = seconds, "s"
	}
	switch f.Type {
	case observe.Counter:
		return meter.Float64ObservableCounter(name, metric.WithDescription(f.Help), metric.WithUnit("{"+strings.TrimPrefix(name, "shardid.")+"}"))
	case observe.Gauge:
		return meter.Float64ObservableGauge(name, metric.WithDescription(f.Help), metric.WithUnit(unit))
	}
	return nil, nil //nolint:nilnil // there is no instrument, and no error
}

func observeAll(o metric.Observer, i metric.Float64Observable, f observe.Family) {
	for _, s := range f.Samples {
		attributes := make([]attribute.KeyValue, len(f.Labels))
		for n, label := range f.Labels {
			attributes[n] = attribute.String(label, s.Values[n])
		}
		o.ObserveFloat64(i, s.Value, metric.WithAttributes(attributes...))
	}
}
